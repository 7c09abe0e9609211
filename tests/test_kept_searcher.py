"""A searcher with a journal: its answers are committed, and a killed loop continues where it was."""

from __future__ import annotations

import gc
import os
import signal

import numpy as np
import pytest

import raybo
from raybo.common.errors import JournalError, JournalInUse, MethodError, SpaceError
from raybo.journal import requests
from raybo.methods import Method
from raybo.record.history import Proposal
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.study.enqueueing import enqueue
from raybo.study.replay import replay, replay_verdicts

SPACE = {"x": raybo.Float(0, 1), "n": raybo.Integer(1, 9)}


def value(config):
    return (config["x"] - 0.3) ** 2 + config["n"]


def loop(searcher, trials):
    while len(searcher.trials) < trials:
        trial = searcher.ask()
        searcher.tell(trial, value(trial.config))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loop.db"


def outcomes(trials):
    return [(trial.number, trial.state, trial.value, trial.config, trial.tags) for trial in trials]


def test_a_kept_loop_equals_one_in_memory(path):
    free = Searcher(SPACE, mode="min", seed=3, trials=12)
    loop(free, 12)
    for trials in (5, 9, 12):
        with Searcher(SPACE, mode="min", seed=3, trials=12, storage=path) as kept:
            loop(kept, trials)
    assert outcomes(raybo.load(path).trials) == outcomes(free.trials)
    assert not any(each.differs for each in replay(raybo.load(path)))


def test_everything_is_committed_before_it_returns(path):
    searcher = Searcher(SPACE, seed=0, steps=3, storage=path)
    seen = []
    for act in (
        lambda: searcher.ask(2),
        lambda: searcher.tell(0, 1.0),
        lambda: searcher.report(1, 0.5),
        lambda: searcher.fail(1, "diverged"),
        lambda: searcher.retry(1),
        lambda: searcher.prune(1, "too slow"),
        lambda: searcher.add({"x": 0.5, "n": 2}, 3.0),
        lambda: searcher.plan(9),
    ):
        act()
        seen.append(len(raybo.load(path).events))
    assert seen == [2, 3, 4, 5, 6, 7, 9, 10]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_loop_leaves_its_trial_pending(path):
    child = os.fork()
    if not child:
        searcher = Searcher(SPACE, mode="min", seed=1, storage=path)
        loop(searcher, 4)
        searcher.ask()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with Searcher(storage=path) as again:
        assert [trial.number for trial in again.pending] == [4]
        assert again.tell(4, 0.5).state is State.FINISHED
        assert (again.mode, again.seed, again.best.number) == ("min", 1, 4)


def test_a_journal_fills_in_what_is_left_out(path):
    metrics = {"a": "max", "b": "min"}
    Searcher(SPACE, "ei", metrics=metrics, constraints={"c": "<= 1"}, seed=5, storage=path, initial=4).ask()
    gc.collect()
    with Searcher(storage=path) as again:
        assert again.description.to_json() == raybo.load(path).description.to_json()
        assert again.method.initial == 4
    with Searcher(SPACE, seed=5, storage=path) as again:
        assert len(again.trials) == 1


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"space": {"x": raybo.Float(0, 2)}}, "x is Float"),
        ({"method": "ei"}, "method is 'auto' in the journal and 'ei' now"),
        ({"mode": "max"}, "mode is 'min' in the journal and 'max' now"),
        ({"seed": 9}, "seed is 0 in the journal and 9 now"),
    ],
)
def test_another_study_is_refused(path, given, what):
    with Searcher(SPACE, mode="min", seed=0, storage=path) as searcher:
        searcher.ask()
    with pytest.raises(JournalError, match=what):
        Searcher(**{"space": SPACE, **given}, storage=path)
    Searcher(storage=path).close()  # the refused one has given the lock back


def test_only_one_searcher_writes(path):
    first = Searcher(SPACE, storage=path)
    with pytest.raises(JournalInUse, match="close that searcher"):
        Searcher(storage=path)
    del first
    gc.collect()
    Searcher(storage=path).close()


def test_a_closed_searcher_refuses_to_write(path):
    with Searcher(SPACE, storage=path) as searcher:
        trial = searcher.ask()
    with pytest.raises(JournalError, match="this searcher is closed"):
        searcher.tell(trial, 1.0)
    assert searcher.trials[0].state is State.PENDING
    searcher.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_neither_writes_nor_unlocks(path):
    searcher = Searcher(SPACE, storage=path)
    child = os.fork()
    if not child:
        try:
            searcher.ask()
        except JournalError:
            searcher.close()
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert raybo.load(path).trials == []
    with pytest.raises(JournalInUse):
        Searcher(storage=path)
    searcher.ask()


