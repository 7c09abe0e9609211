// Which page is shown: #/ all studies, #/study/ID one of them, #/study/ID/trial/N a trial of it.

import { ask } from "./api.js";
import { el, fill } from "./dom.js";
import { overviewPage } from "./overview.js";
import { studyPage } from "./study.js";
import { trialPage } from "./trial.js";

if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the token is in a cookie now

const main = document.getElementById("main");
const path = document.getElementById("path");
let leave = () => {};
let alone = null; // the only study, which is then shown at once

function crumbs(...parts) {
  fill(path, parts.map(([name, where]) => [" / ", where ? el("a", { href: where }, name) : el("span", {}, name)]));
  document.title = [...parts.map(([name]) => name).reverse(), "raybo"].join(" – ");
}

let turn = 0;

async function show() {
  const mine = ++turn;
  leave();
  leave = () => {};
  const [kind, id, what, number] = location.hash.replace(/^#\/?/, "").split("/");
  window.scrollTo(0, 0);
  if (kind === "study" && /^[0-9a-f]{16}$/.test(id || "")) {
    leave = what === "trial" && /^\d+$/.test(number || "")
      ? trialPage(main, id, Number(number), crumbs)
      : studyPage(main, id, crumbs);
    return;
  }
  if (location.hash === "" && alone === null) {
    try {
      const { studies } = await ask("/api/studies");
      alone = studies.length === 1 && !studies[0].error ? studies[0].id : false;
    } catch (error) {
      if (mine === turn) fill(main, el("p", { class: "error" }, error.message));
      return;
    }
    if (mine !== turn) return; // somewhere else was opened meanwhile
    if (alone) {
      location.replace(`#/study/${alone}`);
      return;
    }
  }
  crumbs();
  leave = overviewPage(main);
}

window.addEventListener("hashchange", show);
show();
