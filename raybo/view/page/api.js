// Asking the server, and asking again while the page can be seen.

export class Refused extends Error {}

export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let answer;
  try {
    answer = await fetch(path, { ...options, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Refused("raybo view does not answer; is it still running?");
  }
  if (answer.status === 401) throw new Refused("open the address that raybo view has printed, with its token");
  const type = answer.headers.get("Content-Type") || "";
  const told = type.startsWith("application/json") ? await answer.json() : { error: (await answer.text()).trim() };
  if (!answer.ok) throw new Refused(told.error || `the server answered ${answer.status}`);
  return told;
}

export function sayLink(text) {
  const link = document.getElementById("link");
  if (link.textContent !== text) link.textContent = text;
}

// Calls `work` now and after every pause, until `stop` is called; not while the page is hidden.
export function repeat(work, pause) {
  let timer = null;
  let stopped = false;
  let busy = false;
  async function turn() {
    if (busy || stopped) return;
    clearTimeout(timer);
    busy = true;
    try {
      await work();
      sayLink("");
    } catch (error) {
      if (!(error instanceof Refused)) console.error(error);
      sayLink(error.message);
    }
    busy = false;
    if (!stopped && !document.hidden) timer = setTimeout(turn, pause);
  }
  const seen = () => { if (!document.hidden) turn(); };
  document.addEventListener("visibilitychange", seen);
  turn();
  return {
    now: turn,
    stop() {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    },
  };
}
