"""Fronts and constraints are shown in tables, the page's figures, columns and exports."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import raybo
from raybo.engine.status import Status
from raybo.experiments.in_process import tune_here
from raybo.integrations.export import exporter
from raybo.reporting import draw, image
from raybo.reporting.figures import report_figures
from raybo.reporting.front_view import LONGEST, spread
from raybo.reporting.goal_figures import front
from raybo.reporting.tables import study_view
from raybo.reporting.trial_view import trial_view
from raybo.study.study import load

pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two metrics and a constraint, with failures."""
    return made(tmp_path_factory.mktemp("study") / "job.db", "<= 1.5")


@pytest.fixture(scope="module")
def hopeless(tmp_path_factory):
    """One metric, and a constraint that nothing keeps."""
    return made(tmp_path_factory.mktemp("study") / "job.db", "<= -1", metrics=None)


def made(path, rule, metrics=("accuracy", "seconds")):
    several = {"metrics": dict(zip(metrics, ("max", "min"), strict=True))} if metrics else {"metric": "accuracy"}

    @raybo.objective(
        space={"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, constraints={"memory <b>": rule}, **several
    )
    def job(config):
        x, y = config["x"], config["y"]
        if x > 0.9:
            raise ValueError("too much")
        return {"accuracy": 1 - (x - 0.7) ** 2 - (y - 0.2) ** 2, "seconds": x + y, "memory <b>": 2 * x + y}

    tune_here(job, trials=24, method="random", seed=3, storage=path, options={}, between=lambda: None)
    return load(path)


def text_of(view):
    console = Console(width=150)
    with console.capture() as shown:
        console.print(view)
    return shown.get()


def test_table_shows_the_front_and_broken_constraints(study):
    text = text_of(study_view(study, 30))
    assert "max accuracy, min seconds with memory <b> <= 1.5" in text
    assert f"front {len(study.front)} trials, hypervolume {study.hypervolume():.6g} above" in text
    broken = next(trial for trial in study.trials if trial.violations)
    assert study.broken(broken) in " ".join(text.split()) or "infeasible" in text
    assert f"constraints: memory <b> <= 1.5: broken by {sum(bool(t.violations) for t in study.trials)} of" in text
    for width in (40, 70, 200):
        shown = Console(width=width, file=io.StringIO())
        shown.print(study_view(study, 30))
        assert shown.file.getvalue().count("infeasible") == sum(bool(trial.violations) for trial in study.trials)


def test_one_trial_is_told_with_all_its_numbers(study):
    first = study.front[0]
    text = " ".join(text_of(trial_view(study, first.number)).split())
    assert f"accuracy {first.values['accuracy']!r}, seconds {first.values['seconds']!r}" in text
    assert "on the front" in text
    assert "other metrics" not in text
    broken = next(trial for trial in study.trials if trial.violations)
    assert study.broken(broken) in " ".join(text_of(trial_view(study, broken.number)).split())
    assert "job: infeasible, accuracy" in text_of(trial_view(study, broken.number))


def test_where_nothing_is_feasible_the_nearest_is_told(hopeless):
    assert "comes closest: memory <b>" in " ".join(text_of(study_view(hopeless, 3)).split())
    assert "feasible" not in repr(hopeless)
    made = {panel.key: panel for panel in report_figures(hopeless)}
    assert set(made) >= {"margins", "best-so-far"}
    assert made["slices"].title == "Slices through the trial with the best accuracy"


def test_model_figures_name_the_trial_they_go_through(study):
    made = {panel.key: panel for panel in report_figures(study)}
    named = "the trial with the best accuracy on the front"
    assert made["slices"].title == f"Slices through {named}"
    assert f"as in {named} (the star)" in made["contours"].caption
    assert made["importance"].caption.startswith(
        "First-order and total Sobol indices: the share of the variance of accuracy"
    )


@pytest.mark.slow
def test_page_has_front_margins_and_success_figures(study, tmp_path):
    keys = [panel.key for panel in report_figures(study)]
    assert keys[:4] == ["front", "hypervolume", "best-so-far", "margins"]
    assert "success" in keys
    draw(study, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<h2>Pareto front</h2>" in page
    assert "memory <b>" not in page
    volumes = next(panel for panel in report_figures(study) if panel.key == "hypervolume").figure.data[0].y
    assert volumes[-1] == pytest.approx(study.hypervolume())
    assert list(volumes) == sorted(volumes)
    draw(study, tmp_path / "page.png")


def test_the_picture_of_several_metrics_has_the_front(study, tmp_path):
    draw(study, tmp_path / "page.svg")
    picture = (tmp_path / "page.svg").read_text()
    assert "on the front" in picture
    assert "best so far" not in picture


@pytest.fixture
def walled():
    """Trials of accuracy near 0.95, but for one that took no time, and one that took for ever."""
    searcher = raybo.Searcher(
        {"x": raybo.Float(0, 1)}, "random", seed=0, metrics={"accuracy": "max", "seconds": "min"}
    )  # fmt: skip
    values = [(0.94 + 0.001 * i, 1.0 + 0.1 * i) for i in range(12)] + [(0.94 - 0.001 * i, 2.0) for i in range(8)]
    for accuracy, seconds in [*values, (0.1, 0.2), (0.93, 5_000.0)]:
        searcher.tell(searcher.ask(), {"accuracy": accuracy, "seconds": seconds})
    return searcher


def test_far_worse_trials_do_not_squeeze_the_front(walled):
    shown = front(walled)
    assert "Triangles at the edge are values far worse than the frame." in shown.caption
    low, high = shown.figure.layout.xaxis.range
    assert 0.9 < low < 0.932 < 0.951 < high < 1.0
    assert shown.figure.layout.yaxis.range[1] < 3.0
    traces = {trace.name: trace for trace in shown.figure.data}
    best, others = traces["on the front"], traces["dominated"]
    at = [trial.number for trial in walled.front].index(20)
    assert (best.marker.symbol[at], best.y[at]) == ("triangle-left", 0.2)
    assert low < best.x[at] < 0.932
    assert "accuracy 0.1" in best.text[at]
    assert set(np.delete(best.marker.symbol, at)) == {"circle"}
    assert others.marker.symbol[-1] == "triangle-up"
    assert shown.figure.layout.yaxis.type == "linear"
    assert 2.1 < others.y[-1] < shown.figure.layout.yaxis.range[1]


def test_the_picture_marks_far_worse_trials_of_a_front(walled):
    matplotlib = pytest.importorskip("matplotlib.figure")
    plot = matplotlib.Figure().subplots()
    image._front(walled, plot)
    assert plot.get_xlim()[0] > 0.9
    assert plot.get_ylim()[1] < 3.0
    marks = {line.get_marker(): line.get_data() for line in plot.lines if len(line.get_xdata())}
    assert {"<", "^"} <= set(marks)
    assert plot.get_xlim()[0] < marks["<"][0][0] < 0.932


def test_infeasible_trials_are_marked_in_best_so_far(study):
    figure = next(panel for panel in report_figures(study) if panel.key == "best-so-far").figure
    marks = {trace.name: list(trace.x) for trace in figure.data}
    done = [trial for trial in study.trials if trial.value is not None]
    assert marks["breaks a constraint"] == [trial.number for trial in done if trial.violations]
    assert marks["trial"] == [trial.number for trial in done if trial.feasible]


@pytest.mark.slow
def test_page_without_a_feasible_trial_is_drawn(hopeless, tmp_path):
    draw(hopeless, tmp_path / "page.html")
    assert "Nothing is feasible yet" in (tmp_path / "page.html").read_text()
    draw(hopeless, tmp_path / "page.png")


def test_a_long_front_is_shortened_between_its_ends(study):
    front = list(study.trials) * 3
    assert len(spread(front)) == LONGEST
    assert (spread(front)[0], spread(front)[-1]) == (front[0], front[-1])


def test_exports_hold_every_number(study, hopeless, tmp_path):
    exporter("csv", str(tmp_path / "o.csv"))(study)
    with open(tmp_path / "o.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    broken = next(trial for trial in study.trials if trial.violations)
    assert json.loads(rows[broken.number]["violations"]) == dict(broken.violations)
    assert float(rows[broken.number]["metric.seconds"]) == broken.values["seconds"]
    assert float(rows[broken.number]["accuracy"]) == float(rows[broken.number]["value"]) == broken.value
    frame = study.to_dataframe()
    assert frame["accuracy"].equals(frame["value"].rename("accuracy"))
    assert frame["metric.seconds"][broken.number] == broken.values["seconds"]
    exporter("json", str(tmp_path / "o.json"))(study)
    content = json.loads((tmp_path / "o.json").read_text())
    assert content["study"]["metrics"] == {"accuracy": "max", "seconds": "min"}
    assert content["study"]["constraints"] == {"memory <b>": "<= 1.5"}
    assert content["front"] == [trial.number for trial in study.front]
    assert content["trials"][broken.number]["violations"] == dict(broken.violations)
    exporter("json", str(tmp_path / "h.json"))(hopeless)
    assert json.loads((tmp_path / "h.json").read_text())["best"] is None


def test_optuna_reads_directions_values_and_constraints(study, tmp_path):
    optuna = pytest.importorskip("optuna")
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path = tmp_path / "o.log"
    export = exporter("optuna", str(path))
    export(study)
    export(study)  # adds nothing
    read = optuna.load_study(study_name="job", storage=JournalStorage(JournalFileBackend(str(path))))
    assert [direction.name for direction in read.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert read.metric_names == ["accuracy", "seconds"]
    assert sorted(trial.number for trial in read.best_trials) == sorted(trial.number for trial in study.front)
    for ours, theirs in zip(study.trials, read.trials, strict=True):
        if ours.value is not None:
            assert theirs.values == [ours.values["accuracy"], ours.values["seconds"]]
            assert theirs.system_attrs["constraints:memory <b>"] == ours.values["memory <b>"] - 1.5


def test_the_live_line_tells_hypervolume_and_front():
    status = Status("accuracy", 60, 12, 1, 2, None, 0.01, 3.0, 9.0, [], 30, front=(5, 0.75))
    assert "13/60 trials, front 5 trials, 2 running" in str(status)
    assert "13/60 trials, front none feasible yet, 2 running" in str(replace(status, front=(0, 0.0)))
    assert "1/60 trials, front none yet, 2 running" in str(replace(status, finished=0, front=(0, 0.0)))
    assert "13/60 trials, best none feasible yet, 2 running" in str(replace(status, front=None))
