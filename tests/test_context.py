"""Contexts from their declaration to the recommendation: what is kept of them, and how bad ones are treated."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import raybo
from raybo import methods
from raybo.common.errors import JournalError, MethodError, ObjectiveError, SpaceError, TrialError
from raybo.engine.lifecycle import Occurrence
from raybo.engine.trial.task import run_trial
from raybo.journal import Journal
from raybo.record.description import Description
from raybo.record.events import Asked, ContextObserved, Failed, Kind, Planned, Retried, Told
from raybo.record.goals import Goals
from raybo.record.history import History
from raybo.record.states import State
from raybo.reporting.tables import best_view, study_view
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Space, context_space, read_context, read_text
from raybo.study.study import Study

SPACE = Space({"x": Float(0, 1)})
LOAD = Space({"load": Float(0, 20)})
RICH = Space(
    {
        "load": Float(0, 20),
        "rate": Float(1, 100, log=True),
        "hour": Integer(0, 23),
        "step": Float(0, 1, step=0.25),
        "kind": Categorical(["small", 2, None]),
    }
)
USUAL = {"load": 5.0, "rate": 10.0, "hour": 7, "step": 0.5, "kind": "small"}


def searcher(method="random", context=LOAD, **arguments):
    return Searcher(SPACE, method, seed=3, context=context, **arguments)


# ---- what is taken, moved, missing, rejected


def test_undeclared_context_names_are_ignored():
    reading = read_context(RICH, {**USUAL, "accuracy": math.nan})
    assert (reading.values, reading.missing, reading.note) == (USUAL, (), "")


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("load", 20.5, 20.0),
        ("load", -1e300, 0.0),
        ("load", 10**400, 20.0),
        ("load", np.float32(25), 20.0),
        ("rate", 0.0, 1.0),
        ("hour", 24, 23),
        ("hour", -1, 0),
        ("hour", 7.4, 7),
        ("step", 0.6, 0.5),
        ("step", 9, 1.0),
    ],
)
def test_contexts_out_of_range_are_clipped_and_noted(name, value, kept):
    reading = read_context(RICH, {**USUAL, name: value})
    assert reading.values == {**USUAL, name: kept}
    assert type(reading.values[name]) is type(USUAL[name])
    assert f"context {name}: " in reading.note
    assert f"taken as {kept:g}" in reading.note


@pytest.mark.parametrize(("name", "value"), [("load", np.array(5.0)), ("load", 5), ("hour", np.int8(7)), ("hour", 7.0)])
def test_numbers_of_every_kind_are_numbers(name, value):
    assert read_context(RICH, {**USUAL, name: value}) == read_context(RICH, USUAL)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("load", bad) for bad in (math.nan, math.inf, -math.inf, "5", None, True, [5.0], np.array([5.0]), 5j)),
        ("hour", math.nan),
        ("kind", "huge"),
        ("kind", math.nan),
    ],
)
def test_invalid_context_values_are_rejected(name, value):
    reading = read_context(RICH, {**USUAL, name: value})
    assert reading.values is None
    assert reading.note.startswith(f"context {name}: ")
    assert repr(value) in reading.note


def test_partial_contexts_are_unknown():
    assert read_context(RICH, {}).missing == ("load", "rate", "hour", "step", "kind")
    reading = read_context(RICH, {k: v for k, v in USUAL.items() if k != "hour"})
    assert (reading.values, reading.missing, reading.note) == (None, ("hour",), "")


def test_contexts_are_flat_with_unique_names():
    with pytest.raises(SpaceError, match=r"context a\.b: a context is a flat dict"):
        context_space({"a": {"b": Float(0, 1)}}, SPACE)
    with pytest.raises(SpaceError, match="context x: the space has a parameter of that name"):
        context_space({"x": Float(0, 1)}, SPACE)
    with pytest.raises(SpaceError, match="at least one parameter"):
        context_space({}, SPACE)
    assert context_space(None, SPACE) is None


def test_command_line_contexts_are_parsed_by_kind():
    read = {name: read_text(RICH, name, text) for name, text in [("load", "5"), ("kind", "2"), ("hour", "7")]}
    assert read == {"load": 5.0, "kind": 2, "hour": 7.0}
    assert read_text(RICH, "kind", "None") is None
    assert [read_text(RICH, "load", "much"), read_text(RICH, "none", "1"), read_text(None, "load", "1")] == [
        "much",
        "1",
        "1",
    ]


# ---- the history


def test_context_rows_match_points_with_nan_if_unknown():
    history = History(SPACE.cube, context_cube=LOAD.cube)
    for number in range(6):
        first = {"c": [0.1 * number], "context": [2.0 * number]} if number == 5 else {}
        history.apply(Asked.of(number, {"x": [number / 10], "values": [0], "tags": {}, **first}))
    history.apply(Told(2, value=1.0, c=[0.2], context=[4.0]))
    history.apply(Told(0, value=1.0))
    history.apply(Failed(1, reason="", c=[0.7], context=[14.0]))
    history.apply(ContextObserved(3, c=[0.3], context=[6.0]))
    history.apply(Retried(3, reason="lost", attempt=2))
    np.testing.assert_array_equal(history.C, [[np.nan], [0.2]])
    np.testing.assert_array_equal(history.C_failed, [[0.7]])
    np.testing.assert_array_equal(history.C_pending, [[0.3], [np.nan], [0.5]])
    np.testing.assert_array_equal(history.X_pending, [[0.3], [0.4], [0.5]])
    np.testing.assert_array_equal(history.contexts, [[0.7], [0.2], [0.3], [0.5]])


def test_copies_keep_contexts():
    history = History(SPACE.cube, context_cube=LOAD.cube)
    wanting = history.with_next_context(np.array([0.25]))
    assert history.next_context is None
    np.testing.assert_array_equal(wanting.copy().next_context, [0.25])
    assert wanting.with_next_context(None).next_context is None
    assert wanting.copy().context_cube is LOAD.cube
    plain = History(SPACE.cube)
    assert plain.context_cube is None
    assert plain.C.shape == plain.C_failed.shape == plain.contexts.shape == (0, 0)


# ---- ask and tell


def test_contexts_are_stored_in_units_and_coordinates():
    s = searcher(context=RICH)
    told = s.tell(s.ask(), 0.5, context={**USUAL, "load": 25})
    failed = s.fail(s.ask(), "diverged", context=USUAL)
    added = s.add({"x": 0.5}, 0.25, context=USUAL)
    assert told.context == {**USUAL, "load": 20.0}
    assert "context load: 25 is not in Float" in told.details["context_note"]
    assert (failed.context, failed.state, added.context) == (USUAL, State.FAILED, USUAL)
    np.testing.assert_allclose(s.history.C, [[1.0, 0.5, 7.5 / 24, 0.5, 0.5 / 3], [0.25, 0.5, 7.5 / 24, 0.5, 0.5 / 3]])
    assert len(s.history.contexts) == 3


@pytest.mark.parametrize(
    "load", [Decimal(5), Fraction(5), np.float32(5), np.array(5.0), SimpleNamespace(ndim=0, item=lambda: 5.0)]
)
def test_contexts_accept_whatever_results_accept(load):
    """The load that a framework gives as a tensor of one number, say."""
    s = searcher()
    assert s.tell(s.ask(), load, context={"load": load}).context == {"load": 5.0}


@pytest.mark.parametrize("act", [lambda s, c: s.tell(0, 1.0, context=c), lambda s, c: s.fail(0, "", context=c)])
@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"load": math.nan}, "trial 0: context load: a finite number is needed, got nan"),
        ({"load": "5"}, "trial 0: context load: a number is needed, got '5'"),
        ({"load": np.ma.masked}, "trial 0: context load: a number is needed, got masked"),
        ({"load": Decimal("NaN")}, "trial 0: context load: a finite number is needed, got Decimal('NaN')"),
        ({}, "trial 0: context load: missing"),
        ({"load": 1, "other": 2}, "trial 0: 'other' is not a declared context; the study declares load"),
        (5.0, "trial 0: a context is a dict, got 5.0"),
    ],
)
def test_rejected_contexts_raise_and_change_nothing(act, context, words):
    s = searcher()
    s.ask()
    with pytest.raises(TrialError) as raised:
        act(s, context)
    assert str(raised.value).startswith(words)
    assert s.trials[0].state is State.PENDING
    with pytest.raises(TrialError):
        s.add({"x": 0.5}, 1.0, context=context)
    assert len(s.trials) == 1


def test_a_context_where_none_is_declared_is_refused():
    s = searcher(context=None)
    for act in (lambda: s.ask(context={"load": 1}), lambda: s.best_for({"load": 1})):
        with pytest.raises(TrialError, match="none is declared"):
            act()


def test_a_missing_context_warns_once():
    s = searcher()
    first, second, third = s.ask(), s.ask(), s.ask(context={"load": 4})
    with pytest.warns(UserWarning, match="trial 0: its context is not known"):
        s.tell(first, 1.0)
    s.tell(second, 2.0)  # no second warning, which would be an error
    s.tell(third, 3.0)
    assert [trial.context for trial in s.trials] == [None, None, {"load": 4.0}]
    assert s.history.contexts.shape == (1, 1)
    assert list(s.history.y) == [1.0, 2.0, 3.0]


def test_contexts_known_beforehand_are_replayed():
    s = searcher("sbo-kde", initial=4, atoms=64)
    rng = np.random.default_rng(0)
    for i in range(8):
        trial = s.ask(context={"load": 16.0} if i == 6 else None)
        load = 16.0 if i == 6 else float(rng.uniform(0, 20))
        s.tell(trial, -((trial.config["x"] - load / 20) ** 2), context={"load": load})
    assert s.trials[6].tags["wanted"] == [0.8]
    assert "wanted" not in s.trials[7].tags
    again = searcher("sbo-kde", initial=4, atoms=64)
    for trial in s.trials:
        asked = again.ask(context={"load": 16.0} if trial.number == 6 else None)
        assert (asked.config, asked.tags) == (trial.config, trial.tags)
        again.tell(asked, trial.value, context=trial.context)


def test_methods_that_need_a_context_refuse_early():
    with pytest.raises(MethodError, match="drbo-kde needs a context; declare one beside the space"):
        Searcher(SPACE, "drbo-kde")


@pytest.mark.parametrize("name", ["random", "sobol", "gp-ucb", "auto"])
def test_other_methods_treat_a_context_as_noise(name):
    with_one, without = searcher(name), searcher(name, context=None)
    for i in range(7):
        a, b = with_one.ask(), without.ask()
        assert (a.config, a.tags) == (b.config, b.tags)
        with_one.tell(a, a.config["x"] + 0.1 * i, context={"load": i})
        without.tell(b, b.config["x"] + 0.1 * i)
    assert not methods.needs_context(name)


# ---- the recommendation


def sell(s, orders, demands):
    """Newsvendor trials: in demand units of a twentieth."""
    for order, demand in zip(orders, demands, strict=True):
        s.add({"x": order}, 8 * min(order, demand) - 4 * order, context={"load": 20 * demand})


def studied(mode="max"):
    """30 random orders under a small demand, and one day of luck for a large order."""
    s, rng = searcher(), np.random.default_rng(1)
    if mode == "min":
        s = searcher(mode="min")
    orders, demands = np.r_[rng.random(30), 0.9], np.r_[0.05 + 0.2 * rng.random(30), 0.95]
    for order, demand in zip(orders, demands, strict=True):
        value = 8 * min(order, demand) - 4 * order
        s.add({"x": order}, value if mode == "max" else -value, context={"load": 20 * demand})
    return s


@pytest.mark.parametrize("mode", ["max", "min"])
def test_best_is_by_expectation_over_contexts(mode):
    s = studied(mode)
    sign = 1 if mode == "max" else -1
    lucky = max(s.trials, key=lambda trial: sign * trial.value)
    assert lucky.number == 30
    assert s.best.config["x"] < 0.3  # the median demand is about 0.16
    expected = sign * s.best.details["expected"]
    assert expected < sign * lucky.value
    assert expected == pytest.approx(studied("max").best.details["expected"], rel=1e-6)  # told in the user's sign
    assert 0 < s.best.details["expected_sd"] < 1
    assert s.best.value == s.trials[s.best.number].value


def test_the_best_for_a_context_is_another_one():
    s = studied()
    assert s.best_for({"load": 19}).config["x"] > 0.6
    assert s.best_for({"load": 1.5}).config["x"] < 0.2
    with pytest.raises(TrialError, match="best_for: context load: a finite number"):
        s.best_for({"load": math.nan})
    with pytest.raises(TrialError, match=r"best_for: context load: 50 is not in Float"):
        s.best_for({"load": 50})


def test_without_results_there_is_no_best():
    with pytest.raises(TrialError, match="no trial has finished"):
        _ = searcher().best


# ---- the study


def events_of(s):
    """The events of a searcher, as a journal would keep them."""
    events = []
    for trial in s.trials:
        met = {"context": LOAD.pack(trial.context), "c": LOAD.encode([trial.context])[0].tolist()}
        asked = {"x": [trial.config["x"]], "values": [trial.config["x"]], "tags": dict(trial.tags), "seen": 0}
        asked["suggest_processor_seconds"] = trial.suggest_processor_seconds
        events += [
            Asked.of(trial.number, asked),
            Told.of(trial.number, {"value": trial.value, **met}),
        ]
    return [replace(event, number=i) for i, event in enumerate(events, 1)]


def described(context=LOAD, **changes):
    return replace(Description("job", Goals(("profit",), ("max",)), SPACE, "random", 3, context=context), **changes)


def test_loaded_studies_have_the_same_best(tmp_path):
    s = studied()
    with contextlib.closing(Journal(tmp_path / "job.db", described())) as journal:
        journal.append(events_of(s))
    study = raybo.load(tmp_path / "job.db")
    assert study.context == LOAD
    assert study.best == s.best
    assert study.best_for({"load": 19}) == s.best_for({"load": 19})
    assert study.trials == s.trials


def test_context_columns_never_replace_others():
    study = Study(described(), events_of(studied()))
    frame = study.to_dataframe()
    assert list(frame.columns)[-2:] == ["x", "load"]
    assert list(frame["load"]) == [trial.context["load"] for trial in study.trials]
    context = Space({"state": Float(0, 20)})
    odd = Study(described(context), events_of(studied())[:3])
    assert list(odd.to_dataframe().columns)[-1] == "context.state"
    assert math.isnan(odd.to_dataframe()["context.state"][1])


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (None, "context load is Float.* in the journal and absent now"),
        (Space({"load": Float(0, 10)}), "context load is .*high=20.* in the journal and .*high=10.* now"),
        (Space({"load": Float(0, 20), "hour": Integer(0, 23)}), "context hour is absent in the journal and Integer"),
    ],
)
def test_a_changed_declaration_is_another_study(tmp_path, context, words):
    with contextlib.closing(Journal(tmp_path / "job.db", described())) as journal:
        journal.append([Planned(trials=3, number=1)])
    Journal(tmp_path / "job.db", described()).close()
    with pytest.raises(JournalError, match=words):
        Journal(tmp_path / "job.db", described(context))


@pytest.mark.parametrize("pair", [(1, True), (1, 1.0), ([1, 2], [1, 2.0]), ({"a": 0}, {"a": False})])
def test_settings_that_compare_equal_are_told_apart(pair):
    one, other = (described(settings={"k": value}) for value in pair)
    assert len(one.differences(other)) == 1
    assert one.differences(one) == []


def shown(view):
    console = Console(width=160, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(view)
    return capture.get()


def test_show_includes_contexts_and_expectations():
    events = events_of(studied())
    study = Study(described(), [*events, replace(events[0], trial=31), Told(31, value=0.1)])
    text = shown(study_view(study, 3))
    assert "1 finished without a context" in text
    assert "load=19" in text
    assert f"recommended: trial {study.best.number}, profit" in text
    assert "over the contexts" in text
    assert "best at load=19: trial" in shown(best_view(study, {"load": 19}))
    plain = shown(study_view(Study(described(None), events), 3))
    assert "recommended: trial" in plain
    assert "context" not in plain


# ---- the objective and its trials


def test_an_objective_declares_its_context_under_its_settings():
    @raybo.objective(space=SPACE, context=lambda most=20: {"load": Float(0, most)}, metric="loss")
    def job(config, *, most=20):
        return 1.0

    assert job.context == LOAD
    assert job.with_settings(most=5).context == Space({"load": Float(0, 5)})
    assert raybo.objective(space=SPACE)(lambda config: 1.0).context is None
    with pytest.raises(ObjectiveError, match="'loss' is its metric and a context too"):
        _ = replace(job, declared_context={"loss": Float(0, 1)}).context
    with pytest.raises(ObjectiveError, match="its context cannot be made: ZeroDivisionError"):
        _ = replace(job, declared_context=lambda: 1 / 0).context


def trial_of(function, context=LOAD, sent=None):
    return run_trial(function, {"x": 0.5}, {}, "loss", 1, context, None if sent is None else sent.append)


def test_a_trial_returns_its_context_beside_its_metrics():
    occurrence, data = trial_of(lambda config: {"loss": 1, "load": np.float64(5), "other": 2})
    assert occurrence is Occurrence.RETURNED
    assert (data["context"], data["c"], data["metrics"]) == ([5.0], [0.25], {"other": 2})
    _, undeclared = trial_of(lambda config: {"loss": 1, "load": 5}, context=None)
    assert undeclared["metrics"] == {"load": 5}
    assert "context" not in undeclared


class Hostile:
    def __eq__(self, other):
        raise RuntimeError

    __hash__ = object.__hash__

    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        ({"loss": 1, "load": math.nan}, {"context_note": "context load: a finite number is needed, got nan"}),
        (
            {"loss": 1, "load": "x" * 9999},
            {"context_note": "context load: a number is needed, got '" + "x" * 196 + "..."},
        ),
        ({"loss": 1, "load": Hostile()}, {"context_note": "context load: a number is needed, got <Hostile>"}),
        ({"loss": 1}, {"context_missing": ["load"]}),
        (1.0, {"context_missing": ["load"]}),
    ],
)
def test_bad_contexts_keep_the_trials_value(result, kept):
    occurrence, data = trial_of(lambda config: result)
    assert occurrence is Occurrence.RETURNED
    assert {name: data[name] for name in data if name.startswith("context") or name == "c"} == kept


def test_failed_trials_keep_their_context():
    occurrence, data = trial_of(lambda config: {"loss": math.nan, "load": 5})
    assert (occurrence, data["c"]) == (Occurrence.BAD_RESULT, [0.25])

    def raising(config):
        raybo.report_context(load=10)
        raise ValueError("diverged")

    sent = []
    occurrence, data = trial_of(raising, sent=sent)
    assert (occurrence, data["c"], data["reason"]) == (Occurrence.RAISED, [0.5], "ValueError: diverged")
    assert sent == [{"context": [10.0], "c": [0.5]}]
    assert "c" not in trial_of(lambda config: 1 / 0)[1]


def test_returned_contexts_override_reported_ones():
    def job(config):
        raybo.report_context(load=10)
        return {"loss": 1.0, "load": 5}

    assert job({"x": 0.5}) == {"loss": 1.0, "load": 5}
    assert trial_of(job)[1]["c"] == [0.25]
    assert "c" not in trial_of(job, context=None)[1]


# ---- on Ray


@pytest.mark.ray
def test_contexts_on_ray_are_kept_and_replayed(ray_session, tmp_path):
    @raybo.objective(space=SPACE, context={"load": Float(0, 20)}, metric="profit")
    def newsvendor(config):
        x = config["x"]
        demand = (x * 997) % 1.0
        load = {0: math.nan, 1: None, 2: 25.0}.get(int(10 * x), 20 * demand)
        found = {"profit": 8 * min(x, demand) - 4 * x, "load": load}
        return {"profit": found["profit"]} if load is None else found

    path, notes = tmp_path / "n.db", []
    study = raybo.tune(
        newsvendor,
        trials=np.int64(24),
        method="sbo-kde",
        seed=1,
        workers=2,
        storage=path,
        watch=lambda status: notes.extend(status.notes),
        atoms=64,
    )
    assert study.count(State.FINISHED) == 24
    for trial in study.trials:
        tenth = int(10 * trial.config["x"])
        assert (trial.context is None) == (tenth in (0, 1))
        if tenth == 2:
            assert trial.context == {"load": 20.0}
    rejected = [note for note in notes if "finite number is needed, got nan" in note]
    assert len(rejected) == sum(int(10 * trial.config["x"]) == 0 for trial in study.trials) > 0
    assert sum("its context is not known" in note for note in notes) == 1
    assert raybo.load(path).best == study.best
    again = raybo.tune(newsvendor, trials=26, storage=path, workers=1)
    assert [trial.context for trial in again.trials[:24]] == [trial.context for trial in study.trials]
    changed = replace(newsvendor, declared_context={"load": Float(0, 10)})
    with pytest.raises(JournalError, match="context load is"):
        raybo.tune(changed, trials=26, storage=path)


@pytest.mark.ray
def test_killed_trials_keep_their_reported_context(ray_session, tmp_path):
    path = tmp_path / "k.db"

    @raybo.objective(space=SPACE, context={"load": Float(0, 20)}, metric="profit")
    def killed(config):
        raybo.report_context(load=7.0)
        import time

        give_up = time.monotonic() + 60
        while raybo.load(path).trials[0].context is None and time.monotonic() < give_up:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)

    study = raybo.tune(killed, trials=1, method="random", seed=0, retries=0, storage=path, workers=1)
    (trial,) = study.trials
    assert (trial.state, trial.context) == (State.LOST, {"load": 7.0})
    kinds = [event.kind for event in study.events]
    assert kinds == [Kind.PLANNED, Kind.ASKED, Kind.CONTEXT_OBSERVED, Kind.FAILED]


@pytest.mark.filterwarnings("ignore:trial 0. its context is not known")  # told once in a process
def test_without_contexts_the_best_keeps_the_constraints():
    searcher = raybo.Searcher(
        {"x": raybo.Float(0, 1)},
        "random",
        metric="acc",
        constraints={"mem": "<= 1"},
        context={"load": raybo.Float(0, 1)},
        seed=0,
    )
    for accuracy, memory in ((0.5, 0.5), (0.9, 5.0), (0.6, 0.7)):
        searcher.tell(searcher.ask(), {"acc": accuracy, "mem": memory})
    assert searcher.best.number == searcher.recommended.number == 2
