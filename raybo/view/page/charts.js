// plotly's figures in the colours of the page. plotly's program is loaded when the first figure is.

import { el } from "./dom.js";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
let program = null;

function load() {
  program = program || new Promise((resolve, reject) => {
    const script = el("script", { src: "/plotly.js" });
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => reject(new Error("plotly's program cannot be loaded")));
    document.head.append(script);
  });
  return program;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function dressed(layout) {
  const text = colour("--text");
  const line = colour("--line");
  const dressedLayout = { ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true };
  dressedLayout.font = { ...(layout.font || {}), color: text };
  dressedLayout.hoverlabel = { ...(layout.hoverlabel || {}), align: "left" };
  for (const key of Object.keys(layout)) {
    if (/^[xy]axis\d*$/.test(key)) {
      dressedLayout[key] = { ...layout[key], gridcolor: colour("--grid"), linecolor: line, tickcolor: line };
    }
  }
  delete dressedLayout.width;
  return dressedLayout;
}

export function escaped(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export async function draw(node, figure) {
  const Plotly = await load();
  const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
  node.figure = figure;
  await Plotly.react(node, figure.data, dressed(figure.layout || {}), config);
}

export async function forget(node) {
  if (program && node.figure) (await program).purge(node);
}

dark.addEventListener("change", () => {
  for (const node of document.querySelectorAll(".drawn")) if (node.figure) draw(node, node.figure);
});

export const COLOURS = ["#3d7cc9", "#e07a1f", "#4a9a6a", "#9a66b3", "#d1453a", "#8b929a", "#b79a2d", "#3aa0b0"];
