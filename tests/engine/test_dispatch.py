"""Outcomes of a trial's task become occurrences; futures stand for Ray's tasks."""

from __future__ import annotations

import asyncio
import re
import time

import pytest
import ray

from raybo.engine.lifecycle import Life, Occurrence, Phase
from raybo.engine.ray.nodes import LOOK_SECONDS, NodeLosses
from raybo.engine.study.dispatch import DispatchedTrial

RETURNED = (Occurrence.RETURNED, {"value": 1.0})
ERRORS = ray.exceptions


class Tasks:
    """Submits futures, and cancels them as Ray does."""

    def __init__(self):
        self.given = []
        self.cancelled = []
        self.is_soft, self.interrupted = False, None  # what a task returns that is cancelled without force

    def remote(self, *arguments):
        self.given.append(arguments)
        return asyncio.get_running_loop().create_future()

    def cancel(self, task, *, force):
        assert force or self.is_soft
        self.cancelled.append(task)
        if not task.done():
            if force:
                task.set_exception(ERRORS.WorkerCrashedError())
            elif self.interrupted is not None:
                task.set_result(self.interrupted)


@pytest.fixture
def tasks(monkeypatch):
    tasks = Tasks()
    monkeypatch.setattr(ray, "cancel", tasks.cancel)
    return tasks


def outcome(tasks, happens, limit=None, on_cluster=False, grace=0.0):
    """Return the occurrence of a task to which this happens as soon as it is waited for."""

    async def run():
        dispatched = DispatchedTrial(Life(0), grace=grace)
        dispatched.submit(tasks, {"x": 0.5}, None)
        waiting = asyncio.ensure_future(dispatched.outcome(limit, on_cluster))
        await asyncio.sleep(0)
        happens(dispatched)
        return await asyncio.wait_for(waiting, 10)

    return asyncio.run(run())


def fails(error):
    return lambda dispatched: dispatched.task.set_exception(error)


@pytest.mark.parametrize("on_cluster", [False, True])
def test_what_the_task_returns_is_what_happened(tasks, on_cluster):
    found = outcome(tasks, lambda dispatched: dispatched.task.set_result(RETURNED), limit=60.0, on_cluster=on_cluster)
    assert found == RETURNED
    assert tasks.given == [({"x": 0.5}, None)]
    assert tasks.cancelled == []


