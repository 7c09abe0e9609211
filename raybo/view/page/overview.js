// All studies: a line each, and their best values so far in one figure.

import { ask, repeat } from "./api.js";
import { COLOURS, draw, escaped, forget } from "./charts.js";
import { duration, el, fill, moment, shown } from "./dom.js";

export function overviewPage(main) {
  const table = el("div", { class: "wide" });
  const charts = el("div");
  const by = el("select", { "aria-label": "Over", onchange: () => redraw() },
    el("option", { value: "trials" }, "over trials"), el("option", { value: "time" }, "over time"));
  const chosen = new Map(); // whether a study is compared
  const curves = new Map(); // last event and curve
  const places = new Map(); // a figure for each objective and metric: values of different jobs do not compare
  let order = [];
  fill(main, el("h1", {}, "Studies"), table, el("div", { class: "bar" }, el("h2", {}, "Best so far"), by), charts);

  async function redraw() {
    const shownCurves = order.filter((id) => chosen.get(id) && curves.get(id)?.curve.steps.length).map((id) => curves.get(id).curve);
    const groups = new Map();
    for (const curve of shownCurves) {
      const key = JSON.stringify([curve.objective, curve.mode, curve.metric]);
      groups.set(key, [...(groups.get(key) || []), curve]);
    }
    for (const [key, place] of places) {
      if (!groups.has(key)) {
        forget(place.drawn);
        place.figure.remove();
        places.delete(key);
      }
    }
    for (const [key, group] of groups) {
      if (!places.has(key)) {
        const drawn = el("div", { class: "drawn" });
        const better = group[0].mode === "max" ? "the larger the better" : "the smaller the better";
        const figure = el("figure", {}, el("h2", {}, `${group[0].objective}: ${group[0].metric}`), el("figcaption", {}, `Best value so far of each study; ${better}.`), drawn);
        charts.append(figure);
        places.set(key, { figure, drawn });
      }
      await draw(places.get(key).drawn, compared(group, by.value, order));
    }
  }

  const look = repeat(async () => {
    const { studies } = await ask("/api/studies");
    order = studies.filter((study) => !study.error).map((study) => study.id);
    for (const id of order) if (!chosen.has(id)) chosen.set(id, order.indexOf(id) < 12);
    fill(table, list(studies, chosen, () => look.now()));
    let changed = false;
    for (const study of studies) {
      const known = curves.get(study.id);
      const version = `${study.times}-${study.last}`;
      if (study.error || !chosen.get(study.id) || known?.version === version) continue;
      curves.set(study.id, { version, curve: await ask(`/api/studies/${study.id}/curve`) });
      changed = true;
    }
    const drawn = order.filter((id) => chosen.get(id)).join();
    if (changed || drawn !== look.drawn) {
      look.drawn = drawn;
      await redraw();
    }
  }, 2000);
  return () => {
    look.stop();
    for (const place of places.values()) forget(place.drawn);
  };
}

function list(studies, chosen, changed) {
  const focused = document.activeElement?.dataset?.study;
  const rows = studies.map((study) => {
    if (study.error) {
      return el("tr", {}, el("td"), el("td", { title: study.path }, study.file), el("td", { colspan: "9", class: "bad" }, study.error));
    }
    const box = el("input", {
      type: "checkbox", checked: chosen.get(study.id), "aria-label": `compare ${study.file}`, "data-study": study.id,
      onchange: (event) => { chosen.set(study.id, event.target.checked); changed(); },
    });
    if (focused === study.id) requestAnimationFrame(() => box.focus());
    const ended = study.running ? Date.now() : Date.parse(study.latest);
    return el("tr", {}, el("td", {}, box),
      el("td", { title: study.path }, el("a", { href: `#/study/${study.id}` }, study.file)),
      el("td", {}, el("span", { class: study.running ? "badge on" : "badge" }, study.running ? "running" : "not running")),
      el("td", {}, study.objective), el("td", {}, study.method),
      el("td", { class: "number" }, study.best ? shown(study.best.value) : ""), el("td", {}, study.metrics.map(([name, mode]) => `${mode} ${name}`).join(", ")),
      el("td", { class: "number" }, `${study.done}${study.planned ? ` of ${study.planned}` : ""}`),
      el("td", { class: "number" }, study.failed ? String(study.failed) : ""),
      el("td", { class: "number" }, study.began ? duration((ended - Date.parse(study.began)) / 1000) : ""),
      el("td", {}, moment(study.latest)));
  });
  const names = ["", "journal", "", "objective", "method", "best", "metric", "trials", "failed", "took", "latest event"];
  const numbers = new Set(["best", "trials", "failed", "took"]);
  return el("table", {}, el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col", class: numbers.has(name) ? "number" : null }, name)))), el("tbody", {}, rows));
}

function compared(group, by, order) {
  const seconds = Math.max(0, ...group.flatMap((curve) => curve.steps.map((step) => step[1] || 0)));
  const [unit, word] = seconds < 600 ? [1, "seconds"] : seconds < 36000 ? [60, "minutes"] : [3600, "hours"];
  const data = group.filter((curve) => curve.steps.length).map((curve) => ({
    type: "scatter", mode: "lines", name: escaped(curve.name),
    line: { shape: "hv", width: 2, color: COLOURS[order.indexOf(curve.id) % COLOURS.length] },
    x: curve.steps.map((step) => (by === "time" ? (step[1] === null ? null : step[1] / unit) : step[0])),
    y: curve.steps.map((step) => step[2]),
    hovertemplate: "%{y:.6g}<extra>%{fullData.name}</extra>",
  }));
  return { data, layout: {
    height: 400, margin: { l: 70, r: 20, t: 10, b: 50 }, showlegend: true, legend: { orientation: "h", y: -0.2 },
    xaxis: { title: { text: by === "time" ? `${word} since the study began` : "trials that have ended" }, rangemode: "tozero", showline: true, zeroline: false },
    yaxis: { title: { text: escaped(group[0].metric) }, automargin: true, showline: true, zeroline: false },
  } };
}
