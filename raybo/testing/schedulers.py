"""The contract of all schedulers, as a class of tests."""

from __future__ import annotations

import dataclasses
import json
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from raybo import schedulers
from raybo.common.errors import MethodError
from raybo.record.history import History
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.schedulers import AnyScheduler, Scheduler, Verdict
from raybo.searcher import Searcher
from raybo.space import Float, Space
from raybo.testing.choices import numbers_of, words_of
from raybo.testing.histories import state_of

SPACE = Space({"x": Float(0, 1), "y": Float(0, 1)})
STEPS, TRIALS, WORKERS = 13, 16, 3
Curve = Callable[[Trial, int], float]


def learning(trial: Trial, step: int) -> float:
    """A curve that rises towards a value that depends on the configuration, with a wobble."""
    end = 1.0 - (trial.config["x"] - 0.3) ** 2 - 0.5 * (trial.config["y"] - 0.7) ** 2
    return float(end * (1.0 - math.exp(-step / 4)) + 0.02 * math.sin(7 * trial.number + step))


CURVES: dict[str, Curve] = {
    "learning": learning,
    "falling": lambda trial, step: -learning(trial, step),
    "constant": lambda trial, step: 1.0,
    "ties": lambda trial, step: float(trial.number % 2),
    "huge": lambda trial, step: 1e300 * learning(trial, step),
    "tiny": lambda trial, step: 1e-300 * learning(trial, step),
    "ever better": lambda trial, step: trial.number + step / 100,
    "ever worse": lambda trial, step: -trial.number + step / 100,
}


@dataclass
class Study:
    """A study under a scheduler, run step by step by several workers in turn.

    Attributes:
        verdicts: trial, step and verdict of every report, in order; before: the history that each was given of.
    """

    searcher: Searcher
    curve: Curve
    stride: int = 1
    verdicts: list[tuple[int, int, Verdict]] = field(default_factory=list)
    before: list[History] = field(default_factory=list)

    def run(self, trials: int = TRIALS, workers: int = WORKERS, fail: Sequence[int] = (), seed: int = 0) -> Study:
        """Run the planned trials to their ends; those in `fail` fail after their first report."""
        rng, running = np.random.default_rng(seed), list[int]()
        for _ in range(4 * trials * STEPS):
            while len(running) < workers and (trial := self._next(trials)) is not None:
                running.append(trial.number)
            if not running:
                return self
            number = running[int(rng.integers(len(running)))]
            if number in fail and self.searcher.trials[number].step:
                self.searcher.fail(number, "unlucky")
            elif self._report(number):
                continue
            running.remove(number)
        raise AssertionError(f"{trials} trials have not ended after {4 * trials * STEPS} reports")

    def _next(self, trials: int) -> Trial | None:
        promoted = self.searcher.promoted()
        if promoted is not None:
            assert promoted.state is State.PENDING
            return promoted
        own = [trial for trial in self.searcher.trials if trial.origin is None]
        return self.searcher.ask() if len(own) < trials else None

    def _report(self, number: int) -> bool:
        """Report the next step; True if the trial continues."""
        trial = self.searcher.trials[number]
        step = min(trial.step + self.stride, STEPS)
        verdict = self.searcher.report(number, self.curve(trial, step), step)
        self.verdicts.append((number, step, verdict))
        self.before.append(self.searcher.history.copy())
        if verdict.prune:
            self.searcher.prune(number)
        elif verdict.pause:
            self.searcher.pause(number)
        elif step == STEPS:
            self.searcher.tell(number, self.curve(trial, step))
        else:
            return True
        return False

    @property
    def actions(self) -> list[tuple[int, int, str]]:
        """Trial, step and action of every report."""
        return [(trial, step, verdict.action) for trial, step, verdict in self.verdicts]