def test_enqueued_configurations_are_asked_first(path):
    with Searcher(SPACE, seed=0, storage=path) as searcher:
        searcher.ask()
    enqueue(path, {"x": 0.25, "n": 3})
    with Searcher(storage=path) as searcher:
        assert searcher.ask().config == {"x": 0.25, "n": 3}
        assert searcher.ask().number == 2
    with Searcher(storage=path) as searcher:  # once, not again after a restart
        assert searcher.ask().number == 3
        assert [trial.number for trial in searcher.pending] == [0, 1, 2, 3]


def test_an_enqueued_trial_may_be_told_unasked(path):
    Searcher(SPACE, seed=0, storage=path).close()
    enqueue(path, {"x": 0.25, "n": 3})
    with Searcher(storage=path) as searcher:
        searcher.tell(searcher.pending[0], 1.0)
        assert searcher.ask().number == 1


@pytest.mark.parametrize("reopens", [False, True])
@pytest.mark.parametrize("act", ["report", "retry"])
def test_an_enqueued_trial_that_has_begun_is_not_asked(path, act, reopens):
    searcher = Searcher({"x": raybo.Float(0, 1)}, "random", steps=4, seed=0, storage=path)
    trial = searcher.enqueue({"x": 0.25})
    if act == "report":
        searcher.report(trial, 1.0)
    else:
        searcher.retry(trial)
    if reopens:
        searcher.close()
        searcher = Searcher(storage=path)
    assert searcher.ask().number == 1


@pytest.mark.parametrize("reopens", [False, True])
def test_a_verdict_ends_with_its_attempt(path, reopens):
    searcher = Searcher({"x": raybo.Float(0, 1)}, "random", mode="min", steps=9, scheduler="asha", seed=0, storage=path)
    for value in (1.0, 2.0, 3.0, 4.0):
        trial = searcher.ask()
        verdict = searcher.report(trial, value)
    assert verdict.prune
    searcher.fail(trial, "its machine was lost")
    searcher.retry(trial)
    if reopens:
        searcher.close()
        searcher = Searcher(storage=path)
    assert searcher.prune(trial.number).reason == "pruned by the user"


def test_the_rest_of_a_part_is_proposed_and_replayed(path):
    with Searcher(SPACE, seed=0, mode="min", storage=path) as searcher:
        for _ in range(6):
            trial = searcher.ask()
            searcher.tell(trial, (trial.config["x"] - 0.3) ** 2 + trial.config["n"])
    enqueue(path, {"n": 7})
    with Searcher(storage=path) as searcher:
        part = searcher.ask()
        assert (part.number, part.config["n"]) == (6, 7)
        assert searcher.explain(part) == "enqueued by the user with n; the rest proposed"
        mine = searcher.enqueue({"x": 0.5})
        assert searcher.enqueue({"x": 0.5}) == mine  # as the same lines do after a restart
    with Searcher(storage=path) as searcher:
        assert searcher.enqueue({"x": 0.5}).number == mine.number
        assert searcher.ask().config == mine.config
        searcher.tell(searcher.ask(), 1.0)
    again = list(replay(raybo.load(path)))
    assert [(each.trial, each.differs) for each in again] == [(number, ()) for number in range(9)]


def test_a_part_takes_the_proposal_of_its_moment(path):
    with Searcher(SPACE, seed=0, storage=path) as searcher:
        for number in range(8):
            searcher.tell(searcher.ask(), float(number % 3))
        proposal = searcher.propose(searcher.history)
        assert searcher.enqueue({"n": 7}).config == {"x": proposal.values[0], "n": 7}
        assert searcher.ask().config["n"] == 7


def test_enqueue_refuses_what_does_not_fit(path):
    with Searcher(SPACE, seed=0, storage=path) as searcher:
        with pytest.raises(SpaceError, match="m: not a parameter of the space"):
            searcher.enqueue({"m": 1})
        with pytest.raises(SpaceError, match="n: 12 lies outside"):
            searcher.enqueue({"n": 12})
        assert searcher.trials == []


