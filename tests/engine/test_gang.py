"""The processes of one attempt, together: futures stand for Ray's tasks, a list for its placement groups."""

from __future__ import annotations

import asyncio

import pytest
import ray

from raybo.engine.lifecycle import Occurrence
from raybo.engine.study import gang as module
from raybo.engine.study.dispatch import outcome_of_error
from raybo.engine.study.gang import Gang
from raybo.engine.trial.report_sender import Answer
from raybo.engine.trial.seat import Arrival

GOOD = Occurrence.RETURNED


class Cluster:
    """Placement groups and tasks; says in `done` what was done with them, in order."""

    def __init__(self, room=True):
        self.room, self.done, self.tasks, self.notes, self.begun = room, [], {}, [], []
        self.admission = asyncio.Lock()

    def gang(self, count=2, name="g"):
        self.tasks[name] = tasks = [asyncio.get_running_loop().create_future() for _ in range(count)]
        return Gang(
            count,
            reserve=lambda: self.done.append(f"reserve {name}") or name,
            admission=self.admission,
            submit=lambda group, index: self.done.append(f"submit {group}{index}") or tasks[index],
            answer=lambda step: Answer(),
            placed=lambda: None,
            begun=self.begun.append,
            note=self.notes.append,
            outcome_of_error=outcome_of_error,
        )

    def cancel(self, task, *, force):
        assert force
        self.done.append("cancel")
        task.set_exception(ray.exceptions.TaskCancelledError())

    def is_reserved(self, group, seconds):
        return self.room


@pytest.fixture
def run(monkeypatch):
    """Runs a coroutine function of a cluster."""

    def run(scenario):
        async def within():
            cluster = Cluster()
            monkeypatch.setattr(ray, "cancel", cluster.cancel)
            monkeypatch.setattr(module, "is_reserved", cluster.is_reserved)
            monkeypatch.setattr(module, "release", lambda group: cluster.done.append(f"release {group}"))
            return await asyncio.wait_for(scenario(cluster), 30), cluster

        return asyncio.run(within())

    return run


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


async def all_arrive(gang):
    return await asyncio.gather(*(gang.hear("arrive", i, Arrival("n", "10.0.0.1", port=5)) for i in range(gang.count)))


def test_all_begin_together_and_end_with_one_value(run):
    async def scenario(cluster):
        gang = cluster.gang()
        await until(lambda: len(gang.nodes) == 2)
        assert gang.nodes == [None, None]
        first = asyncio.ensure_future(gang.hear("arrive", 1, Arrival("n", "10.0.0.1")))
        await asyncio.sleep(0.01)
        assert not first.done()
        assert cluster.begun == []
        await gang.hear("arrive", 0, Arrival("n", "10.0.0.1", port=5))
        assert ((await first).rank, cluster.begun, gang.nodes) == (1, ["n"], ["n", "n"])
        for index, task in enumerate(cluster.tasks["g"]):
            task.set_result((GOOD, {"value": index + 0.5}, [f"output {index}"]))
        return await gang

    found, cluster = run(scenario)
    assert found == (GOOD, {"value": 0.5}, ["output 0"])
    assert cluster.done == ["reserve g", "submit g0", "submit g1", "release g"]


def test_one_failure_ends_all_then_frees_the_group(run, monkeypatch):
    monkeypatch.setattr(module, "OTHERS_SECONDS", 0.05)

    async def scenario(cluster):
        gang = cluster.gang(count=3)
        await until(lambda: len(gang.nodes) == 3)
        await all_arrive(gang)
        await gang.hear("end", 1, Occurrence.RAISED, {"reason": "ValueError: bug"})
        return await gang

    (occurrence, data), cluster = run(scenario)
    assert (occurrence, data["reason"]) == (Occurrence.RAISED, "rank 1 of 3: ValueError: bug")
    assert cluster.done[-4:] == ["cancel", "cancel", "cancel", "release g"]


def test_an_echo_waits_for_its_cause(run, monkeypatch):
    monkeypatch.setattr(module, "OTHERS_SECONDS", 0.0)

    async def scenario(cluster):
        gang = cluster.gang()
        await until(lambda: len(gang.nodes) == 2)
        await all_arrive(gang)
        await gang.hear("end", 0, Occurrence.RAISED, {"reason": "ConnectionResetError: [Errno 104]"})
        await asyncio.sleep(0.05)
        cluster.tasks["g"][1].set_exception(ray.exceptions.WorkerCrashedError())
        return await gang

    (occurrence, data), _ = run(scenario)
    assert occurrence is Occurrence.WORKER_LOST
    assert data["reason"] == "rank 1 of 2: its worker died (WorkerCrashedError)"


def test_only_the_first_rank_is_waited_for(run, monkeypatch):
    monkeypatch.setattr(module, "LEAVE_SECONDS", 0.05)

    async def scenario(cluster):
        gang = cluster.gang()
        await until(lambda: len(gang.nodes) == 2)
        await all_arrive(gang)
        cluster.tasks["g"][0].set_result((GOOD, {"value": 1.0}, []))
        return await gang

    (occurrence, data, _), cluster = run(scenario)
    assert (occurrence, data) == (GOOD, {"value": 1.0})
    assert cluster.notes == ["rank 1 had not ended 0.05 s after rank 0, and was killed"]


def test_a_rank_that_does_not_begin_is_named(run, monkeypatch):
    monkeypatch.setattr(module, "ARRIVAL_SECONDS", 0.05)

    async def scenario(cluster):
        gang = cluster.gang()
        await until(lambda: len(gang.nodes) == 2)
        seat = asyncio.ensure_future(gang.hear("arrive", 0, Arrival("n", "")))
        return await gang, await seat

    ((occurrence, data), seat), _ = run(scenario)
    assert seat is None
    assert (occurrence, data["reason"]) == (
        Occurrence.WORKER_LOST,
        "rank 1 of 2: it had not begun 0.05 s after the others",
    )


def test_cancelling_ends_a_gang_that_waits(run):
    async def scenario(cluster):
        cluster.room = False
        gang = cluster.gang()
        await until(lambda: cluster.done)
        gang.cancel()
        with pytest.raises(ray.exceptions.TaskCancelledError):
            await gang

    _, cluster = run(scenario)
    assert cluster.done == ["reserve g", "release g"]


def test_the_gang_that_waited_longest_is_first(run):
    async def scenario(cluster):
        cluster.room = False
        gangs = [cluster.gang(name=name) for name in "ab"]
        await until(lambda: cluster.done)
        await asyncio.sleep(0.02)
        assert cluster.done == ["reserve a"]  # the other one, however small, cannot overtake it
        assert not gangs[0].is_placed
        cluster.room = True
        await until(lambda: gangs[1].is_placed)
        for gang in gangs:
            gang.cancel()
            with pytest.raises(ray.exceptions.TaskCancelledError):
                await gang

    _, cluster = run(scenario)
    assert cluster.done[:2] == ["reserve a", "submit a0"]
