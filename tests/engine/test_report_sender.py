"""Reports of a trial leave its worker in batches, with answers and checkpoints; without Ray."""

from __future__ import annotations

import contextlib
import errno
import inspect
import os
import stat
import subprocess
import sys
import threading
import time
from collections import UserDict
from functools import partial

import pytest

import raybo
from raybo.common.errors import RayError
from raybo.engine.arguments import _place
from raybo.engine.lifecycle import Occurrence
from raybo.engine.trial.artifacts import Mirror, trial_files
from raybo.engine.trial.checkpoints import Checkpoints
from raybo.engine.trial.report_sender import BATCH_SECONDS, Answer, AttemptInfo, ReportSender
from raybo.engine.trial.task import run_trial
from raybo.job.current_trial import CurrentTrial, running
from raybo.record.goals import Goals
from raybo.record.states import State


class StudySide:
    """Takes batches; gives prepared answers."""

    def __init__(self, *answers):
        self.batches, self.answers = [], list(answers)

    def __call__(self, batch):
        self.batches.append(batch)
        return self.answers.pop(0) if self.answers else Answer()

    @property
    def steps(self):
        return [data["step"] for batch in self.batches for data in batch]

    @property
    def values(self):
        return [data["value"] for batch in self.batches for data in batch]


def run(function, study, place=None, info=None, attempt=1, context=None, keep="last"):
    info = AttemptInfo() if info is None else info
    checkpoints = Checkpoints(place, attempt, info.checkpoint, keep)
    listen = partial(ReportSender, info, study, checkpoints)
    return run_trial(function, {"x": 1}, {}, "accuracy", 1, context, None, listen)


def counting(steps, seconds=0.0):
    def job(config):
        for step in range(1, steps + 1):
            time.sleep(seconds)
            yield {"accuracy": step / 100, "loss": 1.0}

    return job


def test_attempt_info_travels_as_plain_data():
    info = AttemptInfo(52, True, 3, "1-2", 2, {"rate": 0.1}, "loss")
    assert info.to_list() == [52, True, 3, "1-2", 2, {"rate": 0.1}, "loss"]
    assert AttemptInfo(*info.to_list()) == info
    assert AttemptInfo(*AttemptInfo().to_list()) == AttemptInfo()


def test_generator_reports_what_it_yields():
    study = StudySide()
    occurrence, data = run(counting(3), study)
    assert occurrence is Occurrence.RETURNED
    assert "value" not in data
    assert (study.steps, study.values) == ([1, 2, 3], [0.01, 0.02, 0.03])
    assert study.batches[0][0]["metrics"] == {"loss": 1.0}
    assert all(data["seconds"] >= 0 for batch in study.batches for data in batch)


def test_a_callback_says_the_same():
    def job(config):
        for step in (1, 5, 9):
            raybo.report({"accuracy": step / 10}, step=step)
        return {"size": 3}

    study = StudySide()
    occurrence, data = run(job, study)
    assert (occurrence, study.steps, data["metrics"]) == (Occurrence.RETURNED, [1, 5, 9], {"size": 3})
    assert "value" not in data


def test_returned_metric_overrides_the_reports():
    def job(config):
        raybo.report(0.3)
        return {"accuracy": 0.7}

    assert run(job, StudySide())[1]["value"] == 0.7


def test_job_without_report_or_result_fails():
    occurrence, data = run(lambda config: None, StudySide())
    assert (occurrence, data["reason"]) == (
        Occurrence.BAD_RESULT,
        "it returned None; return the number, or a dict with 'accuracy'",
    )
    occurrence, data = run(counting(0), StudySide())
    assert occurrence is Occurrence.BAD_RESULT


def test_short_steps_are_batched_in_order():
    """A thousand steps of half a millisecond: at most one batch in 50 ms, and one at the end."""
    study = StudySide()
    begun = time.monotonic()
    run(counting(1_000, 0.0005), study)
    took = time.monotonic() - begun
    assert study.steps == list(range(1, 1_001))
    assert len(study.batches) <= took / BATCH_SECONDS + 2


