"""The contract of all methods, as a class of tests."""

from __future__ import annotations

import dataclasses
import json
import math
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from raybo import methods
from raybo.common.errors import MethodError
from raybo.methods import AnyMethod, Method
from raybo.record.events import Asked, Event, Told
from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.space import Float, Space
from raybo.testing.choices import numbers_of, words_of
from raybo.testing.histories import CONTEXT, HISTORIES, SPACES, check_proposal, history_of, stream

RULED = {name: space for name, space in SPACES.items() if space.rules}
ODD = (-1, 0, math.nan, math.inf)  # values of options
FREE = {name: space for name, space in SPACES.items() if not space.rules}


class MethodContract:
    """Derive a class of tests from it, whose attribute `method` names yours; pytest then runs the contract on it.

    A method proposes a point of the cube and plain tags on every kind of space and after every kind of history; is a
    pure function of the history and the random stream; replays from a journal; explains itself; accounts for pending
    trials; survives failures, ties and huge values; keeps the rules of a space; and refuses wrong options by name.

    Attributes:
        method: a name, "package.module:Class", or the class. Its options need defaults.
        largest: trials of the longest history of the tests on spaces, from 0 to 25; less for a method of seconds per
            proposal.
        many: trials of the test with many results, from 0.
    Example:
        >>> from raybo.testing import MethodContract
        >>> class TestMine(MethodContract):
        ...     method = "my_package:Mine"
    """

    method: AnyMethod
    largest: int = 25
    many: int = 300

    def cases(self) -> Sequence[Any]:
        """Return the test cases, as values of `pytest.mark.parametrize`."""
        return [self.method]

    def marks(self, words: Mapping[str, str]) -> Sequence[pytest.MarkDecorator]:
        """Return the marks of tests with such options, of some that take long, say."""
        return ()

    def builds_on_last_tags(self, made: Method) -> bool:
        """Return False, for quicker tests, if a proposal after the design needs no tags of the one before."""
        return True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test for each case, and those of words for each of its words; called by pytest."""
        if "words" in metafunc.fixturenames:
            metafunc.parametrize(("name", "words"), [p for case in self.cases() for p in self._variants(case)])
        elif "name" in metafunc.fixturenames:
            metafunc.parametrize("name", self.cases(), ids=methods.label)

    def _variants(self, case: Any) -> Iterator[Any]:
        """Yield the case once for each value, beside the default, of every option that is a choice of words."""
        name, marks = (case.values[0], case.marks) if hasattr(case, "values") else (case, ())
        for words in words_of(methods.load(name)):
            label = " ".join([methods.label(name), *(f"{option}={word}" for option, word in words.items())])
            yield pytest.param(name, words, id=label, marks=(*marks, *self.marks(words)))

    @pytest.fixture
    def made(self, name: AnyMethod) -> Method:
        """The method with its defaults."""
        return methods.make(name)

    def history(self, space: Space, points: Any, ends: Sequence[Any], method: Method, **more: Any) -> History:
        """Return a history whose tags are the method's own."""
        each = self.builds_on_last_tags(method)
        return history_of(space, points, ends, method=method, asks_each=each, **more)

    # ---- what it is

    def test_it_is_a_frozen_dataclass_whose_options_say_what_they_mean(self, name: AnyMethod, made: Method) -> None:
        text, options = methods.describe(name)
        assert text
        assert dataclasses.is_dataclass(made)
        assert all(meaning for _, _, meaning in options)
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.anything = 1  # type: ignore[attr-defined]
        assert methods.make(name, **{option: default for option, default, _ in options}) == made

    def test_a_journal_finds_it_again(self, name: AnyMethod, made: Method) -> None:
        kept = json.loads(json.dumps(methods.options_of(made, made, {})))
        assert methods.make(methods.kept(methods.name_of(name)), **kept) == made
        for words in words_of(methods.load(name)):
            chosen = methods.make(name, **words)
            kept = json.loads(json.dumps(methods.options_of(chosen, chosen, {})))
            assert methods.make(methods.kept(methods.name_of(chosen)), **kept) == chosen

    def test_unknown_options_are_refused(self, name: AnyMethod) -> None:
        with pytest.raises(MethodError, match=f"^{methods.label(name)} has no option 'nonsense_of_mine'"):
            methods.make(name, nonsense_of_mine=1)

    @pytest.mark.parametrize("value", ODD)
    def test_a_number_at_or_beyond_the_end_of_its_range_is_refused_by_name_or_works(
        self, name: AnyMethod, made: Method, value: float
    ) -> None:
        """Refused when the method is made, or good for proposals in a study that began with its defaults."""
        space, rng = Space({"a": Float(0, 1), "b": Float(0, 1)}), np.random.default_rng(1)
        whole = self.history(space, rng.random((10, 2)), rng.random(10).tolist(), made, planned=40)
        histories = [whole]
        for end in (8, 9):  # where methods that work in iterations explore, and where they move
            histories.append(whole.plain(whole.records[:end]))
        for options in self._numbers(name, value):
            try:
                method, refusal = methods.make(name, **options), ""
            except MethodError as error:
                refusal = str(error)
            assert refusal == "" or refusal.startswith(f"{methods.label(name)}: "), options
            assert "\n" not in refusal, options
            for history in () if refusal else histories:
                x = method.propose(history, stream(1)).x
                assert np.isfinite(x).all(), options
                assert ((x >= 0.0) & (x <= 1.0)).all(), options

    def _numbers(self, name: AnyMethod, value: float) -> Iterator[dict[str, Any]]:
        """Yield each option that is a number, or numbers, with that value; beside every choice of words."""
        cls = methods.load(name)
        small = {"initial": 3} if "initial" in typing.get_type_hints(cls) else {}
        words = [{}, *(words for words in words_of(cls) if not self.marks(words))]
        for number in numbers_of(cls, value):
            yield from ({**small, **chosen, **number} for chosen in words)

    # ---- on every space and after every history

    @pytest.mark.parametrize("space", FREE.values(), ids=FREE)
    @pytest.mark.parametrize("n", [0, 1, 2, 25])
    def test_it_proposes_on_every_space(self, name: AnyMethod, made: Method, space: Space, n: int) -> None:
        n = min(n, self.largest)
        points = stream(0).random((n, space.d))
        values = np.sin(5 * points).sum(axis=1).tolist()
        check_proposal(made, self.history(space, points, values, made, planned=40))

    @pytest.mark.parametrize("space", RULED.values(), ids=RULED)
    @pytest.mark.parametrize("n", [0, 6, 12])  # with rules a solver looks around at length
    def test_no_proposal_breaks_a_rule(self, name: AnyMethod, made: Method, space: Space, n: int) -> None:
        n = min(n, self.largest)
        points = stream(0).random((n, space.d))
        values = np.sin(5 * points).sum(axis=1).tolist()
        history = self.history(space, points, values, made, planned=40)
        check_proposal(made, history)
        searcher = Searcher(space, made, seed=4, **context_of(made))
        for trial in range(3):
            asked = searcher.propose(history)
            space.require_allowed(asked.data["values"])
            assert space.cube.allows(np.array([asked.data["x"]])).all()
            history.apply(Asked(len(history), x=asked.data["x"], tags=asked.data["tags"]))
            if trial:
                history.apply(Told(len(history) - 1, value=0.1 * trial))

    @pytest.mark.parametrize("kind", HISTORIES)
    def test_it_proposes_after_every_history(self, name: AnyMethod, made: Method, kind: str) -> None:
        points, ends, planned = HISTORIES[kind]
        check_proposal(made, self.history(SPACES["mixed"], points, ends, made, planned=planned))

    def test_no_option_leads_to_forbidden_points(self, name: AnyMethod, words: dict[str, str]) -> None:
        space, method = SPACES["ruled"], methods.make(name, **words)
        searcher = Searcher(space, method, seed=4, **context_of(method))
        points, ends = stream(3).random((12, space.d)), [*stream(3).random(9).tolist(), "failed", "lost", None]
        history = self.history(space, points, ends, method, planned=20, begun=methods.make(name))
        space.require_allowed(searcher.propose(history).data["values"])

    @pytest.mark.parametrize("kind", ["every kind", "the same point pending"])
    def test_it_proposes_under_each_of_its_words(self, name: AnyMethod, words: dict[str, str], kind: str) -> None:
        points, ends, planned = HISTORIES[kind]
        method, begun = methods.make(name, **words), methods.make(name)
        check_proposal(method, self.history(SPACES["mixed"], points[:5], ends[:5], method, planned=planned))
        check_proposal(method, self.history(SPACES["mixed"], points, ends, method, planned=planned, begun=begun))

    @pytest.mark.parametrize("space", ["one integer", "one choice", "a single choice"])
    def test_it_proposes_when_every_point_has_been_tried(self, name: AnyMethod, made: Method, space: str) -> None:
        levels = np.concatenate([SPACES[space].cube.levels[0]] * 5)[:, None]
        for ends in ([float(i % 3) for i in range(len(levels))], [None] * len(levels)):
            check_proposal(made, self.history(SPACES[space], levels, ends, made, planned=50))

    def test_it_proposes_after_many_results(self, name: AnyMethod, made: Method) -> None:
        """Known from elsewhere, so without tags, as those that a study begins with."""
        points = stream(3).random((self.many, SPACES["mixed"].d))
        values = np.cos(4 * points).sum(axis=1)
        searcher = Searcher(SPACES["mixed"], made, seed=3, **context_of(made))
        for i, config in enumerate(searcher.space.decode(searcher.space.snap(points))):
            searcher.add(config, float(values[i]), **observed(made, i))
        check_proposal(made, searcher.history)

    def test_added_trials_carry_no_tags_and_do_no_harm(self, name: AnyMethod, made: Method) -> None:
        space = SPACES["mixed"]
        searcher = Searcher(space, made, seed=3, trials=30, **context_of(made))
        for i, config in enumerate(space.sample(stream(2), 15)):
            searcher.add(config, float(config["n"]), **observed(made, i))
        for i in range(4):
            searcher.tell(searcher.ask(), float(i), **observed(made, i))
        check_proposal(made, searcher.history)

    def test_it_proposes_while_trials_report(self, name: AnyMethod, made: Method) -> None:
        """Some run, some are paused or pruned, some have finished after fewer steps than declared."""
        searcher = Searcher(SPACES["mixed"], made, seed=6, trials=20, steps=4, **context_of(made))
        for i in range(12):
            trial = searcher.ask()
            for step in range(1, 2 + i % 4):
                searcher.report(trial, math.sin(i) + 0.1 * step, step)
            if i % 3 == 0:
                searcher.tell(trial, math.sin(i), **observed(made, i))
            elif i % 3 == 1:
                searcher.prune(trial)
        check_proposal(made, methods.seen(made, searcher.history))

    @pytest.mark.parametrize("goals", ["two metrics", "a constraint", "both"])
    def test_several_goals_are_searched_or_refused(self, name: AnyMethod, made: Method, goals: str) -> None:
        declared: dict[str, Any] = {"metric": "a"} if goals == "a constraint" else {"metrics": {"a": "max", "b": "min"}}
        declared |= {} if goals == "two metrics" else {"constraints": {"c": "<= 0.5"}}
        if not made.takes_goals and not (goals == "a constraint" and made.takes_constraints):
            with pytest.raises(MethodError):
                Searcher(SPACES["mixed"], made, **declared, **context_of(made))
            return
        searcher = Searcher(SPACES["mixed"], made, seed=2, trials=20, **declared, **context_of(made))
        for i in range(14):
            trial = searcher.ask()
            if i % 5 == 4:
                searcher.fail(trial, "unlucky")
            else:
                searcher.tell(trial, {"a": math.sin(i), "b": trial.config["s"], "c": math.cos(i)}, **observed(made, i))
        check_proposal(made, searcher.history)

    # ---- purity, by replay

    def test_replaying_the_events_gives_the_same_proposals(self, name: AnyMethod, made: Method) -> None:
        searcher, events = study_of(made)
        replayed = Searcher(SPACES["mixed"], made, seed=5, **context_of(made))
        for written in events:
            event = type(written).of(written.trial, json.loads(json.dumps(written.data)), written.number)
            if isinstance(event, Asked) and event.origin is not Origin.ADDED:
                assert event.seen == replayed.history.last_event
                proposed = replayed.propose(replayed.history)
                untimed = {"suggest_seconds": 0, "suggest_processor_seconds": 0}
                assert {**proposed.data, **untimed} == {**event.data, **untimed}
            replayed.apply(event)
        assert [(t.state, t.value, t.tags) for t in replayed.trials] == [
            (t.state, t.value, t.tags) for t in searcher.trials
        ]

    def test_another_process_proposes_the_same(self, name: AnyMethod, made: Method) -> None:
        """Nothing is kept in the method: proposals asked out of order agree with those asked in order."""
        searcher, events = study_of(made)
        prefixes, history = [], History(searcher.space.cube, context_cube=searcher.history.context_cube)
        for event in events:
            if isinstance(event, Asked) and event.origin is not Origin.ADDED:
                prefixes.append((history.copy(), event))
            history.apply(event)
        fresh = Searcher(searcher.space, methods.make(name), seed=5, **context_of(made))
        for prefix, event in reversed(prefixes):
            assert fresh.propose(prefix).data["x"] == event.data["x"]

    def test_minimising_is_maximising_the_negative(self, name: AnyMethod, made: Method) -> None:
        space = SPACES["six floats"]
        up = Searcher(space, made, mode="max", seed=1, trials=16, **context_of(made))
        down = Searcher(space, made, mode="min", seed=1, trials=16, **context_of(made))
        for i in range(16):
            one, other = up.ask(), down.ask()
            assert one.config == other.config
            value = -sum((v - 0.3) ** 2 for v in one.config.values())
            up.tell(one, value, **observed(made, i))
            down.tell(other, -value, **observed(made, i))
        assert up.best.number == down.best.number

    def test_another_seed_gives_another_study(self, name: AnyMethod, made: Method) -> None:
        studies = [Searcher(SPACES["six floats"], made, seed=seed, trials=10, **context_of(made)) for seed in (0, 1)]
        first, second = ([study.ask().config for _ in range(3)] for study in studies)
        assert first != second

    def test_many_pending_trials_are_kept_apart(self, name: AnyMethod, made: Method) -> None:
        """All of a wave are asked before any is told: a method that forgets pending ones proposes one point again."""
        searcher = Searcher(SPACES["six floats"], made, seed=2, trials=40, **context_of(made))
        for _ in range(12):
            trial = searcher.ask()
            value = -sum((v - 0.3) ** 2 for v in trial.config.values())
            searcher.tell(trial, value, **observed(made, trial.number))
        X = np.array([list(searcher.ask().config.values()) for _ in range(8)])
        distances = np.linalg.norm(X[:, None] - X[None, :], axis=2)[np.triu_indices(8, 1)]
        assert distances.min() > 1e-6
        assert searcher.history.count(State.PENDING) == 8


