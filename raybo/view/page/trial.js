// One trial: everything that is known of it.

import { ask, repeat } from "./api.js";
import { draw, escaped, forget } from "./charts.js";
import { Notes } from "./forms.js";
import { duration, el, elapsed, fill, moment, pairs, shown, size, state } from "./dom.js";

export function trialPage(main, id, number, crumbs) {
  const body = el("div");
  const curve = el("div", { class: "drawn" });
  let last = "";
  const notes = new Notes(id, number);
  fill(main, body, notes.node);
  const look = repeat(async () => {
    const trial = await ask(`/api/studies/${id}/trials/${number}`);
    notes.show(trial.notes);
    delete trial.notes;
    const version = JSON.stringify(trial);
    if (version === last) return;
    last = version;
    crumbs(["study", `#/study/${id}`], [`trial ${number}`]);
    fill(body, page(trial, id, curve));
    if (trial.reports.length) await draw(curve, reported(trial));
  }, 2000);
  const ticking = setInterval(() => {
    for (const node of body.querySelectorAll("[data-since]")) node.textContent = duration(elapsed(node.dataset.since));
  }, 1000);
  return () => {
    look.stop();
    clearInterval(ticking);
    forget(curve);
  };
}

function section(title, ...content) {
  return el("section", {}, el("h2", {}, title), ...content);
}

function page(trial, id, curve) {
  const neighbour = (number, words) => (number >= 0 && number < trial.of
    ? el("a", { href: `#/study/${id}/trial/${number}` }, words) : el("span", { class: "quiet" }, words));
  const facts = [];
  if (trial.value !== null) facts.push([trial.metric, trial.value]);
  else if (trial.reports.length) {
    const [step, value] = trial.reports[trial.reports.length - 1];
    const at = trial.fidelity.length ? `${step} ${trial.fidelity[0][0]}` : `step ${step}, the last`;
    facts.push([`${trial.metric} at ${at}`, value]);
  }
  if (trial.seconds !== null) facts.push(["took", duration(trial.seconds)]);
  if (trial.host) facts.push(["on", trial.host]);
  if (trial.attempt > 1) facts.push(["attempts", trial.attempt]);
  return [
    el("h1", {}, `Trial ${trial.number} `, state(trial.state)),
    el("p", { class: "pages" }, neighbour(trial.number - 1, "← previous"), " ", neighbour(trial.number + 1, "next →"),
      trial.since ? [" ", el("b", { "data-since": trial.since }, duration(elapsed(trial.since)))] : null),
    trial.reason ? el("p", { class: "bad" }, trial.reason) : null,
    el("div", { class: "columns" },
      facts.length ? section("Result", pairs(facts), trial.metrics.length ? pairs(trial.metrics) : null) : null,
      section("Configuration", pairs([...trial.config, ...trial.fidelity])),
      trial.context.length ? section("Context", pairs(trial.context)) : null,
      section("Reason", el("p", {}, trial.why || "not recorded"),
        trial.tags.length ? el("details", {}, el("summary", {}, "Tags of the method"), pairs(trial.tags)) : null)),
    trial.reports.length ? section("Learning curve", curve) : null,
    trial.traceback ? section("Traceback", el("pre", { tabindex: "0" }, trial.traceback)) : null,
    trial.output ? section("Output (the end)", el("pre", { tabindex: "0" }, trial.output)) : null,
    trial.files.length || trial.directory.includes("://") ? section("Files", files(trial, id)) : null,
    section("Events", events(trial)),
  ];
}

function files(trial, id) {
  const link = (file) => el("a", { href: `/api/studies/${id}/trials/${trial.number}/file?key=${encodeURIComponent(file.key)}`, download: "" }, file.name);
  const rows = trial.files.map((file) => el("tr", {}, el("td", {}, link(file)), el("td", { class: "number" }, size(file.size)),
    el("td", {}, moment(file.changed * 1000))));
  return [el("p", { class: "quiet" }, trial.directory), el("div", { class: "wide" }, el("table", {}, el("tbody", {}, rows)))];
}

function events(trial) {
  const words = { asked: "proposed", told: "finished", retried: "retried", met: "context observed" };
  const rows = trial.events.map((event) => el("tr", {}, el("td", { class: "number" }, String(event.number)), el("td", {}, moment(event.at)),
    el("td", {}, words[event.kind] || event.kind), el("td", {}, event.told.map(([key, value]) => `${key} ${shown(value)}`).join(", "))));
  return el("div", { class: "wide" }, el("table", {}, el("tbody", {}, rows)));
}

function reported(trial) {
  return {
    data: [{ type: "scatter", mode: "lines+markers", x: trial.reports.map((one) => one[0]), y: trial.reports.map((one) => one[1]), line: { color: "#3d7cc9" } }],
    layout: { height: 300, margin: { l: 70, r: 20, t: 10, b: 50 }, xaxis: { title: { text: "step" } }, yaxis: { title: { text: escaped(trial.metric) } } },
  };
}
