// What the page can change: stop a study, enqueue a configuration, add a note.

import { ask } from "./api.js";
import { el, fill, moment, shown } from "./dom.js";

// A button that asks, and says beside it what came of that.
export async function act(button, says, path, body, after = () => {}) {
  button.disabled = true;
  says.className = "quiet";
  says.textContent = "sending …";
  try {
    const { told } = await ask(path, body);
    says.textContent = told || "";
    after();
  } catch (error) {
    says.className = "error";
    says.textContent = error.message;
  }
  button.disabled = false;
}

export function stopButton(id) {
  const says = el("span", { role: "status" });
  const button = el("button", {
    type: "button", class: "danger",
    onclick: () => {
      if (window.confirm("Stop the study? What has finished is kept, and the same command continues it.")) {
        act(button, says, `/api/studies/${id}/stop`, {});
      }
    },
  }, "Stop the study");
  return el("div", { class: "bar" }, button, says);
}

export function enqueueForm(id, study) {
  const says = el("p", { role: "status" });
  const fields = study.space.map((parameter) => field(parameter, study));
  const open = () => {
    study.space.forEach((parameter, i) => {
      const opener = parameter.opened && fields[parameter.opened[0]];
      fields[i].node.hidden = Boolean(opener) && (opener.node.hidden || opener.input.value !== String(parameter.opened[1]));
      fields[i].input.disabled = fields[i].node.hidden;
    });
  };
  fields.forEach(({ input }) => input.addEventListener("change", open));
  open();
  const button = el("button", { type: "submit" }, "Enqueue");
  const form = el("form", {
    class: "fields", onsubmit: (event) => {
      event.preventDefault();
      const values = fields.map(({ node, input }) => (node.hidden || input.value === "" ? null : Number(input.value)));
      act(button, says, `/api/studies/${id}/enqueue`, { values });
    },
  }, fields.map(({ node }) => node), el("div", { class: "bar" }, button));
  const rules = study.rules.length ? el("p", { class: "quiet" }, `Every configuration satisfies ${study.rules.join("; ")}.`) : null;
  const hint = el("p", { class: "quiet" }, "Fields left empty are filled in by the method.");
  return [hint, rules, form, says];
}

function field(parameter, study) {
  const best = new Map((study.best || { config: [] }).config).get(parameter.name);
  let input;
  if (parameter.kind === "choice") {
    input = el("select", {}, el("option", { value: "" }, "(proposed)"),
      parameter.choices.map((choice, i) => el("option", { value: String(i), selected: choice === shown(best) || (typeof best === "number" && Number(choice) === best) }, choice)));
  } else {
    input = el("input", {
      type: "number", min: String(parameter.low), max: String(parameter.high), placeholder: "proposed",
      step: parameter.step ? String(parameter.step) : "any", value: typeof best === "number" ? String(best) : "",
    });
  }
  const node = el("label", {}, el("span", {}, parameter.name), input, el("small", { class: "quiet" }, parameter.kind === "choice" ? "" : parameter.range));
  return { node, input };
}

export class Notes {
  constructor(id, trial = null) {
    this.path = `/api/studies/${id}/notes`;
    this.id = id;
    this.list = el("ul", { class: "notes" });
    this.said = "";
    const says = el("span", { role: "status" });
    const text = el("textarea", { rows: 2, maxLength: 4000, required: true, "aria-label": "A note", placeholder: trial === null ? "A note about this study" : "A note about this trial" });
    const button = el("button", { type: "submit" }, "Add note");
    const form = el("form", {
      onsubmit: (event) => {
        event.preventDefault();
        if (!text.value.trim()) return;
        const body = trial === null ? { text: text.value } : { text: text.value, trial };
        act(button, says, this.path, body, () => { text.value = ""; });
      },
    }, text, el("div", { class: "bar" }, button, says));
    this.node = el("section", { class: "noted" }, el("h2", {}, "Notes"), this.list, form);
  }

  show(notes) {
    const said = JSON.stringify(notes);
    if (said === this.said) return;
    this.said = said;
    fill(this.list, notes.map((one) => el("li", {}, el("p", {}, one.text),
      el("small", { class: "quiet" }, moment(one.at), one.trial === null ? "" : [", ", el("a", { href: `#/study/${this.id}/trial/${one.trial}` }, `trial ${one.trial}`)]))));
  }
}