def context_of(made: Method) -> dict[str, Any]:
    """Return the keyword argument that declares a context, if the method needs one."""
    return {"context": CONTEXT} if made.needs_context else {}


def observed(made: Method, number: int) -> dict[str, Any]:
    """Return the keyword argument with the context that a trial observed, if the method needs one."""
    return {"context": {"load": 5.0 + 4.0 * math.sin(number)}} if made.needs_context else {}


@lru_cache(maxsize=64)
def study_of(made: Method, count: int = 18) -> tuple[Searcher, list[Event]]:
    """Return a study with everything in it: waves of three, told out of order, failures, an added trial; its events."""
    searcher = Searcher(SPACES["mixed"], made, seed=5, **context_of(made))
    events, apply = [], searcher.apply

    def keep(event: Event) -> Event:
        events.append(apply(event))
        return events[-1]

    searcher.apply = keep  # type: ignore[method-assign, assignment]
    searcher.plan(count)
    searcher.add({"lr": 0.1, "n": 3, "c": "b", "s": 0.3, "big": 77}, 1.0, **observed(made, 1))
    while len(searcher.trials) < count:
        wave = [searcher.ask() for _ in range(3)]
        for trial in reversed(wave):
            if trial.number % 5 == 4:
                searcher.fail(trial, "unlucky", **observed(made, trial.number))
            elif trial.number % 7 != 6:  # the sevenths stay pending
                value = trial.config["s"] - math.log10(trial.config["lr"]) ** 2
                searcher.tell(trial, value, **observed(made, trial.number))
    return searcher, events
