"""Users' mistakes are refused in one line, wherever they first enter: never a traceback, and nothing is begun."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import raybo
from raybo import methods, schedulers
from raybo.cli import cli, main
from raybo.common.errors import JournalError, MethodError, ObjectiveError, RayboError, SpaceError, TrialError
from raybo.engine.driver import tune
from raybo.integrations.export import Recorder, exporter
from raybo.journal import Journal, exists, read
from raybo.record.events import Asked, Kind, Told
from raybo.record.stopping import Limits
from raybo.record.trial import Trial
from raybo.reporting.story_figures import method_figure
from raybo.space import Space
from raybo.study import enqueueing, warm_start
from raybo.study.confirmation import Confirm
from raybo.study.replay import replay
from raybo.study.study import Study
from tests.journal.test_damage import DESCRIPTION, history

SPACE = {"x": raybo.Float(0, 1)}


@raybo.objective(space=SPACE)
def job(config):
    return config["x"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"resources": {"CPU": 1}}, "resources: CPU is not a custom resource; use num_cpus"),
        ({"resources": {"memory": 1}}, "resources: memory is not a custom resource; use memory"),
        ({"resources": {"disk": "much"}}, "resources: disk must be a finite number from 0, got 'much'"),
        ({"resources": {"disk": float("nan")}}, "resources: disk must be a finite number from 0"),
        ({"resources": {1: 1}}, "resources: a name must be text, got 1"),
        ({"resources": ["disk"]}, "resources must be a dict"),
        ({"metric": 3}, "metric must be a name, got 3"),
        ({"resources": {"disk": np.timedelta64(1, "s")}}, "resources: disk must be a finite number from 0"),
        ({"mode": ["max"]}, "mode must be 'max' or 'min'"),
        ({"trial_seconds": True}, "trial_seconds must be a finite number above 0"),
        ({"trial_seconds": float("inf")}, "trial_seconds must be a finite number above 0"),
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


@pytest.mark.parametrize("name", ["a\0b.db", "x" * 5_000 + ".db"])
def test_names_that_no_file_can_have(name):
    for use in (exists, read, raybo.load, lambda path: Journal(path, DESCRIPTION)):
        with pytest.raises(JournalError, match="this path cannot be used") as caught:
            use(name)
        assert len(str(caught.value)) < 400
    with pytest.raises(JournalError, match="this path cannot be used"):
        tune(job, trials=1, storage=name)


def test_half_a_character_is_no_files_name():
    for use in (
        lambda: tune(job, trials=1, storage="\ud800.db"),
        lambda: tune(job, trials=1, prior="\ud800"),
        lambda: raybo.load("\ud800.db"),
    ):
        with pytest.raises(JournalError, match=r"ud800.*this path cannot be used"):
            use()


def test_long_names_make_no_long_messages():
    name = "a" * 5_000
    for parameter, value in (
        (raybo.Float(0, 1), 2),
        (raybo.Float(0, 1, step=0.5), 0.3),
        (raybo.Integer(0, 4, step=2), 1),
        (raybo.Integer(0, 4), 5),
        (raybo.Categorical(["a", "b"]), "c"),
        (raybo.Ordinal([1, 2]), None),
    ):
        for given in ({name: value}, {}, {name: value, f"{name}b": 1}):
            with pytest.raises(SpaceError) as caught:
                Space({name: parameter}).accept(given)
            assert len(str(caught.value)) < 1_500

    from raybo.integrations.ray_tune import RayboSearch
    from raybo.integrations.sklearn_spaces import space_of

    for use in (
        lambda: space_of(name),
        lambda: space_of({"C": name}),
        lambda: RayboSearch(SPACE, "loss", "min", "random", points_to_evaluate=[name]),
    ):
        with pytest.raises(SpaceError) as caught:
            use()
        assert len(str(caught.value)) < 1_500


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
        {"retry_oom": 1},
        {"keep_going": None},
        {"watch": True},
        {"watch": 5},
        {"storage": 5},
        {"storage": b"job.db"},
        {"artifacts": 5, "storage": "job.db"},
        {"settings": 5},
    ],
    ids=str,
)
def test_an_argument_of_tune(arguments):
    with pytest.raises((MethodError, JournalError, ObjectiveError), match=f"^{next(iter(arguments))} must be "):
        tune(job, **{"trials": 1, **arguments})


@pytest.mark.parametrize("path", [5, None, b"job.db", ["job.db"]])
def test_what_is_no_path(path):
    for use in (raybo.load, lambda path: tune(job, trials=1, known_from=path) if path else raybo.load(path)):
        with pytest.raises(JournalError, match="a journal must be a path, got ") as refused:
            use(path)
        assert isinstance(refused.value, ValueError)
    with pytest.raises(TrialError, match=r"plots needs a study, got .*; raybo\.load"):
        raybo.plots(path)


@pytest.mark.parametrize("path", ["sqlite:///job.db", Path("sqlite:///job.db"), "mysql+pymysql://me@host/job.db"])
def test_a_url_is_no_path(path):
    uses = [
        lambda: raybo.load(path),
        lambda: tune(job, trials=1, storage=path),
        lambda: tune(job, trials=1, known_from=path),
    ]
    for use in uses:
        with pytest.raises(raybo.PathError, match=r"must be a path, got the URL '.*'; give the file alone: job\.db$"):
            use()


def test_numbers_of_numpy_are_limits(monkeypatch):
    plans = []
    monkeypatch.setattr("raybo.engine.driver._run", lambda _, options, *__: plans.append(options))
    tune(job, max_minutes=np.int64(3), trial_seconds=np.float32(0.5), confirm=(np.int64(5), 3), retries=np.int64(1))
    (options,) = plans
    assert (options.max_minutes, options.trial_seconds, options.retries) == (3, 0.5, 1)
    assert [type(n) for n in (options.max_minutes, options.trial_seconds, options.retries)] == [int, float, int]
    assert options.confirm == Confirm(5, 3)


def nested(levels):
    value = 1.0
    for _ in range(levels):
        value = [value]
    return value


def test_what_is_enqueued(tmp_path):
    for entries in (5, "x", {"x": 1}, [nested(5_000)]):
        with pytest.raises(SpaceError, match=r"^enqueue(:| must be a list)"):
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


def test_a_failing_exporter_warns_once(tmp_path, caplog, monkeypatch):
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


@pytest.mark.parametrize("metric", [3, ["loss"], np.array("loss"), ""])
def test_a_metric_is_a_name(metric):
    with pytest.raises(MethodError, match=r"^metric must be a name, got "):
        raybo.Searcher(SPACE, metric=metric)


def test_a_duration_is_no_number():
    week = np.timedelta64(7, "D")
    for make in (
        lambda: raybo.Float(0, week),
        lambda: raybo.Integer(0, week),
        lambda: raybo.Float(0, 1, guess=week),
    ):
        with pytest.raises(SpaceError, match="number"):
            make()
    searcher = raybo.Searcher(SPACE, "random", seed=0)
    for duration in (week, np.timedelta64(7, "ns"), np.datetime64("2026-01-01", "ns")):
        with pytest.raises(TrialError, match="a number is needed"):
            searcher.tell(searcher.ask(), duration)
        with pytest.raises(SpaceError, match="a number is needed"):
            searcher.add({"x": duration}, 1.0)


def test_tags_that_no_method_wrote():
    searcher = raybo.Searcher(SPACE, "gp-ucb", seed=0)
    trial = searcher.ask()
    record = dataclasses.replace(
        searcher.history.records[0], tags={"kappa": "x"}
    )  # as another program may have written it
    with pytest.raises(TrialError, match="its tags are not what the method writes"):
        searcher.explain(Trial(0, record, trial._declared))


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


def test_values_without_a_repr_are_refused():
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


def test_messages_are_one_line_without_escapes():
    with pytest.raises(RayboError) as told:
        raybo.Space({"two\nlines \x1b[2J": [1, 0]})
    assert str(told.value).startswith("two lines \\x1b[2J: a parameter must be")


@pytest.mark.parametrize(
    ("kind", "low", "high", "step"),
    [
        (raybo.Integer, -(10**308), int(1.7e308), 1),
        (raybo.Integer, -(10**400), 10**400, 1),
        (raybo.Float, 400, 600, 1e300),
    ],
)
def test_ranges_that_no_float_spans(kind, low, high, step):
    with pytest.raises(raybo.SpaceError, match=r"too wide for a 64-bit|must be a whole number|whole number of steps"):
        kind(low, high, step=step)


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


@pytest.mark.slow
@pytest.mark.parametrize("method", ["turbo", "ars", "uhe", "exp3-random", "wang-defreitas", "portfolio"])
def test_forged_tags_are_harmless_or_reported(method):
    """To propose, to explain and to draw."""
    first = raybo.Searcher(SPACE, method, seed=0)
    events = []
    for number in range(8):
        events.append(first.apply(first.propose(first.history)))
        events.append(first.apply(Told(number, value=float(number), seconds=0.1)))
    refused = []
    asked = [event for event in events if event.kind is Kind.ASKED]
    for key in {key for event in asked[-3:] for key in event.data["tags"]}:
        for forged in ("x", None, [["y"]]):
            again, listed = raybo.Searcher(SPACE, method, seed=0), []
            for event in events:
                if isinstance(event, Asked) and key in event.tags:
                    event = dataclasses.replace(event, tags={**event.tags, key: forged})
                listed.append(again.apply(event))
            study = Study(dataclasses.replace(DESCRIPTION, space=again.space, method=method), listed)
            for use in (
                lambda again=again: again.propose(again.history),
                lambda again=again: again.explain(again.trials[-1]),
                lambda study=study: method_figure(study),
            ):
                try:
                    use()
                except TrialError as error:
                    refused.append(str(error))
    assert refused
    assert all("not what the method writes" in each for each in refused)


def test_end_of_input_is_not_ctrl_c(monkeypatch):
    def load(path):
        raise EOFError("marshal data too short")

    monkeypatch.setattr("raybo.study.study.load", load)
    monkeypatch.setattr("sys.argv", ["raybo", "show", "job.db"])
    with pytest.raises(EOFError, match="too short"):
        main()


# ---- every argument of every front, given everything

CARELESS = [
    *(None, True, np.bool_(True), 3.0, 2.5, -1, 0, math.nan, math.inf, 10**400, "x", "3", b"x", [], [1], {}, {1: 2}),
    *(object(), np.int64(3), np.float32(2), np.timedelta64(3, "s"), np.timedelta64(3, "ns"), Decimal("3"), Fraction(3)),
    *(np.array(3), np.array([1, 2]), np.array(["x", "y"])),
]
OTHER_WORDS = {  # the argument that the error names
    **dict.fromkeys(["space", "context", "parameters", "param_space"], "space|parameter|^x: missing"),
    **dict.fromkeys(["known_from", "path", "journal"], "journal|no such file|no results"),
    **dict.fromkeys(["value", "values"], "value|a finite number is needed|a number is needed"),
    **{"config": "^(a configuration|x: )|not a parameter", "choices": "choice", "points": "point"},
    **{"objective": "objective", "storage": "storage", "reference": "reference"},
}


def asked(**arguments):
    searcher = raybo.Searcher(SPACE, "random", seed=0, **arguments)
    searcher.ask()
    return searcher


def pausing(**arguments):
    searcher = asked(steps=9, scheduler="asha", scheduler_options={"variant": "promote"})
    assert searcher.report(0, 1.0).pause
    return searcher.pause(**arguments)


def made(kind, **arguments):
    space = raybo.Space({"p": kind(**arguments)})
    return json.dumps(space.to_json()), raybo.Searcher(space, "random", seed=0).ask()


def declared(**arguments):
    objective = raybo.objective(**{"space": SPACE, **arguments})(lambda config: 0.0)
    return objective.space, objective.context, objective.steps


def keywords(names):
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names])


def fronts():
    """By name: what is called with one argument after the other, what it needs beside, and its own signature."""
    searcher, numbered = raybo.Searcher, {"trial": 0}
    study = Study(DESCRIPTION, history(3))
    yield "Searcher", searcher, {"space": SPACE, "method": "random"}, searcher
    yield "objective", declared, {}, raybo.objective
    yield "tune", tune, {"objective": job, "trials": 1, "method": "random"}, tune
    for name, needed in {
        "plan": {},
        "tell": {**numbered, "value": 1.0},
        "fail": {**numbered, "reason": ""},
        "report": {**numbered, "value": 1.0},
        "prune": numbered,
        "add": {"config": {"x": 0.5}, "value": 1.0},
        "explain": {},
        "hypervolume": {},
        "best_for": {},
    }.items():
        yield name, lambda name=name, **given: getattr(asked(), name)(**given), needed, getattr(searcher, name)
    yield "pause", pausing, numbered, searcher.pause
    for name in ("explain", "directory", "files", "hypervolume", "best_for"):
        yield f"Study.{name}", getattr(study, name), {}, getattr(study, name)
    for kind, needed in {
        raybo.Float: {"low": 0, "high": 1},
        raybo.Integer: {"low": 0, "high": 8},
        raybo.Categorical: {"choices": ["a", "b"]},
        raybo.Ordinal: {"choices": ["a", "b"]},
    }.items():
        yield kind.__name__, partial(made, kind), needed, kind
    yield "Space", raybo.Space, {"parameters": SPACE}, raybo.Space
    yield "raybo.report", raybo.report, {"metrics": 1.0}, raybo.report
    yield "load", raybo.load, {}, raybo.load
    yield "plots", raybo.plots, {}, raybo.plots
    yield "replay", lambda study: list(replay(study)), {}, replay
    yield "exporter", exporter, {"to": "csv", "destination": "out.csv"}, exporter
    yield "Recorder", Recorder, {"journal": "a.db", "to": "csv", "destination": "out.csv"}, Recorder
    yield "enqueue", enqueueing.enqueue, {"config": {"x": 1.0}}, keywords(["path"])


def complaints(name, use, needed, signature, errors=RayboError):
    """Return what is neither accepted nor refused in a line that names the argument."""
    parameters = signature if isinstance(signature, inspect.Signature) else inspect.signature(signature)
    for argument, parameter in parameters.parameters.items():
        for value in CARELESS:
            if argument == "self" or parameter.kind is parameter.VAR_KEYWORD:
                continue
            try:
                use(**{**needed, argument: value})
            except errors as error:
                told = str(error)
                if "\n" in told or len(told) > 700 or not re.search(f"{argument}|{OTHER_WORDS.get(argument)}", told):
                    yield f"{name}({argument}={value!r:.60}): {told}"
            except Exception as error:  # noqa: BLE001  # what is looked for
                yield f"{name}({argument}={value!r:.60}): {error!r}"


@pytest.mark.parametrize("front", fronts(), ids=lambda front: front[0])
def test_every_argument_is_accepted_or_refused_by_name(front, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("raybo.engine.driver._run", lambda *_: None)
    assert list(complaints(*front)) == []


@pytest.mark.parametrize("name", [*methods.METHODS, *schedulers.SCHEDULERS])
def test_every_option_is_accepted_or_refused_by_name(name):
    of = methods if name in methods.METHODS else schedulers
    options = [option for option, _, _ in of.describe(name)[1]]

    def use(**given):
        made = methods.make(name, **given) if of is methods else schedulers.make(name, given, 9, ["loss"])
        assert not any(isinstance(getattr(made, option), (np.generic, np.ndarray)) for option in options)

    assert list(complaints(name, use, {}, keywords(options))) == []


def test_hostile_arguments_of_raybosearch_and_raybosearchcv():
    pytest.importorskip("ray.tune")
    pytest.importorskip("sklearn")
    from raybo.integrations.ray_tune import RayboSearch
    from raybo.integrations.sklearn import RayboSearchCV

    needed = {"space": SPACE, "method": "random", "metric": "loss", "mode": "min", "points_to_evaluate": [{"x": 0.5}]}
    told = [*complaints("RayboSearch", lambda **given: RayboSearch(**given).suggest("a"), needed, RayboSearch)]
    known = lambda evaluated_rewards: RayboSearch(**needed, evaluated_rewards=[evaluated_rewards])  # noqa: E731
    told += complaints("RayboSearch, one of", known, {}, known)
    for name, given in {
        "add_evaluated_point": {"parameters": {"x": 0.5}, "value": 1.0},
        "add_evaluated_points": {"points": [{"x": 0.5}], "values": [1.0]},
    }.items():
        told += complaints(name, getattr(RayboSearch(**needed), name), given, getattr(RayboSearch, name))

    def search(**given):
        return RayboSearchCV(None, SPACE, **{"steps": 3, "scheduler": "median", **given})._new_searcher()

    own = [
        "n_iter",
        "method",
        "options",
        "where",
        "n_points",
        "steps",
        "by",
        "scheduler",
        "scheduler_options",
        "random_state",
    ]
    told += complaints("RayboSearchCV", search, {}, keywords(own), (RayboError, ValueError))  # as scikit-learn does
    assert told == []


def test_known_values_must_be_numbers():
    pytest.importorskip("ray.tune")
    from raybo.integrations.ray_tune import RayboSearch

    needed = {"space": SPACE, "method": "random", "metric": "loss", "mode": "min", "points_to_evaluate": [{"x": 0.5}]}
    with pytest.raises(MethodError, match=r"^evaluated_rewards: number 0 must be a number, got 'x'"):
        RayboSearch(**needed, evaluated_rewards=["x"])
    with pytest.raises(MethodError, match=r"^value must be a number, got True"):
        RayboSearch(**needed).add_evaluated_point({"x": 0.5}, True)
    several = {"space": SPACE, "method": "random", "metrics": {"a": "max", "b": "min"}}
    with pytest.raises(MethodError, match=r"^a known value: b must be a number, got 'x'"):
        RayboSearch(**several).add_evaluated_point({"x": 0.5}, {"a": 1.0, "b": "x"})


def test_explain_accepts_trial_numbers():
    searcher = asked()
    assert searcher.explain(0) == searcher.explain(np.int64(0)) == searcher.explain(searcher.trials[0])
    study = Study(DESCRIPTION, history(3))
    assert study.explain(0) == study.explain(study.trials[0])
    for number in (7, -1, "0", True):
        with pytest.raises(TrialError, match="no such trial"):
            searcher.explain(number)


def test_what_is_accepted_is_pythons_own():
    searcher = asked(steps=np.int8(9), trials=np.array(5))
    searcher.report(np.int64(0), np.float32(0.5), step=np.uint8(2))
    limits = Limits(np.float32(0.5), np.int64(3), np.float64(0.1))
    objective = raybo.objective(space=SPACE, num_cpus=np.int64(2), memory=np.float32(5), resources={"disk": np.int8(1)})
    told = objective(lambda config: 0.0)
    values = [searcher.steps, searcher.history.planned, searcher.trials[0].step]
    values += [value for value in vars(limits).values() if value is not None]
    values += [told.num_cpus, told.memory, *told.resources.values()]
    assert [type(value) for value in values] == [int, int, int, float, int, float, int, float, int]


def test_counts_beyond_the_journal_are_refused():
    for use in (lambda: tune(job, trials=2**31), lambda: asked(steps=2**31), lambda: raybo.report(1.0, step=2**31)):
        with pytest.raises(RayboError, match="must be a whole number from 1 to 2147483647, got 2147483648"):
            use()


class HashesOnce(str):
    """A name whose hash raises from its second use on, as in a dict that was made of it."""

    def __init__(self, _):
        self.used = 0

    def __hash__(self):
        self.used += 1
        if self.used > 1:
            raise RuntimeError("no hash")
        return str.__hash__(self)


class Attributeless:
    """It raises at every attribute that it does not have, and when it is read."""

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")

    def __iter__(self):
        raise RuntimeError("no items")


class Itemless(list):
    def __iter__(self):
        raise RuntimeError("no items")


def looped(kind, inside):
    found = kind()
    found.update(x=found) if kind is dict else found.append(found)
    return {"x": found} if inside else found


def test_names_without_a_hash_are_names():
    """The study that they would begin is refused for its last argument, as it would be with plain names."""
    from raybo.integrations.ray_tune import RayboSearch

    with pytest.raises(SpaceError, match=r"^enqueue: entry 0: x: 2.0 lies outside"):
        tune(job, trials=1, enqueue=[{HashesOnce("x"): 2.0}])
    with pytest.raises(SpaceError, match=r"^points_to_evaluate, point 0: x: 2.0 lies outside"):
        RayboSearch(SPACE, "loss", "min", "random", points_to_evaluate=[{HashesOnce("x"): 2.0}])
    constrained = raybo.objective(space=SPACE, metric=HashesOnce("m"), constraints={HashesOnce("size"): "<= 1"})
    assert constrained(lambda config: 0.0).goals.needed == ("m", "size")
    assert raybo.Searcher(SPACE, HashesOnce("random")).ask().number == 0
    with pytest.raises(MethodError, match="there is no method 'randon'"):
        raybo.Searcher(SPACE, HashesOnce("randon"))


@pytest.mark.parametrize("kind", [dict, list])
@pytest.mark.parametrize("inside", [False, True])
def test_what_contains_itself_is_refused(kind, inside):
    from raybo.integrations.ray_tune import RayboSearch

    bad = looped(kind, inside)
    with pytest.raises(SpaceError, match="point 1: it is nested too deeply, or contains itself"):
        RayboSearch(SPACE, "loss", "min", "random", points_to_evaluate=[{"x": 0.5}, bad])
    for use in (
        lambda: tune(job, trials=1, enqueue=[bad]),
        lambda: tune(job, trials=1, options={"a": bad}),
        lambda: tune(raybo.objective(space=SPACE)(lambda config, *, a: 0.0).with_settings(a=bad), trials=1),
        lambda: raybo.Categorical([bad, bad]),
        lambda: raybo.Searcher(SPACE, "random", prior=bad),
        lambda: asked().tell(0, bad),
        lambda: asked().add(bad, 1.0),
    ):
        with pytest.raises(RayboError) as caught:
            use()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [Attributeless, Itemless])
def test_priors_that_cannot_be_read_are_refused(kind):
    with pytest.raises(JournalError, match=r"^prior\b"):
        raybo.Searcher(SPACE, "random", prior=kind())
