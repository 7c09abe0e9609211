// The table of all trials: only the rows in sight are in the page, whatever their number.

import { el, fill, shown, state } from "./dom.js";

const ROW = 30; // pixels, as in the style
const MOST_METRICS = 30;

// The value of a trial; of one that did not finish, its last report, set apart.
function lastReport(row) {
  const value = shown(row[2]);
  return row[2] === null || row[1] === "finished" || row[1] === "infeasible" ? value : el("span", { class: "quiet", title: "last report" }, value);
}

export class TrialsTable {
  constructor(id) {
    this.id = id;
    this.rows = []; // by number
    this.sort = { column: 0, down: true };
    this.words = "";
    this.only = "";
    this.metrics = [];
    this.columns = [];
    this.order = [];
    this.count = el("span", { class: "quiet", role: "status" });
    this.search = el("input", {
      type: "search", placeholder: "Filter: text, or e.g. lr<0.1", "aria-label": "Filter trials", oninput: () => this.filter(),
    });
    this.states = el("select", { "aria-label": "State", onchange: () => this.filter() });
    this.head = el("div", { class: "row head", role: "row" });
    this.body = el("div", { class: "rows", role: "rowgroup" });
    this.box = el(
      "div", { class: "table", role: "table", tabindex: "0", "aria-label": "Trials", onscroll: () => this.paint(), onkeydown: (e) => this.key(e) },
      this.head, this.body,
    );
    this.node = el("section", { class: "trials" },
      el("div", { class: "bar" }, el("h2", {}, "Trials"), this.search, this.states, this.count), this.box);
    this.resized = new ResizeObserver(() => this.paint());
    this.resized.observe(this.box);
  }

  close() {
    this.resized.disconnect();
  }

  clear() {
    this.rows = [];
    this.columns = [];
  }

  take(news) {
    for (const row of news.rows) {
      const metrics = row[8] || {};
      for (const name of Object.keys(metrics)) {
        if (!this.metrics.includes(name) && this.metrics.length < MOST_METRICS) {
          this.metrics.push(name);
          this.columns = [];
        }
      }
      row.text = null;
      this.rows[row[0]] = row;
    }
    if (!this.columns.length) this.build(news);
    if (news.rows.length || !this.order.length) this.filter();
  }

  build(news) {
    const parameter = (i) => (row) => row[6][i];
    const context = (i) => (row) => (row[7] ? row[7][i] : null);
    this.columns = [
      { name: "trial", of: (row) => row[0], width: 5, number: true },
      { name: "state", of: (row) => (row[1] === "pending" ? "running" : row[1]), width: 6, draw: (row) => state(row[1]) },
      { name: news.metric, of: (row) => row[2], width: 8, number: true, draw: (row) => lastReport(row) },
      { name: "seconds", of: (row) => row[3], width: 6, number: true },
      ...news.parameters.map((name, i) => ({ name, of: parameter(i), width: 8 })),
      ...news.contexts.map((name, i) => ({ name, of: context(i), width: 7 })),
      ...this.metrics.map((name) => ({ name, of: (row) => (row[8] ? row[8][name] ?? null : null), width: 7 })),
      { name: "reason", of: (row) => row[5], width: 30 },
    ];
    for (const column of this.columns.slice(4)) {
      column.number = this.rows.some((row) => row && typeof column.of(row) === "number");
      const longest = Math.min(14, column.name.length * 0.6 + 1.5);
      if (column.width < 30) column.width = Math.max(column.width, longest);
    }
    const template = this.columns.map((column) => `${column.width}rem`).join(" ");
    this.box.style.setProperty("--columns", template);
    fill(this.head, this.columns.map((column, i) => el("div", { role: "columnheader", class: column.number ? "number" : "" },
      el("button", { type: "button", title: column.name, onclick: () => this.order_by(i) }, column.name))));
    this.mark();
  }

  order_by(column) {
    this.sort = { column, down: this.sort.column === column ? !this.sort.down : false };
    this.mark();
    this.filter();
  }

  mark() {
    [...this.head.children].forEach((cell, i) => {
      const chosen = i === this.sort.column;
      cell.setAttribute("aria-sort", chosen ? (this.sort.down ? "descending" : "ascending") : "none");
    });
  }

