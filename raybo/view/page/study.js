// One study: how far it is, what runs now, its figures, all its trials.

import { ask, repeat } from "./api.js";
import { draw, forget } from "./charts.js";
import { Notes, enqueueForm, stopButton } from "./forms.js";
import { duration, el, elapsed, fill, moment, pairs, plural, shown } from "./dom.js";
import { TrialsTable } from "./table.js";

const LOOK = 1000; // milliseconds between looks at a study that runs
const REST = 5000; // and at one that does not

export function studyPage(main, id, crumbs) {
  const head = el("div");
  const facts = el("div", { class: "facts" });
  const workers = el("section", { hidden: true });
  const figures = el("div", { class: "figures" });
  const about = el("div", { class: "columns" });
  const table = new TrialsTable(id);
  const drawings = new Drawings(id, figures);
  let at = { last: 0, times: 0 };
  let running = true;
  let best = null;
  const stop = el("div", { hidden: true }, stopButton(id));
  const asking = el("p", { class: "quiet", role: "status" });
  const enqueue = el("details", { class: "enqueue", hidden: true }, el("summary", {}, "Enqueue a configuration"));
  const notes = new Notes(id);
  fill(main, head, facts, el("div", { class: "actions" }, stop, asking), workers, about, figures, table.node,
    el("div", { class: "columns" }, el("section", { class: "asked" }, enqueue), notes.node));

  const look = repeat(async () => {
    const study = await ask(`/api/studies/${id}`);
    if (study.times !== at.times) {
      at = { last: 0, times: study.times };
      table.clear();
    }
    running = study.running;
    crumbs([study.objective || study.file]);
    best = drawings.recommended || study.best;
    fill(head, heading(study));
    fill(facts, cards(study, drawings));
    stop.hidden = !study.can.stop || study.can.stopping;
    asking.textContent = waiting(study);
    enqueue.parentNode.hidden = enqueue.hidden = !study.can.enqueue;
    if (enqueue.childElementCount === 1) enqueue.append(...enqueueForm(id, { ...study, best }).filter(Boolean));
    notes.show(study.notes);
    showWorkers(workers, study, id);
    while (at.last < study.last) {
      const news = await ask(`/api/studies/${id}/rows?since=${at.last}&times=${at.times}`);
      if (news.times !== at.times) return;
      table.take(news);
      at.last = news.last;
      if (!news.rows.length && news.complete) break;
    }
    fill(about, aboutStudy(study, best, id, drawings.front));
    await drawings.look();
  }, LOOK);
  const ticking = setInterval(() => tick(workers), 1000);
  const slower = setInterval(() => { if (!running) look.now(); }, REST);
  return () => {
    look.stop();
    clearInterval(ticking);
    clearInterval(slower);
    table.close();
    drawings.close();
  };
}

function waiting(study) {
  if (study.can.stopping && study.running) return "The study has been asked to stop.";
  if (!study.can.waiting) return "";
  const what = plural(study.can.waiting, "configuration");
  return study.running ? `${what} asked for, to be taken up by the study.` : `${what} waiting for the study's next run.`;
}

function heading(study) {
  const larger = (mode) => (mode === "max" ? "the larger the better" : "the smaller the better");
  const better = study.metrics.length > 1
    ? study.metrics.map(([name, mode]) => `${name} (${larger(mode)})`).join(", ") : `${study.metric}, ${larger(study.mode)}`;
  const bounds = study.constraints.length ? `; ${study.constraints.join(", ")}` : "";
  return [
    el("h1", {}, study.objective, " ", el("span", { class: study.running ? "badge on" : "badge" }, study.running ? "running" : "not running")),
    el("p", { class: "quiet" }, `${better}${bounds}; method ${study.method}; journal ${study.file}`),
    study.ended && !study.running ? el("p", { class: "quiet" }, `ended: ${study.ended}`) : null,
  ];
}

function card(value, name, kind = "") {
  return el("div", { class: `fact ${kind}` }, el("b", {}, value), el("span", {}, name));
}

function cards(study, { front, recommended }) {
  const counts = study.counts;
  const expected = recommended ? recommended.expected : null;
  const made = [];
  if (study.metrics.length > 1) made.push(card(String(front.length), "on the front", "best"));
  else if (study.best || !study.context.length) made.push(card(study.best ? shown(study.best.value) : "none yet", `best ${study.metric}`, "best"));
  if (expected !== null && expected !== undefined) made.push(card(shown(expected), "expected of the recommended trial", made.length ? "" : "best"));
  made.push(card(String(counts.finished || 0), study.planned ? `finished of ${study.planned} planned` : "finished"));
  const [begun, waiting] = [study.workers.length, (counts.pending || 0) - study.workers.length];
  if (begun) made.push(card(String(begun), study.running ? "running" : "were running at its end"));
  if (waiting) made.push(card(String(waiting), "enqueued"));
  if (counts.paused) made.push(card(String(counts.paused), "paused"));
  if (counts.pruned) made.push(card(String(counts.pruned), "pruned"));
  if (study.failed) made.push(card(String(study.failed), "failed", "bad"));
  if (counts.stopped) made.push(card(String(counts.stopped), "stopped"));
  if (study.began) {
    const until = study.running ? Date.now() : Date.parse(study.latest);
    made.push(card(duration((until - Date.parse(study.began)) / 1000), study.running ? "since it began" : "elapsed"));
  }
  if (study.running && study.planned && study.done && study.done < study.planned) {
    const share = study.done / study.planned;
    const progress = el("progress", { max: study.planned, value: study.done, "aria-label": "trials that have ended" });
    made.push(el("div", { class: "fact" }, progress, el("span", {}, `${Math.round(100 * share)}% of the trials`)));
  }
  return made;
}