def test_trial_waits_only_if_a_verdict_is_possible():
    study = StudySide(*[Answer(waits_at=4)] * 6)  # also to a batch of earlier steps, if the thread sends one
    order = []

    def job(config):
        for step in range(1, 7):
            order.append((step, len(study.steps)))
            yield step / 10

    run(job, study, info=AttemptInfo(steps=6, has_rule=True, waits_at=4))
    sent = dict(order)
    assert sent[5] == 4  # step 4, with those before, was answered before step 5 began


def test_prune_closes_a_generator_and_raises_elsewhere():
    closed = []

    def generator(config):
        try:
            yield from counting(9)(config)
        finally:
            closed.append(True)

    def callback(config):
        for step in range(1, 10):
            try:
                raybo.report(step / 100)
            except Exception:  # noqa: BLE001  # a job that continues after errors
                closed.append(False)

    for job in (generator, callback):
        study = StudySide(Answer(waits_at=2), Answer("prune", "8th of 9"))
        occurrence, data = run(job, study, info=AttemptInfo(has_rule=True, waits_at=1))
        assert (occurrence, data["reason"], study.steps) == (Occurrence.LEFT, "8th of 9", [1, 2])
    assert closed == [True]


def test_late_prune_ends_the_next_step():
    """If no verdict was expected: the answer to a batch that nobody waited for."""
    study = StudySide(Answer("prune", "too slow"))
    occurrence, data = run(counting(100, 0.01), study)
    assert (occurrence, data["reason"]) == (Occurrence.LEFT, "too slow")
    assert len(study.steps) < 20


def test_swallowed_prune_is_raised_again():
    told = []

    def job(config):
        for step in range(1, 6):
            try:
                raybo.report(step / 10)
            except BaseException as end:  # noqa: BLE001
                told.append(str(end))
        return 0.9

    study = StudySide(Answer("prune", "why"))
    run(job, study, info=AttemptInfo(has_rule=True, waits_at=1))
    assert told == ["why"] * 5
    assert study.steps == [1]


def test_swallowed_report_fault_is_raised_again():
    told = []

    def job(config):
        for value in (0.1, float("nan"), 0.3, 0.4):
            try:
                raybo.report(value)
            except BaseException as end:  # noqa: BLE001
                told.append(str(end))
        return 0.9

    study = StudySide()
    run(job, study)
    assert told == ["at step 2, its accuracy is nan, not a finite number"] * 3
    assert study.steps == [1]


REFUSED = [
    ({"accuracy": float("nan")}, None, "at step 1, its accuracy is nan, not a finite number"),
    ({"accuracy": 10**400}, None, "at step 1, its accuracy is too large for a float"),
    ({"accuracy": 0.5}, 11, "it reported step 11, and the objective declares steps=10"),
    ({"accuracy": 0.5}, "one", "report: step must be a whole number from 1, got 'one'"),
    ("half", None, "report: metrics must be a number or a dict of them, got 'half'"),
    ({"loss": 0.5}, None, "at step 1, it returned no 'accuracy' but 'loss'"),
]


@pytest.mark.parametrize(("metrics", "step", "why"), REFUSED)
@pytest.mark.parametrize("kind", ["swallowed", "thread"])
def test_refused_report_fails_a_job_that_returns(metrics, step, why, kind, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda args: None)

    def swallowed(config):
        with contextlib.suppress(BaseException):
            raybo.report(metrics, step)
        return 0.9

    def thread(config):
        reporter = threading.Thread(target=raybo.report, args=(metrics, step))
        reporter.start()
        reporter.join()
        return 0.9

    occurrence, data = run({"swallowed": swallowed, "thread": thread}[kind], StudySide(), info=AttemptInfo(steps=10))
    assert (occurrence, data["reason"]) == (Occurrence.BAD_RESULT, why)


def test_refused_report_fails_one_of_several_metrics():
    def job(config):
        with contextlib.suppress(BaseException):
            raybo.report({"loss": float("nan"), "seconds": 1.0})
        return {"loss": 0.5, "seconds": 1.0}

    sender = partial(ReportSender, AttemptInfo(), StudySide(), Checkpoints(None, 1, None))
    occurrence, data = run_trial(job, {}, {}, Goals.of({"loss": "min", "seconds": "min"}), 1, make_sender=sender)
    assert (occurrence, data["reason"]) == (
        Occurrence.BAD_RESULT,
        "at step 1, its loss is nan, not a finite number",
    )


