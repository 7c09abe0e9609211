"""A terminal and a notebook show a trial, a running study, figures and a method's own story."""

from __future__ import annotations

import re

import numpy as np
import plotly.graph_objects as go
import pytest
from rich.console import Console
from scipy.integrate import trapezoid

import raybo
from raybo.common.errors import TrialError
from raybo.journal import Journal, in_use
from raybo.record.description import Description
from raybo.record.events import Asked, Failed, Told
from raybo.record.goals import Goals
from raybo.reporting.axes import axes_of, pairs_of
from raybo.reporting.formatting import abbreviated, config_values
from raybo.reporting.story_figures import stories
from raybo.reporting.summary import best_trials, facts, range_in_words
from raybo.reporting.trial_view import trial_view
from raybo.reporting.trials_table import trials_table
from raybo.reporting.watch import follow, watch_study
from raybo.study.study import Study
from tests.reporting.studies import run

pytestmark = pytest.mark.usefixtures("few_draws")


def text_of(view):
    console = Console(width=160, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(view)
    return capture.get()


# ---- one trial


def test_trial_view_shows_everything_known_of_a_trial():
    study = run("gp-ucb", 12)
    failed = next(trial for trial in study.trials if trial.reason)
    text = text_of(trial_view(study, failed.number))
    for fact in (
        f"trial {failed.number} of train_<net>: failed: ValueError: <i>diverged</i>",
        "net.kind",
        "reason",
        "proposed in",
        "attempt 1",
        "on node-a",
        "Traceback ...\nValueError: diverged",
    ):
        assert fact in text
    best = text_of(trial_view(study, study.best.number))
    assert "the best so far" in best
    assert repr(study.best.value) in best
    assert "f1" in best
    late = text_of(trial_view(study, max(t.number for t in study.trials if "theta" in t.tags)))
    assert re.search(r"upper confidence bound \(kappa .*\): accuracy \S+ expected \(\S+ to \S+\), best so far", late)
    assert "kappa" in late


def test_a_trial_that_does_not_exist_is_refused():
    with pytest.raises(TrialError, match="trial 12: no such trial; the study has 12, numbered from 0"):
        trial_view(run("random", 12), 12)
    with pytest.raises(TrialError, match="trial -1: no such trial"):
        trial_view(run("random", 12), -1)


# ---- a study that runs


def test_a_study_is_followed_until_nobody_writes_it(tmp_path):
    study, path = run("random", 12), tmp_path / "job.db"
    journal = Journal(path, study.description)
    rest = list(study.events)
    seen = []

    def pause(seconds):
        assert seconds > 0
        assert in_use(path)
        journal.append(rest[:5])
        del rest[:5]
        if not rest:
            journal.close()

    last = follow(path, lambda study: seen.append(len(study.events)), pause=pause)
    assert not in_use(path)
    assert seen == [0, *range(5, len(study.events), 5), len(study.events)]
    assert last.trials == study.trials


@pytest.mark.parametrize("terminal", [True, False])
def test_watching_an_ended_study_shows_it_once(terminal, tmp_path):
    study, path = run("random", 12), tmp_path / "job.db"
    journal = Journal(path, study.description)
    journal.append(study.events)
    journal.close()
    console = Console(width=160, force_terminal=terminal, record=True, height=40)
    with console.capture() as capture:
        watch_study(path, console, 5)
    assert "best" in capture.get()
    assert f"trial {study.best.number}" in capture.get()


# ---- in a notebook


def test_a_study_has_figures_and_a_table():
    study = run("sobol", 15)
    shown = raybo.plots(study)
    for name in ("best_so_far", "importance", "slices", "contours", "parallel", "timeline", "suggestions"):
        assert isinstance(getattr(shown, name)(), go.Figure)
    assert shown.stories() == {}
    html = shown._repr_html_()
    assert "train_&lt;net&gt;" in html
    assert html.count("<tr>") == 11
    assert "0 of 15" in raybo.plots(Study(study.description, study.events[:3]))._repr_html_()


def test_figures_that_do_not_apply_say_why():
    study = run("random", 3)
    with pytest.raises(TrialError, match="needs 5 finished trials with different values"):
        raybo.plots(study).slices()
    one = run("random", 12, space={"x": raybo.Float(0, 1)})
    with pytest.raises(TrialError, match="one parameter only"):
        raybo.plots(one).contours()
    with pytest.raises(TrialError, match="the study has no trials"):
        raybo.plots(Study(study.description, [])).best_so_far()


# ---- what the figures show


def traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


@pytest.fixture(scope="module", params=["max", "min"])
def ended(request):
    """A study in which the third parameter matters most by far, with a trial that failed and one that was lost."""
    space = {"a": raybo.Float(1e-3, 1, log=True), "b": raybo.Float(0, 1), "c": raybo.Float(2, 4)}
    searcher = raybo.Searcher(space, "sobol", request.param, 0)
    sign, events = 1.0 if request.param == "max" else -1.0, []
    for number in range(26):
        asked = searcher.propose(searcher.history)
        config = searcher.space.unpack(asked.data["values"])
        value = sign * (-4 * (config["c"] - 3) ** 2 - 0.5 * (config["b"] - 0.2) ** 2 + 0.05 * config["a"])
        end = Told(number, value=value, seconds=2.0)
        if number in (5, 9):
            end = Failed.of(number, {"reason": "no", **({"kind": "lost"} if number == 9 else {})})
        events += [searcher.apply(Asked.of(number, {**asked.data, "suggest_seconds": 0.5}))]
        events += [searcher.apply(end)]
    return Study(Description("job", Goals(("v",), (request.param,)), searcher.space, "sobol", 0), events)


def test_best_so_far_ignores_and_marks_failed_trials(ended):
    figure = raybo.plots(ended).best_so_far()
    (line,), (crosses,), (marks,) = (traces(figure, name) for name in ("best so far", "failed", "trial"))
    improving = np.maximum.accumulate if ended.mode == "max" else np.minimum.accumulate
    done = [trial for trial in ended.trials if trial.value is not None]
    corners = np.searchsorted(line.x[:-1], [trial.number for trial in done], side="right") - 1
    np.testing.assert_array_equal(np.array(line.y)[corners], improving([trial.value for trial in done]))
    assert list(marks.x) == [trial.number for trial in done]
    assert list(crosses.x) == [5, 9]
    trial, suggestion = raybo.plots(ended).suggestions().data
    assert (trial.name, set(trial.y), suggestion.name, set(suggestion.y)) == ("trial", {2.0}, "suggestion", {0.5})


def test_importance_figure_ranks_the_influential_parameter_first(ended):
    total, alone = raybo.plots(ended).importance().data
    assert (total.name, alone.name) == ("total", "alone")
    assert (total.y[-1], alone.y[-1]) == ("c", "c")  # the first from above
    assert total.x[-1] > 0.8
    assert sum(total.x) > sum(alone.x)


def test_slices_go_through_the_best_trial(ended):
    figure = raybo.plots(ended).slices()
    ranges = {"a": (1e-3, 1), "b": (0, 1), "c": (2, 4)}
    lines = [trace for trace in traces(figure, "model") if trace.mode == "lines"]
    marks = traces(figure, "trial")
    names = [figure.layout[f"xaxis{k or ''}"].title.text for k in (0, 2, 3)]
    assert names[0] == "c"
    assert sorted(names) == ["a", "b", "c"]
    for name, line, mark in zip(names, lines, marks, strict=True):
        assert (line.x[0], line.x[-1]) == pytest.approx(ranges[name])
        assert list(mark.x) == pytest.approx([t.config[name] for t in ended.trials if t.value is not None])
        at_best = np.interp(ended.best.config[name], line.x, line.y)
        assert at_best == pytest.approx(ended.best.value, abs=0.1)
        if name == "a":
            assert line.x[50] == pytest.approx(10**-1.5)  # the middle of a logarithmic axis
    c = lines[0]
    best = int(np.argmax(c.y) if ended.mode == "max" else np.argmin(c.y))
    assert c.x[best] == pytest.approx(3.0, abs=0.1)


def test_contour_map_puts_parameters_on_their_axes(ended):
    figure = raybo.plots(ended).contours()
    map_ = figure.data[0]
    assert figure.layout.xaxis.title.text == "c"
    assert (map_.x[0], map_.x[-1]) == (2.0, 4.0)
    assert map_.reversescale is (ended.mode == "min")  # darker is better
    z = np.array(map_.z) if ended.mode == "max" else -np.array(map_.z)
    assert (map_.x[np.argmax(z.mean(axis=0))]) == pytest.approx(3.0, abs=0.1)
    assert np.ptp(z.mean(axis=0)) > 4 * np.ptp(z.mean(axis=1))
    (star,) = traces(figure, "recommended")[:1]
    assert star.x[0] == pytest.approx(ended.recommended.config["c"])


def test_parallel_lines_are_trials_with_the_best_last(ended):
    (lines,) = raybo.plots(ended).parallel().data
    a, b, c, value = (np.array(dimension["values"]) for dimension in lines.dimensions)
    done = sorted(
        (trial for trial in ended.trials if trial.value is not None),
        key=lambda trial: trial.value if ended.mode == "max" else -trial.value,
    )
    assert 10**a == pytest.approx([trial.config["a"] for trial in done])
    assert b == pytest.approx([trial.config["b"] for trial in done])
    assert c == pytest.approx([trial.config["c"] for trial in done])
    is_log = ended.mode == "min"  # losses over more than two decades
    assert (10 ** value[-1] if is_log else value[-1]) == pytest.approx(ended.best.value)
    assert lines.line.reversescale is (ended.mode == "min")


@pytest.mark.parametrize(
    ("choices", "labels"),
    [
        ([1, "1", None, "None", "b"], ["1", "'1'", "None", "'None'", "b"]),
        ([0.12345671, 0.12345672, 1.0], ["0.12345671", "0.12345672", "1"]),
        (["a" * 30, "b" * 30, "c"], ["a" * 15 + "...", "b" * 15 + "...", "c"]),
    ],
)
def test_choices_that_are_written_alike_are_labelled_as_code(choices, labels):
    (axis,) = axes_of(run("random", 1, space={"c": raybo.Categorical(choices)}))
    assert axis.labels == labels


@pytest.mark.parametrize(
    "texts",
    [
        ["google/vit-base-patch16-224", "google/vit-base-patch16-384", "google/vit-large-patch16-224", "resnet"],
        ["the_size_of_the_first_A_of_all_the_hidden_layers", "the_size_of_the_first_B_of_all_the_hidden_layers"],
        [f"{'x' * 20}{letter}{'y' * 20}" for letter in "ab"] + [f"{letter}{'z' * 20}" for letter in "ab"],
        [f"{'x' * 20}{letter}{'x' * 20}" for letter in "ab"] + [f"{'y' * 40}{letter}" for letter in "ab"],
    ],
)
@pytest.mark.parametrize("longest", [10, 18])
def test_texts_that_are_cut_stay_different(texts, longest):
    cut = abbreviated(texts, longest)
    assert len(set(cut)) == len(texts)
    for text, short in zip(texts, cut, strict=True):
        assert short == text if len(text) <= longest else len(short) <= longest
    axis = axes_of(run("random", 1, space={"c": raybo.Categorical(texts)}))[0]
    assert len(set(axis.labels)) == len(texts)


def test_parallel_axes_tell_long_choices_apart():
    names = ["google/vit-base-patch16-224", "google/vit-base-patch16-384"]
    study = run("random", 12, space={"c": raybo.Categorical(names), "x": raybo.Float(0, 1)}, failing=0.0)
    dimension = raybo.plots(study).parallel().data[0].dimensions[0]
    assert len(set(dimension.ticktext)) == 2


def test_maps_of_a_choice_with_what_it_opens_come_last():
    branches = raybo.Categorical([{"kind": "svm", "C": raybo.Float(0, 1)}, {"kind": "knn", "k": raybo.Integer(1, 9)}])
    study = run("random", 12, space={"model": branches, "x": raybo.Float(0, 1)}, failing=0.0)
    pairs = [{a.name, b.name} for a, b in pairs_of(study, axes_of(study))]
    assert pairs[-2:] == [{"model", "model.svm.C"}, {"model", "model.knn.k"}]
    assert {"model.svm.C", "model.knn.k"} not in pairs  # never open together
    assert len(pairs) == 5


def test_summary_counts_trials_and_ranks_by_mode(ended):
    summary = facts(ended)
    assert "the larger the better" in summary if ended.mode == "max" else "the smaller the better" in summary
    for number, name in (("24", "finished"), ("2", "failed"), ("48 s", "total trial time")):
        assert f"<b>{number}</b><span>{name}</span>" in summary
    rows = re.findall(r"<tr><td>(\d+)</td>", best_trials(ended))
    sign = -1 if ended.mode == "max" else 1
    done = sorted((sign * trial.value, trial.number) for trial in ended.trials if trial.value is not None)
    assert [int(row) for row in rows] == [number for _, number in done[:10]]


@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_lucky_and_the_steady_are_told_apart(mode):
    study = run("sbo-kde", 20, mode=mode, context={"load": raybo.Float(0, 1)}, failing=0.0)
    (panel,) = [panel for panel in stories(study) if panel is not None and panel.key == "expected"]
    done = [trial for trial in study.trials if trial.value is not None]
    lucky = (max if mode == "max" else min)(done, key=lambda trial: trial.value)
    names = [trace.name for trace in panel.figure.data]
    assert f"best value measured: trial {lucky.number}" in names
    assert f"best expectation: trial {study.best.number}" in names
    (marks,) = traces(panel.figure, "trial")
    assert np.corrcoef(marks.x, marks.y)[0, 1] > 0.5
    assert np.median(np.abs(np.array(marks.x) - marks.y)) < np.std(marks.x)


# ---- stories of methods


@pytest.mark.parametrize(
    ("method", "keys", "options"),
    [
        ("gp-ucb", ["inexactness"], {"diagnostics": 2}),
        ("uhe", ["bandit"], {}),
        ("portfolio", ["bandit"], {}),
        ("wang-defreitas", ["lengthscales"], {}),
        ("a-gp-ucb", ["lengthscales"], {}),
        ("sbo-kde", ["contexts", "expected"], {}),
        ("drbo-kde", ["contexts", "expected"], {"atoms": 32, "infimum": 32}),
        ("gibo", ["local-path"], {}),
        ("min-ucb", ["local-path"], {}),
        ("turbo", ["region"], {}),
        ("ei", [], {}),
    ],
)
def test_every_family_of_methods_tells_its_own_story(method, keys, options):
    context = {"load": raybo.Float(0, 1)} if "kde" in method else None
    study = run(method, 20, context=context, **options)
    panels = [panel for panel in stories(study) if panel is not None]
    assert [panel.key for panel in panels] == keys
    for panel in panels:
        assert panel.caption.endswith(".")
        assert all(len(trace.y) > 0 for trace in panel.figure.data)
        if panel.key == "contexts":
            low, high = panel.figure.layout.yaxis.range
            assert all(low <= min(trace.y) <= max(trace.y) <= high for trace in panel.figure.data)


def test_the_density_of_each_context_integrates_to_one():
    from raybo.context import Density
    from raybo.reporting.context_figures import marginal
    from raybo.space import Space

    cube = Space({"a": raybo.Float(0, 1), "b": raybo.Float(0, 1), "c": raybo.Categorical(["x", "y"])}).cube
    rng = np.random.default_rng(0)
    law = Density.of(cube.snap(rng.normal(0.5, 0.1, (30, 3))), cube)
    u = np.linspace(-1, 2, 3001)
    for axis in (0, 1):
        assert trapezoid(marginal(law, axis, u), u) == pytest.approx(1.0, abs=1e-3)


def test_a_configuration_is_shown_with_as_many_digits_as_its_range_needs(tmp_path):
    space = {"d": raybo.Float(0.5, 0.9999999, scale="logit"), "t": raybo.Float(1e6, 1e6 + 2), "x": raybo.Float(0, 1)}
    searcher = raybo.Searcher(space, "random", seed=0, storage=tmp_path / "a.db")
    searcher.add({"d": 0.99999985, "t": 1000000.388, "x": 0.123456789}, 1.0)
    searcher.add({"d": 0.75, "t": 1000001.5, "x": 0.123456789}, 0.5)
    searcher.close()
    study = raybo.load(tmp_path / "a.db")
    assert config_values(study, study.trials[0]) == [("d", "0.99999985"), ("t", "1000000.388"), ("x", "0.123457")]
    assert range_in_words(study.space.parameters[("d",)]) == "0.5 to 0.9999999, on a logit scale"
    shown = text_of(trials_table(study, study.trials))
    assert re.search(r"the same in each:\s+x=0.123457\s*$", shown)
