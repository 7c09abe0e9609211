"""Plotly's program and the figures as parts of a page, compressed: a third of their size."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence

from raybo.reporting.report_figure import ReportFigure

CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["select2d", "lasso2d"]}
# Python's base 85, in which nothing can be taken for a tag
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~"
SCRIPT = """
(async () => {
  const codes = new Uint8Array(128);
  [...ALPHABET].forEach((letter, i) => { codes[letter.charCodeAt(0)] = i; });
  const unpacked = async (id) => {
    const text = document.getElementById(id).textContent.trim(), size = Math.floor(text.length * 4 / 5);
    const bytes = new DataView(new ArrayBuffer(size + 4));
    for (let i = 0, j = 0; i < text.length; i += 5, j += 4) {
      let word = 0;
      for (let k = i; k < i + 5; k++) word = word * 85 + (k < text.length ? codes[text.charCodeAt(k)] : 84);
      bytes.setUint32(j, word);
    }
    const stream = new Blob([bytes.buffer.slice(0, size)]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Response(stream).text();
  };
  const program = document.createElement('script');
  program.textContent = await unpacked('plotly');
  document.head.append(program);
  for (const [key, figure] of Object.entries(JSON.parse(await unpacked('figures'))))
    Plotly.newPlot('figure-' + key, figure.data, figure.layout, CONFIG);
})().catch(error => {
  document.querySelectorAll('.drawn').forEach(place => {
    place.textContent = 'This browser cannot draw the figures (browsers since 2023 can): ' + error;
  });
});
"""


def packed_figures(made: Sequence[ReportFigure]) -> str:
    """Return the scripts that draw each figure into the element called figure- and its key."""
    from plotly.offline import get_plotlyjs

    figures = ",".join(f"{json.dumps(panel.key)}:{panel.figure.to_json()}" for panel in made)
    script = SCRIPT.replace("ALPHABET", json.dumps(ALPHABET)).replace("CONFIG", json.dumps(CONFIG))
    parts = {"plotly": get_plotlyjs(), "figures": f"{{{figures}}}"}
    data = "\n".join(f'<script type="text/plain" id="{key}">{packed(text)}</script>' for key, text in parts.items())
    return f"{data}\n<script>{script}</script>"


def packed(text: str) -> str:
    """Return a text as the page holds it: deflated, in base 85."""
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode().replace("<", ",")
