"""The report draws every figure that applies, in a real browser, without errors and without a network."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import numpy as np
import pytest

import raybo
from raybo.common.errors import MissingExtra, RayboError, install_command
from raybo.record.events import KINDS, Kind, Pruned
from raybo.reporting import draw
from raybo.reporting.axes import axes_of
from raybo.reporting.emulator import Emulator
from raybo.reporting.figures import report_figures
from raybo.reporting.image import NAME_CHARACTERS, plain_logarithms
from raybo.reporting.importance import importance
from raybo.reporting.page import page, write_report
from raybo.reporting.summary import best_trials, range_in_words
from raybo.study.study import Study
from tests.browser import chromium, tab_of
from tests.reporting.studies import run

pytestmark = pytest.mark.usefixtures("few_draws")

ALWAYS = ["best-so-far", "importance", "slices", "contours", "success", "parallel", "timeline", "suggestions"]


def keys(study):
    return [panel.key for panel in report_figures(study)]


def test_a_study_has_every_figure_that_applies():
    assert keys(run("random", 20)) == ALWAYS
    assert keys(run("random", 20, mode="min")) == ALWAYS


def test_what_does_not_apply_is_left_out():
    study = run("random", 20)
    assert keys(Study(study.description, [])) == []
    assert keys(Study(study.description, study.events[:2])) == ["best-so-far", "timeline", "suggestions"]
    one = run("random", 20, space={"x": raybo.Float(0, 1)})
    assert keys(one) == ["best-so-far", "slices", "timeline", "suggestions"]
    nothing_finished = run("random", 12, failing=1.0)
    assert keys(nothing_finished) == ["best-so-far", "timeline", "suggestions"]


@pytest.mark.slow
def test_captions_are_sentences_and_no_figure_is_empty():
    for panel in report_figures(run("sobol", 30)):
        assert panel.caption[0].isupper()
        assert panel.caption.endswith(".")
        assert panel.figure.data
    many = report_figures(run("random", 20, space={f"p{i}": raybo.Float(0, 1) for i in range(25)}, failing=0.0))
    slices = next(panel for panel in many if panel.key == "slices")
    assert "12 that matter most of 25" in slices.caption


def test_model_figures_go_through_the_recommended_trial(tmp_path):
    rng = np.random.default_rng(1)
    searcher = raybo.Searcher(
        {"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, "random", "max", 1, storage=tmp_path / "s"
    )
    for _ in range(25):
        trial = searcher.ask()
        searcher.tell(trial, rng.normal(-((trial.config["x"] - 0.3) ** 2), 0.3))
    searcher.close()
    study = raybo.load(tmp_path / "s")
    assert study.recommended.number != study.best.number
    made = {panel.key: panel for panel in report_figures(study)}
    assert made["slices"].title == "Slices through the recommended trial"
    assert "as in the recommended trial (the star)" in made["contours"].caption
    star = next(trace for trace in made["contours"].figure.data if trace.name == "recommended")
    assert sorted([star.x[0], star.y[0]]) == sorted(study.recommended.config.values())


@pytest.mark.slow
def test_figures_of_the_model_count_the_pruned_trials_that_it_lacks(tmp_path, monkeypatch):
    study = run("sobol", 20, failing=0.0)
    assert not any("pruned" in panel.caption for panel in report_figures(study))
    (running,) = (trial.number for trial in study.trials if trial.state is raybo.State.PENDING)
    pruned = Study(study.description, [*study.events, Pruned(running, reason="2nd of 2", rule="asha")])
    note = " 1 pruned trial is not in the model."
    assert {p.key for p in report_figures(pruned) if note in p.caption} == {"importance", "slices", "contours"}
    assert [picture_of(one, tmp_path, monkeypatch).subfigs[1].get_supxlabel() for one in (study, pruned)] == [
        "",
        note.strip(),
    ]


def test_page_is_self_contained_and_escapes_user_text():
    study = run("random", 20)
    text = page(study, report_figures(study))
    body = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    assert not re.search(r"(src|href)=", body)
    assert "default-src 'none'" in text
    assert "<h1>train_&lt;net&gt;</h1>" in text
    assert "ValueError: &lt;i&gt;diverged&lt;/i&gt;" in body
    assert "<i>diverged" not in body
    assert "&lt;b&gt;relu&lt;/b&gt;" in body
    for fact in (
        "best accuracy",
        "finished of 20 planned",
        "Failures",
        "Recommended: trial",
        "folds",
        "The best trials",
    ):
        assert fact in text


def test_best_trials_table_has_every_parameter_column():
    study = run("random", 6, space={f"p{i}": raybo.Float(0, 1) for i in range(120)}, failing=0.0)
    for table in re.findall(r"<table>.*?</table>", best_trials(study), re.S):
        head, *rows = table.split("</tr>")[:-1]
        assert {row.count("<td>") for row in rows} == {head.count("<th>")} == {120 + 4}


def test_ranges_are_described():
    assert range_in_words(raybo.Float(1e-4, 1, log=True)) == "0.0001 to 1, logarithmic"
    assert range_in_words(raybo.Integer(2, 10, step=2)) == "2 to 10, integers, in steps of 2"
    assert range_in_words(raybo.Categorical(["a", None])) == "a, None"
    branch = {"kind": "svm", "C": raybo.Float(0, 1)}
    assert range_in_words(raybo.Categorical([branch, None], guess=branch)) == "svm, None, guessed svm"
    assert range_in_words(raybo.Categorical(["a", None], guess=None)) == "a, None, guessed None"


def test_a_chosen_none_differs_from_an_inactive_parameter():
    study = run(
        "random", 12, space={"m": raybo.Categorical([{"kind": "svm", "C": raybo.Integer(7, 7)}, None])}, failing=0
    )
    cells = re.findall(r"<td>(svm|None|)</td><td>(7|)</td>", best_trials(study))
    assert {("svm", "7"), ("None", "")} == set(cells)


def test_file_suffix_selects_a_page_or_a_picture(tmp_path):
    study = run("sobol", 6)
    for name, begins in (
        ("r.html", b"<!DOCTYPE html>"),
        ("r.png", b"\x89PNG"),
        ("r.svg", b"<?xml"),
        ("r.PDF", b"%PDF"),
    ):
        draw(study, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    with pytest.raises(RayboError, match=r"must end in \.html for a page, or \.png, \.svg, \.pdf"):
        draw(study, tmp_path / "r.txt")
    with pytest.raises(RayboError, match="cannot be written"):
        draw(study, tmp_path / "none" / "r.html")
    with pytest.raises(RayboError, match="cannot be written"):
        draw(study, tmp_path / "none" / "r.png")


@pytest.mark.parametrize("trials", [0, 3, pytest.param(12, marks=pytest.mark.slow)])
def test_pictures_of_short_studies(trials, tmp_path):
    study = run("random", 12, failing=0.4)
    draw(Study(study.description, study.events[: 2 * trials + 1]), tmp_path / "r.png")
    one = run("random", 12, space={"x": raybo.Float(0, 1)}, mode="min")
    draw(one, tmp_path / "one.png")
    for name in ("r.png", "one.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def picture_of(study, directory, monkeypatch):
    """The picture of a study, as matplotlib's figure."""
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    draw(study, directory / "r.png")
    return drawn[0]


