"""A journal's proposals made again, and the errors if one cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

import raybo
from raybo import methods
from raybo.record.description import Description
from raybo.record.events import Event, Kind, Retried
from raybo.record.goals import Goals
from raybo.study.replay import replay
from raybo.study.study import Study

SPACE = raybo.Space({"x": raybo.Float(0, 1), "n": raybo.Integer(1, 5), "c": raybo.Categorical(["a", "b"])})
CONTEXT = {"demand": raybo.Float(0, 1)}


def recorded(method: str) -> Study:
    """A study with three trials in flight, and one that failed, was run again meanwhile, and finished."""
    context = CONTEXT if methods.needs_context(method) else None
    searcher = raybo.Searcher(SPACE, method, seed=3, trials=14, context=context)
    events: list[Event] = []
    apply = searcher.apply
    searcher.apply = lambda event: events.append(apply(event)) or events[-1]  # type: ignore[method-assign,func-returns-value]
    searcher.plan(14)
    trials = [searcher.ask() for _ in range(3)]
    for i in range(11):
        told = {} if context is None else {"context": {"demand": (7 * i % 10) / 10}}
        if i == 2:
            failed = trials.pop(0)
            searcher.fail(failed, "diverged", **told)
        else:
            trial = trials.pop(0)
            searcher.tell(trial, trial.config["x"] + 0.1 * trial.config["n"], **told)
        if i == 5:
            searcher.apply(Retried(failed.number, reason="wanted again", attempt=2))
        if i == 8:
            searcher.tell(failed.number, 0.7, **told)
        trials.append(searcher.ask())
    description = Description(
        "job", searcher.goals, SPACE, method, 3, context=searcher.context, generation=searcher.history.generation
    )
    return Study(description, events)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        *sorted(methods.METHODS),
        *map(methods.kept, methods.RETIRED),
    ],
)
def test_every_method_proposes_the_same_again(method):
    again = list(replay(recorded(method)))
    assert [trial.trial for trial in again] == list(range(14))
    assert [trial.trial for trial in again if trial.differs] == []


def test_a_proposal_that_was_tampered_with_is_found():
    study = recorded("gp-ucb")
    asked = [i for i, event in enumerate(study.events) if event.kind is Kind.ASKED]
    for position, key, value in ((asked[5], "x", [0.5, 0.1, 0.25]), (asked[9], "tags", {"t": 1})):
        event = study.events[position]
        study.events[position] = replace(event, **{key: value})
    differing = {trial.trial: trial for trial in replay(study) if trial.differs}
    assert differing[5].differs == ("x",)
    assert (differing[5].distance > 1e-3, differing[5].tags) == (True, ())
    assert "tags" in differing[9].differs
    assert "t" in differing[9].tags
    assert not any(trial.is_rounding for trial in replay(study))


def test_rounding_is_told_from_a_difference():
    study = recorded("gp-ucb")
    asked = [i for i, event in enumerate(study.events) if event.kind is Kind.ASKED]
    for position, factor in ((asked[5], 1 + 1e-11), (asked[9], 1 + 1e-4)):
        event = study.events[position]
        tags = {key: value * factor if isinstance(value, float) else value for key, value in event.data["tags"].items()}
        study.events[position] = replace(event, tags=tags)
    differing = {trial.trial: trial.is_rounding for trial in replay(study) if trial.differs}
    assert (differing[5], differing[9]) == (True, False)


def test_what_a_user_named_is_not_proposed_again():
    searcher = raybo.Searcher(SPACE, "random", seed=0)
    events: list[Event] = []
    apply = searcher.apply
    searcher.apply = lambda event: events.append(apply(event)) or events[-1]  # type: ignore[method-assign,func-returns-value]
    searcher.add({"x": 0.5, "n": 2, "c": "a"}, 1.0)
    searcher.ask()
    study = Study(Description("job", Goals(("value",), ("max",)), SPACE, "random", 0), events)
    assert [trial.trial for trial in replay(study)] == [1]
