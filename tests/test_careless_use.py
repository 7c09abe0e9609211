"""What users get wrong is told in one line, wherever it first enters: never a traceback, and nothing is begun."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import raybo
from raybo import warm_start
from raybo.cli import cli, main
from raybo.confirming import Confirm
from raybo.engine.driver import tune
from raybo.errors import JournalError, MethodError, ObjectiveError, RayboError, SpaceError, TrialError
from raybo.events import Event, Kind
from raybo.integrations.export import Recorder, exporter
from raybo.journal import Journal, exists, read
from raybo.reporting.story_figures import told_by_method
from raybo.space import Space
from raybo.study import Study
from tests.test_journal_damage import DESCRIPTION, history

SPACE = {"x": raybo.Float(0, 1)}


@raybo.objective(space=SPACE)
def job(config):
    return config["x"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"resources": {"CPU": 1}}, "resources: CPU is not a custom resource; use num_cpus"),
        ({"resources": {"memory": 1}}, "resources: memory is not a custom resource; use memory"),
        ({"resources": {"disk": "much"}}, "resources: disk must be a number from 0, got 'much'"),
        ({"resources": {"disk": float("nan")}}, "resources: disk must be a number from 0"),
        ({"resources": {1: 1}}, "resources: a name must be text, got 1"),
        ({"resources": ["disk"]}, "resources must be a dict"),
        ({"metric": 3}, "metric must be a name, got 3"),
        ({"resources": {"disk": np.timedelta64(1, "s")}}, "resources: disk must be a number from 0"),
        ({"mode": ["max"]}, "mode must be 'max' or 'min'"),
        ({"trial_seconds": True}, "trial_seconds must be above 0"),
        ({"trial_seconds": float("inf")}, "trial_seconds must be above 0"),
    ],
)
def test_an_argument_of_an_objective(arguments, words):
    with pytest.raises(ObjectiveError, match=words):
        raybo.objective(space=SPACE, **arguments)(lambda config: 0.0)


@pytest.mark.parametrize("function", [max, dict, lambda: 0.0, 3])
def test_what_is_no_function_of_a_configuration(function):
    with pytest.raises(ObjectiveError, match="an objective must be a function"):
        raybo.objective(space=SPACE)(function)


class Unequal:
    def __eq__(self, other):
        raise RuntimeError("not today")

    __hash__ = None


class Unprintable:
    def __repr__(self):
        raise RuntimeError("not today")


def test_choices_that_cannot_be_compared_or_printed():
    assert Space({"c": raybo.Categorical([Unequal(), Unequal()])}).d == 1
    space = {"c": raybo.Categorical([Unprintable(), 1])}
    with pytest.raises(
        SpaceError, match="a Unprintable cannot be written as text: its repr raises RuntimeError: not today"
    ):
        tune(raybo.objective(space=space)(lambda config: 0.0), trials=1)


@pytest.mark.parametrize("name", ["a\0b.db", "x" * 300 + ".db"])
def test_names_that_no_file_can_have(name):
    for use in (exists, read, raybo.load, lambda path: Journal(path, DESCRIPTION)):
        with pytest.raises(JournalError, match="this path cannot be used"):
            use(name)
    with pytest.raises(JournalError, match="this path cannot be used"):
        tune(job, trials=1, storage=name)


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_minutes": True},
        {"max_minutes": float("inf")},
        {"max_minutes": "1"},
        {"trials": 1.0},
        {"detach": "no"},
        {"fresh_workers": "no"},
        {"retry_failed": 1},
        {"keep_going": None},
        {"watch": True},
        {"watch": 5},
        {"storage": 5},
        {"storage": b"job.db"},
        {"artifacts": 5, "storage": "job.db"},
        {"settings": {1: 2}},
    ],
    ids=str,
)
def test_an_argument_of_tune(arguments):
    with pytest.raises((MethodError, JournalError, ObjectiveError), match=f"^{next(iter(arguments))} must be "):
        tune(job, **{"trials": 1, **arguments})


@pytest.mark.parametrize("path", [5, None, b"job.db", ["job.db"]])
def test_what_is_no_path(path):
    for use in (raybo.load, lambda path: tune(job, trials=1, known_from=path) if path else raybo.load(path)):
        with pytest.raises(JournalError, match="a journal must be a path, got "):
            use(path)
    with pytest.raises(TrialError, match=r"plots needs a study, got .*; raybo\.load"):
        raybo.plots(path)


def test_numbers_of_numpy_are_limits(monkeypatch):
    plans = []
    monkeypatch.setattr("raybo.engine.driver._run", lambda _, planned, *__: plans.append(planned.keywords))
    tune(job, max_minutes=np.int64(3), trial_seconds=np.float32(0.5), confirm=(np.int64(5), 3), retries=np.int64(1))
    assert [plans[0][name] for name in ("max_seconds", "trial_seconds", "retries")] == [180.0, 0.5, 1]
    assert {type(plans[0][name]) for name in ("max_seconds", "trial_seconds")} == {float}
    assert plans[0]["confirm"] == Confirm(5, 3)


def nested(levels):
    value = 1.0
    for _ in range(levels):
        value = [value]
    return value


def test_what_is_enqueued(tmp_path):
    for entries in (5, "x", {"x": 1}, [nested(5_000)]):
        with pytest.raises(SpaceError, match="enqueue: "):
            warm_start.known_of(entries, job.space)
    (tmp_path / "job.py").write_text(
        "import raybo\njob = raybo.objective(space={'x': raybo.Float(0, 1)})(lambda c: 0.0)\n"
    )
    deep = tmp_path / "deep.json"
    for text in ("[" * 100_000 + "]" * 100_000, '["\xff', json.dumps({"x": 1})):
        deep.write_text(text, encoding="latin-1")
        told = CliRunner().invoke(cli, ["tune", str(tmp_path / "job.py"), "--enqueue", str(deep)])
        assert told.exit_code == 2
        assert "deep.json: " in told.output
    assert not Path("job.db").exists()


def test_destinations_that_an_exporter_refuses(tmp_path):
    pytest.importorskip("tensorboardX")
    pytest.importorskip("mlflow")
    (tmp_path / "job.py").write_text("")
    for form, where in (("tensorboard", str(tmp_path / "job.py")), ("mlflow", "zz://q")):
        with pytest.raises(RayboError, match=f"{form} cannot be written to "):
            exporter(form, where)


def test_an_exporter_that_raises_is_told_once_and_the_study_goes_on(tmp_path, caplog, monkeypatch):
    path = tmp_path / "study.db"
    journal = Journal(path, DESCRIPTION)
    journal.append(history(2))
    recorder = Recorder(path, "csv", str(tmp_path / "out.csv"))

    def fail(study):
        raise RuntimeError("acc@5 is no name")

    monkeypatch.setattr(recorder, "_export", fail)
    for number in range(3):
        recorder(type("Status", (), {"last_event": number}))
    journal.close()
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'out.csv'} is no longer up to date: RuntimeError: acc@5 is no name"
    ]
    monkeypatch.setattr("raybo.integrations.export.exporter", lambda to, where, raw: fail)
    told = CliRunner().invoke(cli, ["export", str(path), "--to", "csv", "-o", str(tmp_path / "out.csv")])
    assert isinstance(told.exception, RayboError)
    assert "cannot be written as csv: RuntimeError: acc@5 is no name" in str(told.exception)


@pytest.mark.parametrize("number", [True, False, np.bool_(True), 1.0, "1", None])
def test_only_a_number_is_a_trial(number):
    searcher = raybo.Searcher(SPACE, "random", seed=0)
    searcher.ask(), searcher.ask()
    for use in (lambda: searcher.tell(number, 1.0), lambda: searcher.fail(number, "no")):
        with pytest.raises(TrialError, match="no such trial"):
            use()
    assert searcher.tell(np.int64(1), 1.0).number == 1


@pytest.mark.parametrize("metric", [3, None, ["loss"], np.array("loss"), ""])
def test_a_metric_is_a_name(metric):
    with pytest.raises(MethodError, match=r"^metric must be a name, got "):
        raybo.Searcher(SPACE, metric=metric)


def test_a_duration_is_no_number():
    week = np.timedelta64(7, "D")
    for parameter in (raybo.Float(0, week), raybo.Integer(0, week), raybo.Float(0, 1, guess=week)):
        with pytest.raises(SpaceError, match="number"):
            Space({"x": parameter})
    searcher = raybo.Searcher(SPACE, "random", seed=0)
    for duration in (week, np.timedelta64(7, "ns"), np.datetime64("2026-01-01", "ns")):
        with pytest.raises(TrialError, match="a number is needed"):
            searcher.tell(searcher.ask(), duration)
        with pytest.raises(SpaceError, match="a number is needed"):
            searcher.add({"x": duration}, 1.0)


def test_tags_that_no_method_wrote():
    searcher = raybo.Searcher(SPACE, "gp-ucb", seed=0)
    trial = searcher.ask()
    trial.tags.clear()
    trial.tags["kappa"] = "x"
    with pytest.raises(TrialError, match="its tags are not what the method writes"):
        searcher.explain(trial)


# ---- messages about whatever a user's values are


class Unshowable:
    """Neither shown nor compared nor converted."""

    __hash__ = object.__hash__

    def __repr__(self):
        raise RuntimeError("no repr")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    def __float__(self):
        raise RuntimeError("no number")


def test_what_cannot_be_shown_is_refused_all_the_same():
    bad = Unshowable()
    uses = [
        lambda: raybo.Space({"x": bad}),
        lambda: raybo.Space(bad),
        lambda: raybo.Space([(bad, raybo.Float(0, 1))]),
        lambda: raybo.Space({"x": raybo.Float(bad, 1)}),
        lambda: raybo.Space({"x": raybo.Float(0, 1, step=bad)}),
        lambda: raybo.Space({"x": raybo.Integer(bad, 1)}),
        lambda: raybo.Space({"x": raybo.Categorical(bad)}),
        lambda: raybo.Space({"x": raybo.Categorical([bad, bad])}),
        lambda: raybo.Space({"x": raybo.Float(0, 1)}).pack(bad),
        lambda: raybo.Space({"x": raybo.Float(0, 1)}).pack({"x": bad}),
        lambda: raybo.Space({"x": raybo.Integer(0, 1)}).pack({"x": bad}),
        lambda: raybo.Space({"x": raybo.Categorical([bad, 1])}).pack({"x": Unshowable()}),
        lambda: raybo.Space.from_tune(bad),
        lambda: raybo.Searcher(SPACE, "random", mode=bad),
        lambda: raybo.Searcher(SPACE, "random", seed=bad),
    ]
    for use in uses:
        with pytest.raises(RayboError, match="Unshowable"):
            use()
    searcher = raybo.Searcher(SPACE, "random", seed=0)
    with pytest.raises(TrialError, match="a finite number is needed, got <Unshowable>"):
        searcher.tell(searcher.ask(), bad)


def test_a_message_is_one_line_that_no_terminal_obeys():
    with pytest.raises(RayboError) as told:
        raybo.Space({"two\nlines \x1b[2J": raybo.Float(1, 0)})
    assert str(told.value).startswith("two lines \\x1b[2J: low must be below high")


@pytest.mark.parametrize(
    "parameter",
    [raybo.Integer(-(10**308), int(1.7e308)), raybo.Integer(-(10**400), 10**400), raybo.Float(400, 600, step=1e300)],
)
def test_ranges_that_no_float_spans(parameter):
    with pytest.raises(raybo.SpaceError, match=r"too wide for a 64-bit|must be a whole number|whole number of steps"):
        raybo.Space({"x": parameter})


def test_an_empty_file_holds_no_study_yet(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    for arguments in (["show", str(path)], ["enqueue", str(path), "x=0.5"]):
        told = CliRunner().invoke(cli, arguments)
        assert isinstance(told.exception, RayboError)
        assert "there is no study in it yet" in str(told.exception)
    assert [each.name for each in tmp_path.iterdir()] == ["empty.db"]


def test_a_long_argument_is_not_repeated_in_full(capsys, monkeypatch):
    for arguments in (["methods", f"--{'a' * 3_000}"], ["show", f"{'a/' * 1_500}b.db"], ["a" * 3_000]):
        monkeypatch.setattr("sys.argv", ["raybo", *arguments])
        with pytest.raises(SystemExit):
            main()
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("Error: ")
        assert " ... " in last
        assert len(last) < 1_600


@pytest.mark.parametrize("method", ["turbo", "ars", "uhe", "exp3-random", "wang-defreitas", "portfolio"])
def test_tags_of_another_hand_are_told_in_a_line_or_do_no_harm(method):
    """To propose, to explain and to draw."""
    first = raybo.Searcher(SPACE, method, seed=0)
    events = []
    for number in range(8):
        events.append(first.apply(first.propose(first.history)))
        events.append(first.apply(Event(Kind.TOLD, number, {"value": float(number), "seconds": 0.1})))
    refused = []
    asked = [event for event in events if event.kind is Kind.ASKED]
    for key in {key for event in asked[-3:] for key in event.data["tags"]}:
        for forged in ("x", None, [["y"]]):
            again, listed = raybo.Searcher(SPACE, method, seed=0), []
            for event in events:
                tags = event.data.get("tags", {})
                data = {**event.data, "tags": {**tags, key: forged}} if key in tags else event.data
                listed.append(again.apply(dataclasses.replace(event, data=data)))
            study = Study(dataclasses.replace(DESCRIPTION, space=again.space.to_json(), method=method), listed)
            for use in (
                lambda again=again: again.propose(again.history),
                lambda again=again: again.explain(again.trials[-1]),
                lambda study=study: told_by_method(study),
            ):
                try:
                    use()
                except TrialError as error:
                    refused.append(str(error))
    assert refused
    assert all("not what the method writes" in each for each in refused)


def test_the_end_of_a_file_is_not_taken_for_ctrl_c(monkeypatch):
    def load(path):
        raise EOFError("marshal data too short")

    monkeypatch.setattr("raybo.study.load", load)
    monkeypatch.setattr("sys.argv", ["raybo", "show", "job.db"])
    with pytest.raises(EOFError, match="too short"):
        main()