def test_trials_of_a_picture_have_whole_numbers(tmp_path, monkeypatch):
    study = run("random", 12, failing=0.0)
    for events in (study.events[:9], study.events[:3], study.events[:1]):
        figure = picture_of(Study(study.description, events), tmp_path, monkeypatch)
        assert all(float(tick).is_integer() for tick in figure.axes[0].get_xticks())


MODELS_OF_IMAGES = [f"google/vit-{size}-patch16-{pixels}" for size in ("base", "large") for pixels in (224, 384, 512)]


def test_names_in_a_picture_leave_room_and_are_apart(tmp_path, monkeypatch):
    long = "the_name_of_a_parameter_that_is_sixty_characters_long_"
    space = {"kind": raybo.Categorical(MODELS_OF_IMAGES), f"{long}a": raybo.Float(0, 9), f"{long}b": raybo.Float(0, 9)}
    space["many"] = raybo.Categorical([f"choice {i}" for i in range(50)])
    figure = picture_of(run("sobol", 20, space=space, failing=0.0), tmp_path, monkeypatch)
    figure.draw_without_rendering()
    upper, lower = figure.subfigs
    names = [label.get_text() for label in upper.axes[1].get_yticklabels()]
    assert len(set(names)) == 4
    assert max(map(len, names)) <= NAME_CHARACTERS
    assert min(plot.bbox.width for plot in upper.axes[:3]) > 0.15 * figure.bbox.width
    for plot in (upper.axes[2], *lower.axes):
        for a, b in pairwise(plot.get_xticklabels()):
            turn, (left, right) = np.radians(a.get_rotation()), (label.get_window_extent() for label in (a, b))
            is_apart = np.sin(turn) * (right.x1 - left.x1) > 8.5 * figure.dpi / 72  # a line of text
            assert is_apart if turn else left.x1 < right.x0