def test_a_verdict_outlives_the_process(path):
    with Searcher(
        SPACE, seed=0, steps=9, scheduler="median", scheduler_options={"grace": 1, "startup": 3}, storage=path
    ) as searcher:
        for number, height in enumerate([5.0, 4.0, 3.0, 6.0, 0.0]):  # the last is below the median
            searcher.ask()
            verdict = [searcher.report(number, height) for _ in range(2)][-1]
            if number < 4:
                searcher.tell(number, height)
    assert verdict.prune
    with Searcher(storage=path) as searcher:
        assert searcher.prune(4).reason == verdict.why
    assert all(each.verdict == each.recorded for each in replay_verdicts(raybo.load(path)))


def test_a_retried_trial_repeats_its_steps(path):
    with Searcher(SPACE, seed=0, steps=4, storage=path) as searcher:
        searcher.ask()
        for height in (1.0, 2.0):
            searcher.report(0, height)
    with Searcher(storage=path) as searcher:
        assert searcher.retry(0).attempt == 2
        for height in (1.5, 2.5, 3.5):
            searcher.report(0, height)
        with pytest.raises(raybo.TrialError, match="step 2 comes after step 3"):
            searcher.report(0, 1.0, 2)
        assert searcher.tell(0, 3.5).reports == [(1, 1.0), (2, 2.0), (3, 3.5)]
    assert raybo.load(path).trials[0].last_run == [(1, 1.5), (2, 2.5), (3, 3.5)]


@pytest.mark.parametrize("reopened", [False, True])
def test_a_promoted_trial_continues_after_the_step_where_it_was_paused(path, reopened):
    asha = {"scheduler": "asha", "scheduler_options": {"variant": "promote", "eta": 2}}
    searcher = Searcher(SPACE, seed=0, steps=8, storage=path, **asha)
    for height in (3.0, 1.0, 2.0, 0.0):
        trial = searcher.ask()
        if searcher.report(trial, height).pause:
            searcher.pause(trial)
    trial = searcher.promoted()
    if reopened:
        searcher.close()
        searcher = Searcher(storage=path)
    with searcher:
        searcher.report(trial, 7.0)
        assert searcher.trials[trial.number].reports == [trial.reports[0], (2, 7.0)]
        searcher.retry(trial)
        searcher.report(trial, 5.0)  # it starts again: its first step
        assert searcher.trials[trial.number].last_run == [(1, 5.0)]


def test_a_failed_write_is_made_up_for(path, monkeypatch):
    searcher = Searcher(SPACE, seed=0, storage=path)
    journal = searcher._kept._journal
    append = journal.append
    monkeypatch.setattr(journal, "append", lambda events: (_ for _ in ()).throw(JournalError("the disk is full")))
    with pytest.raises(JournalError, match="full"):
        searcher.ask()
    monkeypatch.setattr(journal, "append", append)
    searcher.ask()
    assert [trial.number for trial in raybo.load(path).trials] == [0, 1]


class Local(Method):
    """A method that this module defines."""

    def propose(self, history, rng):
        return Proposal(rng.random(history.d))

    def explain(self, tags):
        return "by chance"


def test_what_no_journal_can_name_is_refused(path):
    class Hidden(Local):
        pass

    with pytest.raises(MethodError, match="defined in a function"):
        Searcher(SPACE, Hidden, storage=path)
    with Searcher(SPACE, Local(), seed=0, storage=path) as searcher:
        config = searcher.ask().config
    with Searcher(storage=path) as searcher:
        assert searcher.trials[0].config == config


def test_a_searcher_needs_a_space(path):
    for arguments in ({}, {"storage": path}):
        with pytest.raises(SpaceError, match="a searcher needs a space"):
            Searcher(**arguments)
    assert not path.exists()


def test_the_same_lines_add_a_result_once(path):
    """Two equal results are two trials; a loop that is run again adds neither again."""
    for begun in range(3):
        with Searcher(SPACE, seed=0, storage=path) as searcher:
            config = searcher.space.sample(np.random.default_rng(0), 1)[0]
            assert [searcher.add(config, value).number for value in (0.5, 0.5, 0.25)] == [0, 1, 2]
            assert searcher.tell(searcher.ask(), 1.0).number == 3 + begun
    assert len(raybo.load(path).trials) == 6


def test_a_loop_of_ones_own_takes_no_requests(path):
    """A study that was killed has left the directory for them."""
    requests.listen(path)
    with Searcher(SPACE, seed=0, storage=path) as searcher:
        searcher.ask()
        assert not requests.is_listening(path)