@pytest.mark.parametrize("on_cluster", [False, True])
@pytest.mark.parametrize(
    ("error", "occurrence", "reason"),
    [
        (ERRORS.WorkerCrashedError(), Occurrence.WORKER_LOST, r"its worker died \(WorkerCrashedError\)"),
        (ERRORS.NodeDiedError("gone"), Occurrence.WORKER_LOST, "its node was lost"),
        (
            ERRORS.OutOfMemoryError("too much"),
            Occurrence.OUT_OF_MEMORY,
            "out of memory: Ray killed its worker: .*too much",
        ),
        (
            ERRORS.RayTaskError("trial", "Traceback\nImportError: no such module", None),
            Occurrence.RAISED,
            "ImportError",
        ),
        (
            ERRORS.RayTaskError(
                "trial",
                "Traceback\nRuntimeError: The remote function failed to import on the worker. This may be because\n"
                "ModuleNotFoundError: No module named 'raybo'",
                None,
            ),
            Occurrence.RAISED,
            "No module named 'raybo'",
        ),
        (
            ERRORS.RayTaskError(
                "trial",
                "Traceback\nFileNotFoundError: [Errno 2] No such file: '/tmp/r/session/logs/worker-1.out'",
                None,
            ),
            Occurrence.NEVER_BEGAN,
            "is being removed",
        ),
        (
            ERRORS.RayTaskError(
                "trial",
                "Traceback\nRuntimeError: The remote function failed to import on the worker. This may be because\n"
                "AssertionError: Expected str or bytes, got <class 'NoneType'>",
                None,
            ),
            Occurrence.WORKER_LOST,
            "could not be given its code .AssertionError",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_rays_errors_become_occurrences(tasks, error, occurrence, reason, on_cluster):
    found, data = outcome(tasks, fails(error), on_cluster=on_cluster)
    assert found is occurrence
    assert re.search(reason, data["reason"])


def test_the_limit_counts_from_the_beginning(tasks):
    assert outcome(tasks, lambda dispatched: dispatched.start("node"), limit=0.01) == (
        Occurrence.OVER_LIMIT,
        {"reason": "it ran longer than its limit of 0.01 seconds", "seconds": 0.01},
    )
    assert len(tasks.cancelled) == 1

    def later(dispatched):  # it has not begun when its limit has passed
        asyncio.get_running_loop().call_later(0.05, dispatched.task.set_result, RETURNED)

    assert outcome(tasks, later, limit=0.01) == RETURNED


def test_time_limit_ends_with_its_attempt(tasks, monkeypatch):
    """Neither the result nor the cancelling of a trial comes through from a node that was cut off."""

    async def run():
        dispatched = DispatchedTrial(Life(0))
        found = []
        for end in (dispatched.node_lost.set, lambda: dispatched.task.set_exception(ERRORS.WorkerCrashedError())):
            dispatched.submit(tasks, {"x": 0.5}, None)
            waiting = asyncio.ensure_future(dispatched.outcome(0.02 if not found else 60.0, True))
            dispatched.start("node")
            await asyncio.sleep(0.1)
            end()
            found.append((await asyncio.wait_for(waiting, 10))[0])
            dispatched.reset()
        return found

    monkeypatch.setattr(ray, "cancel", lambda task, *, force: None)
    assert asyncio.run(run()) == [Occurrence.WORKER_LOST, Occurrence.WORKER_LOST]


def test_a_trial_that_is_stopped_says_why(tasks):
    found = outcome(tasks, lambda dispatched: dispatched.stop("stopped by the user"))
    assert found == (Occurrence.STOPPED, {"reason": "stopped by the user"})
    DispatchedTrial(Life(0)).stop("stopped by the user")  # one that was not submitted
    assert len(tasks.cancelled) == 1


@pytest.mark.parametrize(("node", "occurrence"), [("node", Occurrence.WORKER_LOST), (None, Occurrence.NEVER_BEGAN)])
def test_the_loss_of_its_node_ends_the_wait(tasks, node, occurrence):
    def lost(dispatched):
        if node is not None:
            dispatched.start(node)
        dispatched.node_lost.set()

    found, data = outcome(tasks, lost, on_cluster=True)
    assert found is occurrence
    assert "lost" in data["reason"]
    assert len(tasks.cancelled) == 1


def test_result_counts_though_its_node_was_lost(tasks):
    def both(dispatched):
        dispatched.node_lost.set()
        dispatched.task.set_result(RETURNED)

    assert outcome(tasks, both, on_cluster=True) == RETURNED


def test_another_attempt_knows_nothing_of_the_one_before():
    dispatched = DispatchedTrial(Life(0))
    dispatched.start("node")
    dispatched.node_lost.set()
    dispatched.reset()
    assert (dispatched.node, dispatched.node_lost.is_set()) == (None, False)


@pytest.mark.parametrize(
    ("meanwhile", "is_lost"),
    [
        (lambda dispatched: None, True),  # Ray has sent it to the lost node, and waits for ever
        (lambda dispatched: dispatched.start("lost"), True),
        (lambda dispatched: dispatched.start("alive"), False),
        (lambda dispatched: dispatched.reset(), False),
    ],
)
def test_a_trial_that_begins_elsewhere_after_the_loss_of_a_node_goes_on(tasks, meanwhile, is_lost):
    async def run():
        dispatched, losses = DispatchedTrial(Life(0, Phase.RUNNING)), NodeLosses()
        dispatched.submit(tasks)
        dispatched.submitted -= 2 * LOOK_SECONDS  # it could have begun by now
        for alive in (True, False):
            nodes = [{"NodeID": "lost", "Alive": alive}, {"NodeID": "alive", "Alive": True}]
            losses.update(nodes, time.monotonic())
        assert dispatched.may_be_lost(losses)
        event = dispatched.node_lost
        meanwhile(dispatched)
        dispatched.give_up_if_lost(losses, event)
        return event.is_set()

    assert asyncio.run(run()) is is_lost


@pytest.mark.parametrize("interrupted", [None, Occurrence.RAISED, Occurrence.WORKER_LOST])
def test_a_trial_with_a_trainer_ends_in_order(tasks, interrupted):
    tasks.is_soft = True
    tasks.interrupted = None if interrupted is None else (interrupted, {"reason": "SystemExit: 0"})
    grace = 0.01 if interrupted is None else 60.0  # by force only if it does not end by itself
    found = outcome(tasks, lambda dispatched: dispatched.stop("enough"), grace=grace)
    assert found == (Occurrence.STOPPED, {"reason": "enough"})
    assert len(tasks.cancelled) == (2 if interrupted is None else 1)
    found = outcome(tasks, lambda dispatched: dispatched.task.set_result(RETURNED), grace=60.0)
    assert found == RETURNED
