"""Looking at a study in a terminal and in a notebook: one trial, a running study, figures, a method's own story."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest
from rich.console import Console
from scipy.integrate import trapezoid

import raybo
from raybo.errors import TrialError
from raybo.journal import Journal, in_use
from raybo.report.story_figures import stories
from raybo.report.trial_view import trial_view
from raybo.report.watch import follow, watch_study
from raybo.study import Study
from tests.report.studies import run


def text_of(view):
    console = Console(width=160, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(view)
    return capture.get()


# ---- one trial


def test_a_trial_is_told_with_everything_that_is_known():
    study = run("gp-ucb", 12)
    failed = next(trial for trial in study.trials if trial.reason)
    text = text_of(trial_view(study, failed.number))
    for fact in (
        f"trial {failed.number} of train_<net>: failed: ValueError: <i>diverged</i>",
        "net.kind",
        "why it was tried",
        "ms of thought",
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
    assert "upper confidence bound: expects" in late
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
def test_watching_a_study_that_has_ended_shows_it_once(terminal, tmp_path):
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
    for name in ("best_so_far", "importance", "slices", "contours", "parallel", "timeline", "suggestions"):
        assert isinstance(getattr(study.plot, name)(), go.Figure)
    assert study.plot.stories() == {}
    html = study._repr_html_()
    assert "train_&lt;net&gt;" in html
    assert html.count("<tr>") == 11
    assert "0 of 15" in Study(study.description, study.events[:3])._repr_html_()


def test_figures_that_do_not_apply_say_why():
    study = run("random", 3)
    with pytest.raises(TrialError, match="needs 5 finished trials with different values"):
        study.plot.slices()
    one = run("random", 12, space={"x": raybo.Float(0, 1)})
    with pytest.raises(TrialError, match="one parameter only"):
        one.plot.contours()
    with pytest.raises(TrialError, match="the study has no trials"):
        Study(study.description, []).plot.best_so_far()


# ---- what methods tell


@pytest.mark.parametrize(
    ("method", "told", "options"),
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
def test_every_family_of_methods_tells_its_own_story(method, told, options):
    context = {"load": raybo.Float(0, 1)} if "kde" in method else None
    study = run(method, 20, context=context, **options)
    found = [panel for panel in stories(study) if panel is not None]
    assert [panel.key for panel in found] == told
    for panel in found:
        assert panel.caption.endswith(".")
        assert all(len(trace.y) > 0 for trace in panel.figure.data)


def test_the_density_of_each_context_integrates_to_one():
    import numpy as np

    from raybo.context import Density
    from raybo.report.context_figures import marginal
    from raybo.space import Space

    cube = Space({"a": raybo.Float(0, 1), "b": raybo.Float(0, 1), "c": raybo.Categorical(["x", "y"])}).cube
    rng = np.random.default_rng(0)
    law = Density.of(cube.snap(rng.normal(0.5, 0.1, (30, 3))), cube)
    u = np.linspace(-1, 2, 3001)
    for axis in (0, 1):
        assert trapezoid(marginal(law, axis, u), u) == pytest.approx(1.0, abs=1e-3)