class SchedulerContract:
    """Derive a class of tests from it, whose attribute `scheduler` names yours; pytest then runs the contract on it.

    A scheduler decides nothing at the last step; gives verdicts that say why on one line, with plain numbers; is a pure
    function of the history, whether its caches are warm or cold; brings every study to its end; promotes
    paused trials only; maximises whatever the sign; judges one of several metrics as if it were the only one; is not
    moved by trials that confirm a configuration; and refuses wrong options by name.

    Attributes:
        scheduler: a name, "package.module:Class", or the class. Its options need defaults.
    Example:
        >>> from raybo.testing import SchedulerContract
        >>> class TestMyRule(SchedulerContract):
        ...     scheduler = "my_package:MyRule"
    """

    scheduler: AnyScheduler

    def cases(self) -> Sequence[AnyScheduler]:
        """Return the test cases."""
        return [self.scheduler]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run every test for each case and each of its choices of words; called by pytest."""
        if "words" in metafunc.fixturenames:
            cases = [(name, words) for name in self.cases() for words in ({}, *words_of(schedulers.load(name)))]
            metafunc.parametrize(("name", "words"), cases, ids=[_label(*case) for case in cases])
        elif "name" in metafunc.fixturenames:
            metafunc.parametrize("name", self.cases(), ids=schedulers.label)

    @pytest.fixture
    def made(self, name: AnyScheduler, words: dict[str, str]) -> Scheduler:
        """The scheduler with its defaults, but for these words."""
        return schedulers.make(name, words, STEPS)

    def study(self, made: Scheduler, curve: str | Curve = "learning", *, stride: int = 1, **declared: Any) -> Study:
        """Return a study that has not begun."""
        declared = {"mode": "max", "trials": TRIALS, **declared}
        searcher = Searcher(SPACE, "random", seed=1, steps=STEPS, scheduler=made, **declared)
        return Study(searcher, CURVES[curve] if isinstance(curve, str) else curve, stride)

    # ---- what it is

    def test_it_is_a_frozen_dataclass_whose_options_say_what_they_mean(self, name: AnyScheduler) -> None:
        text, options = schedulers.describe(name)
        made = schedulers.make(name, {}, STEPS)
        assert text
        assert dataclasses.is_dataclass(made)
        assert all(meaning for _, _, meaning in options)
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.anything = 1  # type: ignore[attr-defined]
        assert schedulers.make(name, {option: default for option, default, _ in options}, STEPS) == made

    def test_a_journal_finds_it_again(self, name: AnyScheduler, words: dict[str, str], made: Scheduler) -> None:
        kept = json.loads(json.dumps(schedulers.options_of(made, made, {})))
        assert schedulers.make(schedulers.name_of(made), kept, STEPS) == made

    def test_unknown_options_and_metrics_are_refused(self, name: AnyScheduler) -> None:
        with pytest.raises(MethodError, match=f"^{schedulers.label(name)} has no option 'nonsense_of_mine'"):
            schedulers.make(name, {"nonsense_of_mine": 1}, STEPS)
        with pytest.raises(MethodError, match=r"metric must be a or b, got 'c'"):
            schedulers.make(name, {"metric": "c"}, STEPS, ["a", "b"])

    def test_it_needs_to_know_how_many_steps_a_run_has(self, name: AnyScheduler) -> None:
        with pytest.raises(MethodError, match="steps="):
            schedulers.make(name, {}, None)

    @pytest.mark.parametrize("value", [-1, 0, math.nan, math.inf])
    def test_a_number_at_or_beyond_the_end_of_its_range_is_refused_by_name_or_works(
        self, name: AnyScheduler, value: float
    ) -> None:
        for options in numbers_of(schedulers.load(name), value):
            try:
                made, refusal = schedulers.make(name, options, STEPS), ""
            except MethodError as error:
                refusal = str(error)
            assert refusal == "" or refusal.startswith(f"{schedulers.label(name)}: "), options
            assert "\n" not in refusal, options
            if not refusal:
                self.study(made, trials=6).run(6)

    # ---- what it says

    def test_nothing_is_decided_at_the_last_step(
        self, name: AnyScheduler, words: dict[str, str], made: Scheduler
    ) -> None:
        """Asked of any step, also of some that a trial has yet to report, it answers True or False."""
        study = self.study(made).run(8)
        trial = study.searcher.ask()
        history = study.searcher.history
        decides = [made.decides(history, trial.number, step) for step in range(1, STEPS + 65)]
        assert all(isinstance(each, bool) for each in decides)
        assert not any(decides[STEPS - 1 :])

    @pytest.mark.parametrize("curve", CURVES)
    def test_every_verdict_says_why_on_one_line(
        self, name: AnyScheduler, words: dict[str, str], made: Scheduler, curve: str
    ) -> None:
        for _, step, verdict in self.study(made, curve).run().verdicts:
            assert isinstance(verdict, Verdict)
            assert verdict.action in ("go", "prune", "pause")
            assert verdict.action == "go" or step < STEPS
            assert verdict.action == "go" or verdict.why
            assert "\n" not in verdict.why
            assert json.loads(json.dumps(dict(verdict.numbers), allow_nan=False)) == dict(verdict.numbers)

    @pytest.mark.parametrize("curve", CURVES)
    @pytest.mark.parametrize("stride", [1, 3])
    def test_every_study_ends(
        self, name: AnyScheduler, words: dict[str, str], made: Scheduler, curve: str, stride: int
    ) -> None:
        """With trials that fail on the way, and jobs that report every third step; none waits in vain for a result."""
        for trials, fail in ((TRIALS, (0, 5, 6)), (1, ())):
            history = self.study(made, curve, stride=stride, trials=trials).run(trials, fail=fail).searcher.history
            assert not history.count(State.PENDING)
            assert history.count(State.FINISHED) or not history.count(State.PAUSED)

    def test_only_paused_trials_are_promoted(self, name: AnyScheduler, words: dict[str, str], made: Scheduler) -> None:
        study = self.study(made).run()
        for history in study.before:
            promoted = made.next_promoted(history)
            assert promoted is None or history.records[promoted].state is State.PAUSED

    # ---- purity

    def test_a_verdict_is_a_pure_function_of_the_history(
        self, name: AnyScheduler, words: dict[str, str], made: Scheduler
    ) -> None:
        """In another order, in a thread whose caches are cold, and by an equal scheduler: always the same."""
        study = self.study(made).run()
        again = dataclasses.replace(made)
        told: list[tuple[int, Verdict]] = []

        def judge() -> None:
            for place in reversed(range(len(study.verdicts))):
                (trial, step, _), history = study.verdicts[place], study.before[place].copy()
                known = state_of(history)
                if again.decides(history, trial, step):
                    told.append((place, again.decide(history, trial, step)))
                again.next_promoted(history)
                assert state_of(history) == known, "the history was changed"

        failed: list[BaseException] = []
        thread = threading.Thread(target=_caught(judge, failed))
        thread.start()
        thread.join()
        assert not failed, failed
        assert {place: verdict for place, verdict in told if verdict.why} == {
            place: verdict for place, (_, _, verdict) in enumerate(study.verdicts) if verdict.why
        }

    def test_minimising_is_maximising_the_negative(
        self, name: AnyScheduler, words: dict[str, str], made: Scheduler
    ) -> None:
        up = self.study(made, "learning", mode="max").run()
        down = self.study(made, "falling", mode="min").run()
        assert up.actions == down.actions

    def test_one_of_several_metrics_is_judged_as_if_it_were_the_only_one(
        self, name: AnyScheduler, words: dict[str, str], made: Scheduler
    ) -> None:
        alone = self.study(made, "falling", mode="min").run()
        both: Any = lambda trial, step: {"a": float(step), "b": -learning(trial, step)}  # noqa: E731
        of_b = dataclasses.replace(made, metric="b")
        judged = self.study(of_b, both, mode="max", metrics={"a": "max", "b": "min"}).run()
        assert judged.actions == alone.actions
        assert [v.why for *_, v in judged.verdicts] == [v.why and f"b: {v.why}" for *_, v in alone.verdicts]

    def test_trials_that_confirm_a_configuration_are_no_rivals(
        self, name: AnyScheduler, words: dict[str, str], made: Scheduler
    ) -> None:
        """They run the best ones again, and are in a history as any other: their tags say `confirms`."""
        actions = []
        for is_confirming in (False, True):
            searcher = self.study(made).run(8).searcher
            for _ in range(4):
                _add(searcher, is_confirming=is_confirming)
            trial = searcher.ask()
            actions.append([searcher.report(trial, 0.1 + 0.01 * step, step).action for step in range(1, STEPS)])
        assert actions[0] == actions[1]


def _add(searcher: Searcher, *, is_confirming: bool) -> None:
    """Run a configuration again, which is never judged; or have a trial fail in its place."""
    if not is_confirming:
        searcher.fail(searcher.ask(), "unlucky")
        return
    number = searcher.apply(searcher.known({"x": 0.3, "y": 0.7}, Origin.CONFIRMED, {"confirms": 0})).trial
    assert number is not None
    for step in range(1, STEPS + 1):
        assert searcher.report(number, 5.0, step).action == "go"
    searcher.tell(number, 5.0)


def _caught(function: Callable[[], None], failed: list[BaseException]) -> Callable[[], None]:
    def run() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001  # raised again by the test's own thread
            failed.append(error)

    return run


def _label(name: AnyScheduler, words: dict[str, str]) -> str:
    return " ".join([schedulers.label(name), *(f"{option}={word}" for option, word in words.items())])
