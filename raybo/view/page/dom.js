// Building the page. Text is only ever set as text: nothing that a user has named is read as HTML.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && typeof value !== "string") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Six significant figures, as everywhere in raybo.
export function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) {
    return value.toExponential(5).replace(/\.?0+e/, "e");
  }
  return String(Number(value.toPrecision(6)));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
  if (seconds < 0) return "0 s";
  if (seconds < 10) return `${Number(seconds.toPrecision(2))} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Number((seconds / 60).toPrecision(3))} min`;
  if (seconds < 172800) return `${Number((seconds / 3600).toPrecision(3))} h`;
  return `${Number((seconds / 86400).toPrecision(3))} days`;
}

export function elapsed(since) {
  return since ? (Date.now() - Date.parse(since)) / 1000 : null;
}

export function moment(at) {
  if (!at) return "";
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${Number(bytes.toPrecision(3))} ${units[unit]}`;
}

export function plural(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

export function pairs(entries, className = "pairs") {
  return el("dl", { class: className }, entries.map(([name, value]) => [el("dt", {}, name), el("dd", {}, shown(value))]));
}

export function state(name) {
  return el("span", { class: `state ${name}` }, name === "pending" ? "running" : name);
}