  test() {
    const wanted = [];
    for (const word of this.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean)) {
      const rule = /^(.+?)(<=|>=|=|<|>)(.+)$/.exec(word);
      const column = rule && this.columns.find((one) => one.name.toLowerCase() === rule[1]);
      if (!column) {
        wanted.push((row) => this.textOf(row).includes(word));
        continue;
      }
      const bound = Number(rule[3]);
      const compare = {
        "<": (a) => a < bound, "<=": (a) => a <= bound, ">": (a) => a > bound, ">=": (a) => a >= bound,
        "=": (a) => a === bound || shown(a).toLowerCase() === rule[3],
      }[rule[2]];
      wanted.push((row) => {
        const value = column.of(row);
        return value !== null && compare(value);
      });
    }
    return (row) => wanted.every((holds) => holds(row));
  }

  textOf(row) {
    if (row.text === null) row.text = this.columns.map((column) => shown(column.of(row))).join("\n").toLowerCase();
    return row.text;
  }

  filter() {
    this.fillStates();
    const holds = this.test();
    const only = this.states.value;
    const { of } = this.columns[this.sort.column] || { of: (row) => row[0] };
    const chosen = this.rows.filter((row) => row && (!only || row[1] === only) && holds(row));
    const sign = this.sort.down ? -1 : 1;
    chosen.sort((a, b) => {
      const [p, q] = [of(a), of(b)];
      if (p === q) return a[0] - b[0];
      if (p === null || p === undefined || p === "") return 1; // what is not known comes last, whichever way
      if (q === null || q === undefined || q === "") return -1;
      if (typeof p === "number" && typeof q === "number") return sign * (p - q);
      return sign * String(p).localeCompare(String(q), undefined, { numeric: true });
    });
    this.order = chosen;
    const all = this.rows.length;
    this.count.textContent = chosen.length === all ? `${all.toLocaleString()} trials` : `${chosen.length.toLocaleString()} of ${all.toLocaleString()}`;
    this.paint();
  }

  fillStates() {
    const states = [...new Set(this.rows.filter(Boolean).map((row) => row[1]))].sort();
    const known = [...this.states.options].map((option) => option.value);
    if (known.length === states.length + 1 && states.every((one) => known.includes(one))) return;
    const chosen = this.states.value;
    fill(this.states, el("option", { value: "" }, "every state"),
      states.map((one) => el("option", { value: one }, one === "pending" ? "running" : one)));
    this.states.value = states.includes(chosen) ? chosen : "";
  }

  paint() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 5);
    const last = Math.min(this.order.length, first + Math.ceil(this.box.clientHeight / ROW) + 10);
    this.body.style.height = `${this.order.length * ROW}px`;
    const focused = document.activeElement?.closest?.(".row")?.dataset.trial;
    fill(this.body, this.order.slice(first, last).map((row, i) => {
      const link = (text) => el("a", { href: `#/study/${this.id}/trial/${row[0]}` }, text);
      const cells = this.columns.map((column, k) => {
        const value = column.of(row);
        const content = k === 0 ? link(String(value)) : column.draw ? column.draw(row) : shown(value);
        const title = typeof value === "string" && value.length > 12 ? value : null;
        return el("div", { role: "cell", class: column.number ? "number" : "", title }, content);
      });
      const open = (event) => { // not where text is being selected to be copied
        if (!event.target.closest("a") && !String(getSelection())) location.hash = `#/study/${this.id}/trial/${row[0]}`;
      };
      const node = el("div", { class: "row", role: "row", "data-trial": String(row[0]), onclick: open }, cells);
      node.style.top = `${(first + i) * ROW}px`;
      return node;
    }));
    if (focused !== undefined) this.body.querySelector(`[data-trial="${focused}"] a`)?.focus({ preventScroll: true });
  }

  key(event) {
    const page = this.box.clientHeight - 2 * ROW;
    const by = { PageDown: page, PageUp: -page, ArrowDown: ROW, ArrowUp: -ROW, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || event.target !== this.box) return;
    event.preventDefault();
    this.box.scrollTop = by === Infinity ? this.box.scrollHeight : by === -Infinity ? 0 : this.box.scrollTop + by;
  }
}