@pytest.mark.parametrize("mode", ["max", "min"])
def test_picture_shows_progress_and_the_most_important_slices(mode, tmp_path, monkeypatch):
    study = run("sobol", 30, mode=mode)
    figure = picture_of(study, tmp_path, monkeypatch)
    (line,) = [line for line in figure.axes[0].get_lines() if line.get_label() == "best so far"]
    values = [trial.value for trial in study.trials if trial.value is not None]
    improving = np.maximum.accumulate if mode == "max" else np.minimum.accumulate
    assert list(line.get_ydata()[:-1]) == list(improving(values))
    shares = importance(Emulator.of(study))
    _, lower = figure.subfigs
    labels = [axis.label for axis in axes_of(study)]
    assert labels == ["lr", "depth", "kind", "momentum"]
    assert [plot.get_xlabel() for plot in lower.axes] == [labels[i] for i in shares.order[:3]]
    for plot, i in zip(lower.axes, shares.order, strict=False):  # marks at the ends are whole
        low, high = plot.get_xlim()
        assert low < axes_of(study)[i].range[0] or axes_of(study)[i].is_categorical
        assert high > axes_of(study)[i].range[1] or axes_of(study)[i].is_categorical


def test_without_its_extra_the_remedy_is_told(monkeypatch, tmp_path):
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] in ("plotly", "matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    study = run("random", 6)
    for name in ("r.html", "r.png"):
        with pytest.raises(MissingExtra, match=re.escape(install_command("plot"))):
            draw(study, tmp_path / name)


# ---- in a browser


@pytest.fixture
def browser():
    with chromium() as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("width", [1200, 390])
def test_page_opens_without_browser_errors_or_requests(browser, tmp_path, width):
    write_report(run("random", 30), tmp_path / "report.html")
    with tab_of(browser, width) as (tab, messages, asked):
        tab.goto((tmp_path / "report.html").as_uri())
        tab.wait_for_function("document.querySelectorAll('.js-plotly-plot .main-svg').length > 0")
        tab.wait_for_timeout(500)
        drawn = tab.evaluate(
            "[...document.querySelectorAll('figure')].map(f => [f.id, f.querySelectorAll("
            "'.trace, .bars, .contourlayer path, .heatmaplayer image, .parcoords').length])"
        )
        assert [key for key, _ in drawn] == ALWAYS
        assert all(marks > 0 for _, marks in drawn), drawn
        assert messages == []
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        overlapping = tab.evaluate(OVERLAPS)
        assert overlapping == [], json.dumps(overlapping)
        assert tab.evaluate(COVERED) == []
        wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0


COVERED = """
[...document.querySelectorAll('figure')].flatMap(figure => {
  const bar = figure.querySelector('.modebar');
  if (!bar) return [];
  const p = bar.getBoundingClientRect();
  const texts = '.legendtext, .legendpoints, .trace, .xtitle, .ytitle, .axis-title';
  return [...figure.querySelectorAll(texts)].filter(one => {
    const q = one.getBoundingClientRect();
    return q.width > 0 && Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1
      && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 1;
  }).map(one => [figure.id, one.textContent]);
})
"""
OVERLAPS = """
[...document.querySelectorAll('figure')].flatMap(figure => {
  const texts = [...figure.querySelectorAll('.xtick text, .ytick text, .xtitle, .ytitle, .legendtext')]
    .map(t => [t.textContent, t.getBoundingClientRect()]).filter(([, r]) => r.width > 0);
  const pairs = [];
  texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
    const w = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (w > 2 && h > 4) pairs.push([figure.id, a, b, w, h]);
  }));
  return pairs;
})
"""


# ---- times


def test_spans_of_retried_trials_match_the_journal():
    from raybo.record.states import State
    from raybo.reporting.timeline import busy_share, spans

    asked = {"x": [0.5], "values": [0.5], "tags": {}}
    times = [f"2026-01-01T00:00:{s:02d}.000+00:00" for s in range(60)]
    listed = [
        (Kind.PLANNED, None, {"trials": 3}, 0),
        (Kind.ASKED, 0, asked, 0),
        (Kind.ASKED, 1, asked, 1),
        (Kind.TOLD, 0, {"value": 1.0, "started": times[1], "seconds": 4.0, "host": "a"}, 6),
        (Kind.ASKED, 2, asked, 6),
        (Kind.RETRIED, 1, {"reason": "its worker died", "attempt": 2}, 7),
        (Kind.TOLD, 1, {"value": 2.0, "started": times[8], "seconds": 2.0, "host": "a", "attempt": 2}, 11),
    ]
    events = [KINDS[kind].of(trial, data, number=n, at=times[s]) for n, (kind, trial, data, s) in enumerate(listed, 1)]
    description = run("random", 1, space={"x": raybo.Float(0, 1)}).description
    placed = spans(Study(description, events))
    seen = [(span.trial, span.begin, span.end, span.host, span.lane, span.state) for span in placed]
    assert seen == [
        (0, 1.0, 5.0, "a", 0, State.FINISHED),
        (1, 1.0, 7.0, "a", 1, State.LOST),
        (2, 6.0, 11.0, "a", 0, State.PENDING),
        (1, 8.0, 10.0, "a", 1, State.FINISHED),
    ]
    assert busy_share(Study(description, events), placed) == pytest.approx((4 + 6 + 5 + 2) / (2 * 10))  # two at a time


def test_a_pause_between_two_commands_is_no_idleness():
    from datetime import datetime, timedelta

    from raybo.reporting.timeline import busy_share, pauses_of, spans

    study = run("random", 30, failing=0.0)
    events = list(study.events)

    def later(at, seconds):
        return (datetime.fromisoformat(at) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")

    whole = busy_share(study, spans(study))
    assert pauses_of(study) == []
    assert 0.0 < whole <= 1.0
    # the command was killed after an event: what then was in flight is run again when the next command comes
    half = len(events) // 2
    moved = []
    for i, event in enumerate(events):
        data, pause = dict(event.data), 1_800.0 if i >= half else 0.0
        if "started" in data:
            data["started"] = later(data["started"], pause)
        moved.append(KINDS[event.kind].of(event.trial, data, number=event.number, at=later(event.at, pause)))
    paused = Study(study.description, moved)
    ((begin, end),) = pauses_of(paused)
    assert end - begin == pytest.approx(1_800, abs=60)  # less what a busy machine takes for a trial
    assert busy_share(paused, spans(paused)) == pytest.approx(whole, abs=0.15)
    timeline = next(panel for panel in report_figures(paused) if panel.key == "timeline")
    assert "its pauses do not count" in timeline.caption
    assert "without pauses" in page(paused, [])


MODELS = raybo.Categorical([{"kind": "svm", "C": raybo.Float(0, 1)}, {"kind": "knn", "k": raybo.Integer(1, 9)}])


@pytest.mark.slow
def test_inactive_parameters_have_no_place_and_no_star(tmp_path):
    from raybo.reporting.axes import centre, places_of

    study = run("random", 40, space={"model": MODELS, "x": raybo.Float(0, 1)}, failing=0.0)
    model, c, k, x = axes_of(study)
    assert model.labels == ["svm", "knn"]
    assert [axis.name for axis in (model, c, k, x)] == ["model", "model.svm.C", "model.knn.k", "x"]
    for trial, places in zip(study.trials, places_of(study, study.trials), strict=True):
        is_open = [trial.config["model"]["kind"] == kind for kind in ("svm", "knn")]
        assert list(~np.isnan(places[1:3])) == is_open
    star = study.recommended
    closed, opened = (c, k) if star.config["model"]["kind"] == "knn" else (k, c)
    assert centre(study, opened, x) is star
    assert centre(study, closed).config["model"]["kind"] != star.config["model"]["kind"]
    assert centre(study, c, k) is None
    made = {panel.key: panel for panel in report_figures(study)}
    starred = [t for t in made["contours"].figure.data if t.name == "recommended"]
    titles = [a.title.text for a in made["contours"].figure.select_xaxes() if a.title.text]
    assert len(titles) == 5  # not C beside k, which are never open together
    assert starred
    for trace in starred:
        assert closed.label not in (axis_title(made["contours"], trace, "x"), axis_title(made["contours"], trace, "y"))
    lines = {d.label: d for d in made["parallel"].figure.data[0].dimensions}
    for axis in (c, k):
        assert "none" in lines[axis.label].ticktext
        assert np.isfinite(np.array(lines[axis.label].values)).all()
    draw(study, tmp_path / "r.png")


def axis_title(panel, trace, which):
    """The title of the axis that a trace is drawn over."""
    name = getattr(trace, f"{which}axis") or which
    return getattr(panel.figure.layout, name.replace(which, f"{which}axis", 1)).title.text


def test_simultaneous_trials_are_in_different_lanes():
    from raybo.reporting.timeline import spans

    placed = spans(run("random", 30))
    assert {span.lane for span in placed if span.host} == {0, 1, 2}
    for a in placed:
        for b in placed:
            if a is not b and (a.host, a.lane) == (b.host, b.lane):
                assert a.end <= b.begin + 0.01 or b.end <= a.begin + 0.01


@pytest.mark.parametrize(("ends", "label"), [((8, 64), "20"), ((1e-4, 1.0), "$\\mathdefault{10^{-2}}$")])
def test_short_logarithmic_axes_have_plain_labels(ends, label):
    from matplotlib.figure import Figure

    plot = Figure().add_subplot()
    plot.set_xscale("log")
    plot.set_xlim(*ends)
    for which in (plot.xaxis.set_major_formatter, plot.xaxis.set_minor_formatter):
        which(plain_logarithms()())
    labels = [text.get_text() for text in plot.get_xticklabels() + plot.get_xticklabels(minor=True)]
    assert label in labels
