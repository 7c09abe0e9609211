"""The report of a study: one page that needs nothing but a browser, not even a network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from raybo.common.files import write_file
from raybo.reporting.figures import report_figures
from raybo.reporting.packed import packed_figures
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.summary import best_configuration, best_trials, facts, failures, settings
from raybo.reporting.theme import FONT, TOOLBAR, plotly
from raybo.study.study import Study

# plotly's lines over all parameters are drawn by WebGL code that it compiles itself, hence unsafe-eval
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:"
)
STYLE = f"""
:root {{ color-scheme: light; }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: #f4f6f8; color: #2b3036; font: 15px/1.5 {FONT}; }}
main {{ max-width: 1120px; margin: 0 auto; padding: 28px 20px 60px; }}
h1 {{ font-size: 27px; margin: 0 0 2px; }}
h2 {{ font-size: 19px; margin: 0 0 2px; }}
.what {{ color: #5a616a; margin: 0 0 18px; }}
.facts {{ display: grid; grid-template-columns: repeat(var(--columns), 1fr); gap: 10px; margin: 0 0 14px; }}
@media (max-width: 900px) {{ .facts {{ grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); }} }}
.fact, section, figure {{ background: white; border: 1px solid #e1e5ea; border-radius: 8px; }}
.fact {{ padding: 10px 14px; }}
.fact b {{ display: block; font-size: 21px; font-weight: 600; overflow-wrap: anywhere; }}
.fact span {{ color: #5a616a; font-size: 13px; }}
.best b {{ color: #c0600d; }}
section, figure {{ margin: 14px 0; padding: 16px 18px; }}
figcaption {{ color: #5a616a; margin: 0 0 6px; max-width: 78em; }}
.tables {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 0 14px; }}
.whole {{ grid-column: 1 / -1; min-width: 0; }}
.whole + div, .tables > div:only-child {{
  grid-column: 1 / -1; display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 0 14px; }}
table {{ border-collapse: collapse; width: 100%; font-size: 14px; }}
th, td {{ text-align: left; padding: 4px 10px 4px 0; border-bottom: 1px solid #eceff2; vertical-align: top; }}
th {{ color: #5a616a; font-weight: 500; }}
td {{ overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }}
.wide, .drawn {{ overflow-x: auto; }}
.drawn {{ padding-top: {TOOLBAR}px; }}
.drawn .modebar-container {{ top: -{TOOLBAR}px !important; }}
.many > div {{ min-width: 920px; }}
.wide th, .wide td {{ white-space: nowrap; overflow-wrap: normal; }}
.failed {{ color: #c23b30; }}
footer {{ color: #7a8087; font-size: 13px; }}
"""


def write_report(study: Study, path: Path) -> list[ReportFigure]:
    """Write the report; returns its panels.

    Raises:
        MissingExtra: plotly is not installed.
        RayboError: the file cannot be written.
    """
    made = report_figures(study)
    text = page(study, made)
    write_file(path, text)
    return made


def page(study: Study, made: Sequence[ReportFigure]) -> str:
    """The whole page as text, plotly's program included."""
    plotly()
    title = html.escape(study.description.objective)
    figures = "\n".join(_figure(panel) for panel in made)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{title} - raybo</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{facts(study)}
<div class="tables">
{best_configuration(study)}
<div>
{settings(study)}
</div>
</div>
{failures(study)}
{figures}
{best_trials(study)}
<footer>Made by raybo{_from(study)}.</footer>
</main>
{packed_figures(made)}
</body>
</html>
"""


def _figure(panel: ReportFigure) -> str:
    # several plots side by side are scrolled where the window is narrow
    is_many = sum(1 for _ in panel.figure.select_xaxes()) > 1 or panel.figure.data[0].type in ("parcoords", "heatmap")
    return (
        f'<figure id="{panel.key}"><h2>{html.escape(panel.title)}</h2>'
        f"<figcaption>{html.escape(panel.caption)}</figcaption>"
        f'<div class="drawn{" many" if is_many else ""}"><div id="figure-{panel.key}"></div></div></figure>'
    )


def _from(study: Study) -> str:
    return f" from {html.escape(study.path.name)}" if study.path else ""
