"""The site: `sphinx-build -W -b html docs site` builds it, and nothing on it comes from another machine."""

from __future__ import annotations

import re

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import raybo

project = "raybo"
author = "the authors of raybo"
copyright = "the authors of raybo, Apache-2.0"
version = release = raybo.__version__
language = "en_GB"
smartquotes = False  # two hyphens begin an option

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "sphinx_copybutton"]
root_doc = "index"
exclude_patterns = ["README.md", "reproduction/*/reasons.md"]

myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
suppress_warnings = ["misc.highlighting_failure"]

default_role = "code"  # docstrings have single backquotes around code
autodoc_mock_imports = [
    "keras",
    "lightgbm",
    "lightning",
    "skorch",
    "transformers",
]  # too large to install for docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 90
napoleon_numpy_docstring = False
copybutton_exclude = ".linenos, .gp, .go"  # neither prompts nor output

html_theme = "furo"
html_title = f"raybo {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_use_opensearch = ""


class Layers(SphinxDirective):
    """A flowchart of Mermaid's, which GitHub draws, as rows of boxes: each imports only from the rows below it."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        imports: dict[str, set[str]] = {}
        for upper, lower in re.findall(r"^ *(\w+) --> (\w+)$", "\n".join(self.content), re.MULTILINE):
            imports.setdefault(upper, set()).add(lower)
            imports.setdefault(lower, set())

        def height(room: str) -> int:
            return 1 + max((height(lower) for lower in imports[room]), default=-1)

        rows: dict[int, list[str]] = {}
        for room in sorted(imports):
            rows.setdefault(height(room), []).append(room)
        html = []
        for row in sorted(rows, reverse=True):
            boxes = "".join(
                f"<div><b>{room}</b><span>{', '.join(sorted(imports[room]))}</span></div>" for room in rows[row]
            )
            html.append(f'<div class="layer">{boxes}</div>')
        return [nodes.raw("", f'<div class="layers">{"".join(html)}</div>', format="html")]


def as_text(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """A command's help is plain text: its asterisks (`*.db`) emphasise nothing, and its examples are commands."""
    told: list[str] = []
    in_example = False
    for line in lines:
        example = line.startswith("|")  # what click is told to leave as it is
        if example and not in_example:
            told += ["", ".. code-block:: text", ""]
        elif in_example and not example:
            told.append("")
        plain = line.replace("*", "\\*").replace(r"\*\*Required\*\*", "**Required**")  # sphinx-click's own emphasis
        told.append("   " + line[1:].strip() if example else plain)
        in_example = example
    lines[:] = told


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_directive("mermaid", Layers)
    for part in ("description", "options", "epilog"):
        app.connect(f"sphinx-click-process-{part}", as_text)