def test_metrics_that_cannot_be_read_fail_the_trial():
    class Broken(UserDict):
        def __getitem__(self, name):
            raise RuntimeError("no items")

    def job(config):
        with contextlib.suppress(BaseException):
            raybo.report(Broken(accuracy=0.5))
        return 0.9

    occurrence, data = run(job, StudySide())
    assert occurrence is Occurrence.BAD_RESULT
    assert data["reason"] == "a report cannot be read: RuntimeError: no items"


def test_threads_report_each_step_once():
    """Eight threads, 50 steps each, without a step of their own."""

    def job(config):
        threads = [threading.Thread(target=lambda: [raybo.report(0.5) for _ in range(50)]) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    study, interval = StudySide(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        occurrence, _ = run(job, study)
    finally:
        sys.setswitchinterval(interval)
    assert (occurrence, study.steps) == (Occurrence.RETURNED, list(range(1, 401)))


def test_thread_of_an_earlier_trial_reports_nothing():
    go, told = threading.Event(), []

    def leftover():
        go.wait(20)
        for call in (partial(raybo.report, 0.1), raybo.saving().__enter__, partial(raybo.report_context, load=1.0)):
            try:
                call()
            except raybo.RayboError as error:
                told.append(str(error).split(",")[0])

    threads = []

    def first(config):
        threads.append(threading.Thread(target=leftover, daemon=True))
        threads[0].start()
        return 0.5

    def second(config):
        go.set()
        threads[0].join(20)
        raybo.report(0.9)

    study = StudySide()
    run(first, StudySide())
    assert run(second, study)[0] is Occurrence.RETURNED
    why = "this thread began before the trial that runs now; begin a thread in each trial"
    assert told == [f"{call}: {why}" for call in ("report", "saving", "report_context")]
    assert study.values == [0.9]


def test_thread_reports_the_context_of_its_trial():
    def job(config):
        thread = threading.Thread(target=lambda: raybo.report_context(demand=0.25))
        thread.start()
        thread.join()
        return 0.5

    _, data = run(job, StudySide(), context=raybo.Space({"demand": raybo.Float(0, 1)}))
    assert data["c"] == [0.25]


def test_reports_are_not_sent_after_a_prune():
    taken, reported = threading.Event(), threading.Event()

    class Slow(StudySide):
        def __call__(self, batch):
            taken.set()
            assert reported.wait(20)
            return super().__call__(batch)

    def job(config):
        raybo.report(0.1)
        assert taken.wait(20)
        raybo.report(0.2)
        reported.set()
        for _ in range(2_000):
            time.sleep(0.001)
            raybo.report(0.3)

    study = Slow(Answer("prune", "too slow"))
    occurrence, _ = run(job, study)
    assert (occurrence, study.steps) == (Occurrence.LEFT, [1])


def test_short_steps_are_batched_after_a_long_one():
    def job(config):
        time.sleep(0.15)  # its verdict is waited for
        for step in range(200):
            yield step / 1_000

    study = StudySide()
    run(job, study, info=AttemptInfo(has_rule=True))
    assert study.batches[0][0]["step"] == 1
    assert len(study.batches) < 20


def test_step_argument_counts_beside_the_metrics():
    def job(config):
        raybo.report({"accuracy": 0.1, "step": 3})
        raybo.report({"accuracy": 0.2, "step": 4}, step=7)

    study = StudySide()
    run(job, study)
    assert study.steps == [3, 7]


def test_a_generator_that_somebody_holds_is_closed_too():
    held = []

    def job(config):
        held.append(counting(9)(config))
        return held[0]

    study = StudySide(Answer("prune", "8th of 9"))
    assert run(job, study, info=AttemptInfo(has_rule=True, waits_at=1))[0] is Occurrence.LEFT
    assert inspect.getgeneratorstate(held[0]) == inspect.GEN_CLOSED


@pytest.mark.parametrize(
    ("metrics", "why"),
    [
        ([{"accuracy": float("nan")}], "at step 1, its accuracy is nan, not a finite number"),
        ([0.1, {"loss": 1.0}], "at step 2, it returned no 'accuracy' but 'loss'"),
        (
            [{"accuracy": 0.1, "step": 3}, {"accuracy": 0.1, "step": 3}],
            "steps must increase, but it reported step 3 after step 3",
        ),
        ([{"accuracy": 0.1, "step": 0}], "report: step must be a whole number from 1, got 0"),
        (
            [{"accuracy": 0.1, "step": 10}, {"accuracy": 0.1, "step": 11}],
            "it reported step 11, and the objective declares steps=10",
        ),
    ],
)
def test_bad_report_fails_the_trial_and_keeps_others(metrics, why):
    def job(config):
        yield from metrics

    study = StudySide()
    occurrence, data = run(job, study, info=AttemptInfo(steps=10))
    assert (occurrence, data["reason"]) == (Occurrence.BAD_RESULT, why)
    assert len(study.steps) == len(metrics) - 1


def test_what_raises_has_reported_until_then():
    def job(config):
        yield 0.1
        raise ValueError("no more")

    study = StudySide()
    occurrence, data = run(job, study)
    assert (occurrence, data["reason"], study.steps) == (Occurrence.RAISED, "ValueError: no more", [1])


def test_a_job_may_give_a_trial_up_itself():
    def job(config):
        yield 0.1
        raise raybo.TrialPruned("it diverges")

    occurrence, data = run(job, StudySide())
    assert (occurrence, data["reason"]) == (Occurrence.LEFT, "it diverges")


def test_contexts_among_the_metrics_are_the_trials():
    def job(config):
        yield {"accuracy": 0.5, "demand": 0.25}

    study = StudySide()
    _, data = run(job, study, context=raybo.Space({"demand": raybo.Float(0, 1)}))
    assert data["c"] == [0.25]
    assert "metrics" not in study.batches[0][0]


def test_threads_of_a_run_end_with_it():
    before = threading.active_count()
    run(counting(30, 0.003), StudySide())
    assert threading.active_count() == before


# ---- checkpoints


def saving(steps, first=1, die_at=None, seen=None):
    """A job that saves at each step, and resumes from its last checkpoint."""

    def job(config):
        begin = first
        if (kept := raybo.checkpoint()) is not None:
            begin = int((kept / "step").read_text()) + 1
        if seen is not None:
            seen.append(begin)
        for step in range(begin, steps + 1):
            with raybo.saving() as directory:
                (directory / "step").write_text(str(step))
                if step == die_at:
                    raise ValueError("died while it saved")
            yield step / 100

    return job


def names(place):
    return sorted(path.name for path in place.iterdir())


def test_checkpoint_goes_with_the_next_report(tmp_path):
    kept = []

    class Looking(StudySide):
        def __call__(self, batch):
            kept.append(names(tmp_path))
            return super().__call__(batch)

    study = Looking()
    run(saving(4), study, tmp_path)
    assert [data["checkpoint"] for batch in study.batches for data in batch] == ["1-1", "1-2", "1-3", "1-4"]
    assert kept == [["1-1"], ["1-1", "1-2"], ["1-1", "1-2", "1-3"], ["1-2", "1-3", "1-4"]]  # before each is committed
    assert names(tmp_path) == ["1-4"]


@pytest.mark.parametrize(("keep", "left"), [("all", ["1-1", "1-2", "1-3"]), ("last", ["1-3"]), ("none", [])])
def test_checkpoints_kept_of_an_ended_trial(tmp_path, keep, left):
    run(saving(3), StudySide(), tmp_path, keep=keep)
    assert names(tmp_path) == left


def test_failed_trial_keeps_its_checkpoints(tmp_path):
    def job(config):
        yield from saving(2)(config)
        yield float("nan")

    assert run(job, StudySide(), tmp_path, keep="none")[0] is Occurrence.BAD_RESULT
    assert names(tmp_path) == ["1-1", "1-2"]


def test_run_continues_from_its_committed_checkpoint(tmp_path):
    assert run(saving(6, die_at=4), StudySide(), tmp_path)[0] is Occurrence.RAISED
    assert names(tmp_path) == ["1-2", "1-3"]
    study, seen = StudySide(), []
    run(saving(6, seen=seen), study, tmp_path, AttemptInfo(checkpoint="1-2", step=2), attempt=2)
    assert seen == [3]
    assert study.steps == [3, 4, 5, 6]
    assert names(tmp_path) == ["2-4"]


def test_job_killed_after_its_last_report_finishes(tmp_path):
    run(saving(3), StudySide(), tmp_path)
    study = StudySide()
    occurrence, data = run(saving(3), study, tmp_path, AttemptInfo(checkpoint="1-3", step=3), attempt=2)
    assert (occurrence, study.batches) == (Occurrence.RETURNED, [])
    assert "value" not in data
    occurrence, _ = run(lambda config: None, study, tmp_path, AttemptInfo(checkpoint="1-3", step=3), attempt=3)
    assert occurrence is Occurrence.BAD_RESULT  # it began anew, without a word, and without its checkpoint


def test_report_of_several_metrics_is_sent_alike(tmp_path):
    def job(config):
        if raybo.checkpoint() is None:
            with raybo.saving():
                pass
            raybo.report({"loss": 0.5, "seconds": 3.0})

    goals = Goals.of({"loss": "min", "seconds": "min"})
    for said, occurrence in (({"seconds": 3.0}, Occurrence.RETURNED), ({}, Occurrence.BAD_RESULT)):
        sender = partial(ReportSender, AttemptInfo(), StudySide(), Checkpoints(tmp_path, 1, None, "last"))
        assert run_trial(job, {}, {}, goals, 1, make_sender=sender)[0] is Occurrence.RETURNED
        info = AttemptInfo(checkpoint="1-1", step=1, metrics=said)
        again = partial(ReportSender, info, StudySide(), Checkpoints(tmp_path, 2, "1-1", "last"))
        found, data = run_trial(job, {}, {}, goals, 1, make_sender=again)
        assert found is occurrence
        assert "value" not in data
        assert data.get("metrics", {}) == said


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_checkpoint_with_a_pipe_is_refused(tmp_path, kind):
    def job(config):
        with raybo.saving() as directory:
            (directory / "inner").mkdir()
            if kind == "pipe":
                os.mkfifo(directory / "inner" / "pipe")
            else:
                os.mknod(directory / "inner" / "pipe", stat.S_IFSOCK | 0o600)
        return 0.5

    done = []
    thread = threading.Thread(target=lambda: done.append(run(job, StudySide(), tmp_path)), daemon=True)
    thread.start()
    thread.join(20)
    assert done, "it hangs"
    occurrence, data = done[0]
    assert occurrence is Occurrence.RAISED
    assert "saving: pipe is a pipe, a socket or a device, which no checkpoint can hold" in data["reason"]
    assert names(tmp_path) == []


@pytest.mark.parametrize("spelling", ["yield", "report"])
def test_report_within_saving_is_refused(tmp_path, spelling):
    def yielding(config):
        with raybo.saving():
            yield 0.5

    def calling(config):
        with raybo.saving():
            raybo.report(0.5)

    study = StudySide()
    _, data = run(yielding if spelling == "yield" else calling, study, tmp_path)
    assert "after the block" in data["reason"]
    assert study.batches == []
    assert names(tmp_path) == []


def test_a_checkpoint_that_is_not_there_is_none(tmp_path):
    study, seen = StudySide(), []
    run(saving(2, seen=seen), study, tmp_path, AttemptInfo(checkpoint="1-7", step=7), attempt=2)
    assert (seen, study.steps) == ([1], [1, 2])


def test_job_that_ignores_its_checkpoint_starts_over(tmp_path):
    run(saving(2), StudySide(), tmp_path)
    study = StudySide()
    run(counting(2), study, tmp_path, AttemptInfo(checkpoint="1-2", step=2), attempt=2)
    assert study.steps == [1, 2]


def test_saving_twice_keeps_the_later_checkpoint(tmp_path):
    def job(config):
        for text in ("first", "second"):
            with raybo.saving() as directory:
                (directory / "which").write_text(text)
        seen.extend(names(tmp_path))
        with contextlib.suppress(ValueError), raybo.saving() as directory:
            (directory / "which").write_text("third")
            raise ValueError("half of it")
        yield 0.1

    study, seen = StudySide(), []
    run(job, study, tmp_path)
    (data,) = study.batches[0]
    assert seen == [data["checkpoint"]]
    assert (tmp_path / data["checkpoint"] / "which").read_text() == "second"
    assert names(tmp_path) == [data["checkpoint"]]


def test_next_attempt_removes_leftovers_of_a_killed_one(tmp_path):
    for name in ("1-3", "1-4", "1-5.partial", "notes"):
        (tmp_path / name).mkdir()
    Checkpoints(tmp_path, 2, "1-3").begin()
    assert names(tmp_path) == ["1-3", "notes"]


@pytest.mark.parametrize("keep", ["all", "last"])
def test_checkpoint_names_are_never_used_twice(tmp_path, keep):
    run(saving(2), StudySide(), tmp_path / "here", keep="all")
    again = StudySide()
    run(saving(3), again, tmp_path / "here", AttemptInfo(checkpoint="1-2", step=2), keep=keep)
    assert [data["checkpoint"] for batch in again.batches for data in batch] == ["1-3"]
    mirror = Mirror(f"file://{tmp_path}/there")
    for own in ("a", "b"):  # each from a directory of its own, as on another worker
        checkpoints = Checkpoints(tmp_path / own, 1, None, "all", mirror)
        checkpoints.begin()
        with checkpoints.saving() as directory:
            (directory / "of").write_text(own)
    assert sorted(mirror.names("checkpoints")) == ["1-1", "1-2"]


def test_paused_trial_always_keeps_its_checkpoint(tmp_path):
    study = StudySide(Answer("pause", "3rd of 3"))
    run(saving(3), study, tmp_path, AttemptInfo(has_rule=True, waits_at=1), keep="none")
    assert names(tmp_path) == ["1-1"]


def test_checkpoint_is_flushed_before_it_is_named(tmp_path, monkeypatch):
    done = []
    sync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda fd: done.append("sync") or sync(fd))
    monkeypatch.setattr(os, "rename", lambda a, b: done.append("rename") or rename(a, b))
    run(saving(1), StudySide(), tmp_path)
    assert done == ["sync", "sync", "rename", "sync"]  # the file, its directory; the name; where the name is


def test_checkpoints_survive_without_directory_sync(tmp_path, monkeypatch):
    sync = os.fsync
    error = errno.EINVAL

    def files_only(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) or error == errno.EIO:
            raise OSError(error, os.strerror(error))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    happened, data = run(saving(1), StudySide(), tmp_path)
    assert (happened, names(tmp_path)) == (Occurrence.RETURNED, ["1-1"])
    error = errno.EIO
    happened, data = run(saving(1), StudySide(), tmp_path)
    assert (happened, data["reason"]) == (Occurrence.RAISED, "OSError: [Errno 5] Input/output error")


# ---- kept elsewhere


class Unreliable(Mirror):
    """A file system whose network fails in the middle of the first copy."""

    has_failed = False

    def _fail(self, directory):
        if not self.has_failed:
            self.has_failed = True
            directory.mkdir(parents=True, exist_ok=True)
            raise OSError("the network is down")

    def upload(self, directory, name):
        self._fail(directory)
        super().upload(directory, name)

    def fetch(self, name, directory):
        self._fail(directory)
        return super().fetch(name, directory)


def test_next_checkpoint_is_saved_after_a_failed_copy(tmp_path):
    checkpoints = Checkpoints(tmp_path / "here", 1, None, "last", Unreliable(f"file://{tmp_path}/there"))
    for number in range(2):
        with contextlib.suppress(OSError), checkpoints.saving() as directory:
            (directory / "number").write_text(str(number))
    saved = checkpoints.take()
    assert (tmp_path / "here" / saved / "number").read_text() == "1"
    checkpoints.committed(saved)
    assert names(tmp_path / "here") == [saved]


def test_partly_fetched_checkpoint_is_fetched_again(tmp_path):
    uri = f"file://{tmp_path}/there"
    Mirror(uri).upload(make(tmp_path / "1-1", {"number": "1"}), "checkpoints/1-1")
    checkpoints = Checkpoints(tmp_path / "here", 2, "1-1", "last", Unreliable(uri))
    with pytest.raises(OSError, match="network"):
        checkpoints.last()
    assert (checkpoints.last() / "number").read_text() == "1"


KILLED = """
import os, sys, tempfile
from pathlib import Path
from raybo.engine import temporary_directories
from raybo.engine.trial import artifacts
tempfile.tempdir = temporary_directories.TEMPORARY = artifacts.TEMPORARY = sys.argv[1]
with artifacts.trial_files(Path("s.db"), 3, 1, sys.argv[2], None, "last") as (directory, _):
    directory.mkdir()
    (directory / "large").write_text("x")
    if sys.argv[3] == "killed":
        os._exit(1)
"""


def test_later_attempt_removes_a_killed_ones_directory(tmp_path):
    (tmp_path / "tmp").mkdir()
    for how, code in (("killed", 1), ("lives", 0)):
        command = [sys.executable, "-c", KILLED, tmp_path / "tmp", f"file://{tmp_path}/there", how]
        assert subprocess.run(command, check=False).returncode == code
        assert len(list((tmp_path / "tmp").iterdir())) == code
    assert (tmp_path / "there" / "s.trials" / "3" / "files" / "large").exists()


def make(directory, files):
    directory.mkdir()
    for name, text in files.items():
        (directory / name).write_text(text)
    return directory


def attempt_under(uri, journal, job, study, attempt=1, last=None, step=0, keep="last"):
    """One attempt whose directory is kept under a URI; returns what came of it."""
    with trial_files(journal, 3, attempt, uri, last, keep) as (directory, checkpoints):
        info = AttemptInfo(checkpoint=last, step=step)
        listen = partial(ReportSender, info, study, checkpoints)
        trial = CurrentTrial(3, attempt, 0, {"x": 1}, directory)
        with running(trial):
            return run_trial(job, {"x": 1}, {}, "accuracy", 1, None, None, listen)


def test_trial_under_a_uri_continues_on_another_machine(tmp_path):
    """pyarrow's file system of a URI, here file://; what a worker has of its own is gone between the attempts."""
    pytest.importorskip("pyarrow")
    uri, kept = f"file://{tmp_path}/shared", tmp_path / "shared" / "s.trials" / "3"
    seen, found = [], []

    def job(config):
        directory = raybo.current_trial().directory
        found.append(sorted(path.name for path in directory.iterdir()))
        (directory / f"log-{raybo.current_trial().attempt}").write_text("x")
        yield from saving(5, seen=seen, die_at=4 if raybo.current_trial().attempt == 1 else None)(config)

    first, second = StudySide(), StudySide()
    assert attempt_under(uri, tmp_path / "s.db", job, first)[0] is Occurrence.RAISED
    assert names(kept / "checkpoints") == ["1-2", "1-3"]
    occurrence, _ = attempt_under(uri, tmp_path / "s.db", job, second, 2, "1-3", 3)
    assert (occurrence, seen, second.steps) == (Occurrence.RETURNED, [1, 4], [4, 5])
    assert names(kept / "checkpoints") == ["2-2"]
    assert found == [[], ["log-1"]]
    assert names(kept / "files") == ["log-1", "log-2"]
    assert not (tmp_path / "s.trials").exists()


def test_files_that_cannot_be_kept_cost_no_result(tmp_path, caplog):
    pytest.importorskip("pyarrow")

    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
    def job(config):
        (raybo.current_trial().directory / "log").write_text("x")
        place = tmp_path / "there" / "a.trials" / str(raybo.current_trial().number)
        place.mkdir(parents=True)
        (place / "files").write_text("a file where a directory is to be")
        return config["x"]

    study = raybo.tune(
        job, trials=2, seed=0, in_process=True, artifacts=f"file://{tmp_path}/there", storage=tmp_path / "a.db"
    )
    assert [trial.state for trial in study.trials] == [State.FINISHED] * 2
    assert "trial 1: its files are lost, as file://" in caplog.text


def test_unknown_uri_is_refused_in_a_line():
    pytest.importorskip("pyarrow")
    with pytest.raises(RayError, match="--artifacts nowhere://x: it cannot be used: ArrowInvalid"):
        Mirror("nowhere://x")
    with pytest.raises(RayError, match=r"--artifacts s3:/.* it cannot be used: .*[Mm]issing bucket"):
        _place("s3://")  # before any trial is run, and not by each of them
