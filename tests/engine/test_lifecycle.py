"""The table of a trial's life: as it is documented, complete, and without a place where a trial could stay for ever."""

from __future__ import annotations

import itertools
import pickle
import re

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from raybo.engine import lifecycle
from raybo.engine.lifecycle import ENDS_OF_A_PROCESS, InvalidTransition, Life, Occurrence, Phase, Step, step
from raybo.record.events import Kind

ENDS = {Phase.FINISHED, Phase.FAILED, Phase.LOST, Phase.STOPPED, Phase.GONE}
FAILED = {Phase.FAILED, Phase.LOST}
PAIRS = list(itertools.product(Phase, Occurrence))


def defined(phase, occurrence):
    return step(phase, occurrence) is not None


def documented():
    """The table in the module's docstring, as {(phase, occurrence, given up): step}."""
    table = {}
    phases = r"    (waiting|running|either|leaving|paused|failed|lost)\b"
    rows = re.findall(rf"^{phases} .*$", lifecycle.__doc__, re.MULTILINE)
    lines = [line for line in lifecycle.__doc__.splitlines() if re.match(phases, line)]
    assert len(lines) == len(rows)
    for line in lines:
        state, occurrence, following, instructions, *remark = re.split(r"\s{2,}", line.strip())
        record = re.search(r"record (\w+)", instructions)
        told = Step(
            Phase(following),
            Kind(record[1]) if record else None,
            submit="submit again" in instructions,
            free="free the worker" in instructions,
        )
        for phase in ("waiting", "running") if state == "either" else (state,):
            for what in ENDS_OF_A_PROCESS if occurrence == "any end" else (Occurrence(occurrence),):
                table[Phase(phase), what, remark == ["after the last attempt"]] = told
    return table


def test_the_table_in_the_docstring_is_what_happens():
    table = documented()
    for (phase, occurrence, given_up), told in table.items():
        for retries in range(3):
            losses = retries + 1 if given_up else retries
            assert step(phase, occurrence, losses=losses, retries=retries) == told
    assert {(phase, occurrence) for phase, occurrence, _ in table} == {pair for pair in PAIRS if defined(*pair)}


@pytest.mark.parametrize(("phase", "occurrence"), PAIRS, ids=lambda value: value.value)
def test_undefined_pairs_raise_with_the_story(phase, occurrence):
    life = Life(7, phase, attempt=2, losses=1, story=((Occurrence.SUBMITTED, Phase.RUNNING),))
    if not defined(phase, occurrence):
        with pytest.raises(
            InvalidTransition, match=f"trial that is {phase.value} cannot meet '{occurrence.value}'"
        ) as told:
            life.after(occurrence)
        assert "attempt 2, 1 workers lost, its story: submitted -> running" in str(told.value)
        again = pickle.loads(pickle.dumps(told.value))  # noqa: S301  # our own
        assert (str(again), again.life, again.occurrence) == (str(told.value), life, occurrence)
        return
    following = step(phase, occurrence)
    # nothing happens to an ended trial, unless it failed and is retried
    assert phase not in ENDS or (phase in FAILED and occurrence is Occurrence.WANTED_AGAIN)
    assert following.free == (following.phase in ENDS)  # a worker is freed at the end, and only there
    assert not (following.free and following.submit)
    if following.phase in ENDS:
        assert (following.record is None) == (phase is Phase.LEAVING)  # its outcome is recorded already
    if following.submit:
        assert following.phase is Phase.WAITING
        assert following.record is (Kind.RESUMED if phase is Phase.PAUSED else Kind.RETRIED)


def test_running_trials_can_be_stopped_and_recovered():
    for phase in (Phase.WAITING, Phase.RUNNING):
        assert step(phase, Occurrence.STOPPED).phase is Phase.STOPPED
        assert step(phase, Occurrence.STUDY_LOST) == Step(Phase.WAITING, Kind.RETRIED, submit=True)


@pytest.mark.parametrize("retries", range(4))
def test_lost_workers_are_retried_as_often_as_allowed(retries):
    life, runs = Life(0), 0
    while life.phase not in ENDS:
        life, following = life.after(Occurrence.SUBMITTED)
        assert following == Step(Phase.RUNNING)
        runs += 1
        assert life.attempt == runs
        life, following = life.after(Occurrence.WORKER_LOST, retries=retries)
    assert life.phase is Phase.LOST
    assert following == Step(Phase.LOST, Kind.FAILED, free=True)
    assert runs == retries + 1 == life.losses
    assert [phase for _, phase in life.story] == [Phase.RUNNING, Phase.WAITING] * retries + [Phase.RUNNING, Phase.LOST]


def test_a_preempted_trial_keeps_its_retries():
    life, following = Life(0, Phase.RUNNING, losses=2).after(Occurrence.PREEMPTED, retries=2)
    assert following.submit
    assert (life.phase, life.attempt, life.losses) == (Phase.WAITING, 2, 2)


@pytest.mark.parametrize("phase", sorted(FAILED))
def test_retried_failures_have_all_retries_again(phase):
    life, following = Life(0, phase, attempt=3, losses=3).after(Occurrence.WANTED_AGAIN, retries=2)
    assert following == Step(Phase.WAITING, Kind.RETRIED, submit=True)
    assert (life.phase, life.attempt, life.losses) == (Phase.WAITING, 4, 0)


class AnyLife(RuleBasedStateMachine):
    """Any sequence of what can happen: the trial ends, once, after a bounded number of them."""

    def __init__(self):
        super().__init__()
        self.life, self.interruptions, self.submissions, self.records = Life(0), 0, 0, []

    @precondition(lambda self: self.life.phase not in ENDS)
    @rule(data=st.data())
    def happen(self, data):
        occurrence = data.draw(st.sampled_from([o for o in Occurrence if defined(self.life.phase, o)]))
        self.interruptions += occurrence in (Occurrence.STUDY_LOST, Occurrence.NEVER_BEGAN)
        self.submissions += occurrence is Occurrence.SUBMITTED
        self.life, following = self.life.after(occurrence, retries=2)
        self.records.append(following.record)

    @precondition(lambda self: self.life.phase in ENDS)
    @rule(occurrence=st.sampled_from([o for o in Occurrence if o is not Occurrence.WANTED_AGAIN]))
    def nothing_more(self, occurrence):
        with pytest.raises(InvalidTransition):
            self.life.after(occurrence, retries=2)

    @invariant()
    def ends_once(self):
        ends = [kind for kind in self.records if kind not in (None, Kind.RETRIED)]
        assert len(ends) == (self.life.phase in ENDS or self.life.phase is Phase.LEAVING)
        assert self.records.count(Kind.RETRIED) <= 2 + self.interruptions
        assert self.submissions <= 1 + 2 + self.interruptions  # retries, and what was not the trial's doing

    @invariant()
    def is_never_stuck(self):
        if self.life.phase not in ENDS:
            assert any(defined(self.life.phase, occurrence) for occurrence in Occurrence)


TestLife = AnyLife.TestCase
TestLife.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