function showWorkers(section, study, id) {
  const now = study.workers;
  section.hidden = !now.length;
  fill(section, el("h2", {}, study.running ? "Workers" : "Running when the study ended"),
    el("ul", { class: "workers" }, now.map((one) => el("li", {},
      el("a", { href: `#/study/${id}/trial/${one.trial}` }, `trial ${one.trial}`),
      el("b", { "data-since": study.running ? one.since : null }, study.running ? duration(elapsed(one.since)) : ""),
      one.attempt > 1 ? el("span", { class: "quiet" }, `attempt ${one.attempt}`) : null,
      el("span", { class: "config" }, one.config.map(([name, value]) => `${name}=${shown(value)}`).join(", "))))));
}

function tick(section) {
  for (const node of section.querySelectorAll("[data-since]")) node.textContent = duration(elapsed(node.dataset.since));
}

function aboutStudy(study, best, id, front) {
  const made = [];
  if (front.length) {
    made.push(el("section", {}, el("h2", {}, "Pareto front"), el("div", { class: "wide" }, el("table", {}, el("tbody", {}, front.slice(0, 50).map((one) => el("tr", {},
      el("td", {}, el("a", { href: `#/study/${id}/trial/${one.number}` }, `trial ${one.number}`)), one.values.map(([name, value]) => el("td", {}, `${name} ${shown(value)}`)))))))));
  }
  if (best) {
    const link = el("a", { href: `#/study/${id}/trial/${best.number}` }, `trial ${best.number}`);
    made.push(el("section", {}, el("h2", {}, best.why ? "Recommended: " : "Best measured: ", link),
      best.why ? el("p", { class: "quiet" }, best.why) : null, pairs(best.config)));
  }
  made.push(el("section", {}, el("h2", {}, "Settings"), pairs([
    ["method", study.method], ...study.options.map(([key, value]) => [`option ${key}`, value]),
    ["seed", study.seed], ...study.settings.map(([key, value]) => [`setting ${key}`, value]),
    ["began", moment(study.began)], ["latest event", moment(study.latest)],
  ])));
  made.push(el("section", {}, el("h2", {}, "Search space"), pairs([
    ...study.space.map((one) => [one.name, one.range]), ...study.rules.map((rule) => ["rule", rule]),
    ...study.context.map((one) => [`context ${one.name}`, one.range]),
  ])));
  if (study.failures.length) {
    made.push(el("section", {}, el("h2", {}, "Failures"), el("ul", { class: "failures" }, study.failures.map((one) => el("li", {},
      `${plural(one.count, "trial")}, first `, el("a", { href: `#/study/${id}/trial/${one.first}` }, `trial ${one.first}`), ": ", el("span", { class: "bad" }, one.reason))))));
  }
  return made;
}

// The report's figures: each is fetched when it comes into sight, and again when there is a newer one.
class Drawings {
  constructor(id, node) {
    this.id = id;
    this.node = node;
    this.recommended = null;
    this.front = [];
    this.places = new Map();
    this.version = "";
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        entry.target.inSight = entry.isIntersecting;
        if (entry.isIntersecting) this.fetch(entry.target);
      }
    }, { rootMargin: "300px" });
  }

  close() {
    this.seen.disconnect();
    for (const { drawn } of this.places.values()) forget(drawn);
  }

  async look() {
    const told = await ask(`/api/studies/${this.id}/figures`);
    if (told.recommended) this.recommended = told.recommended;
    this.front = told.front || [];
    if (told.error) {
      fill(this.node, el("p", { class: "error" }, told.error));
      this.places.clear();
      return;
    }
    if (!told.panels) {
      if (!this.places.size) fill(this.node, el("p", { class: "quiet" }, "The figures are being drawn …"));
      return;
    }
    const version = `${told.times}-${told.last}`;
    if (version === this.version) return;
    this.version = version;
    const keys = told.panels.map((panel) => panel.key);
    if (keys.join() !== [...this.places.keys()].join()) {
      for (const [key, place] of this.places) {
        if (!keys.includes(key)) {
          forget(place.drawn);
          this.places.delete(key);
        }
      }
      const ordered = new Map(told.panels.map((panel) => [panel.key, this.places.get(panel.key) || this.place(panel)]));
      this.places = ordered;
      fill(this.node, [...ordered.values()].map((place) => place.figure));
    }
    for (const panel of told.panels) {
      const place = this.places.get(panel.key);
      place.title.textContent = panel.title;
      place.caption.textContent = panel.caption;
      place.figure.wanted = version;
      if (place.figure.inSight) this.fetch(place.figure);
    }
  }

  place(panel) {
    const title = el("h2");
    const caption = el("figcaption");
    const drawn = el("div", { class: "drawn" });
    const figure = el("figure", { id: `figure-${panel.key}` }, title, caption, el("div", { class: "scroll" }, drawn));
    Object.assign(figure, { key: panel.key, drawn, wanted: "", has: "", inSight: false });
    this.seen.observe(figure);
    return { figure, title, caption, drawn };
  }

  async fetch(figure) {
    if (figure.busy || figure.has === figure.wanted || !figure.wanted) return;
    figure.busy = true;
    const version = figure.wanted;
    try {
      const made = await ask(`/api/studies/${this.id}/figures/${encodeURIComponent(figure.key)}`);
      const axes = Object.keys(made.layout).filter((key) => /^xaxis\d*$/.test(key)).length;
      figure.drawn.classList.toggle("many", axes > 1 || made.data[0]?.type === "parcoords");
      await draw(figure.drawn, made);
      figure.has = version;
    } catch (error) {
      console.warn(error);
    }
    figure.busy = false;
  }
}
