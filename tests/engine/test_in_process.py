"""A study in this process: the same journal as on Ray, and every outcome that needs no process of its own."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import raybo
from raybo.common.errors import RayError, TrialError
from raybo.engine.outlet import Unwritable
from raybo.experiments.in_process import tune_here
from raybo.journal import requests
from raybo.record.events import Kind
from raybo.record.states import State
from raybo.study.replay import replay, replay_verdicts

X = {"x": raybo.Float(0, 1)}


@raybo.objective(space=X, metric="loss", mode="min")
def bowl(config):
    return {"loss": (config["x"] - 0.3) ** 2, "seed": raybo.current_trial().seed}


@raybo.objective(space=X, metric="height", mode="max", steps=9)
def climb(config, *, until=9):
    saved = raybo.checkpoint()
    first = 0 if saved is None else int((saved / "step").read_text())
    for step in range(first + 1, until + 1):
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
        yield {"height": config["x"] * step}


def tune(objective, **arguments):
    return raybo.tune(objective, in_process=True, **{"trials": 8, "method": "random", "seed": 0, **arguments})


def test_in_process_study_is_replayed_and_continued(tmp_path):
    path = tmp_path / "bowl.db"
    assert tune(bowl, trials=5, method="auto", storage=path).count(State.FINISHED) == 5
    study = tune(bowl, trials=12, method=None, seed=None, storage=path)
    assert study.ended == "all 12 trials have been run"
    assert not any(each.differs for each in replay(study))
    assert len({trial.details["metrics"]["seed"] for trial in study.trials}) == 12


@pytest.mark.ray
def test_ray_makes_and_continues_the_same_study(tmp_path, ray_session):
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    tune(bowl, trials=8, method="ei", storage=here)
    raybo.tune(bowl, trials=4, method="ei", seed=0, workers=1, storage=there)
    tune(bowl, trials=8, method="ei", storage=there)
    assert [trial.config for trial in raybo.load(there).trials] == [trial.config for trial in raybo.load(here).trials]
    assert raybo.tune(bowl, trials=9, workers=1, storage=here).count(State.FINISHED) == 9


def test_ray_is_not_imported():
    code = (
        "import raybo, sys\n"
        "job = raybo.objective(space={'x': raybo.Float(0, 1)}, metric='x', mode='max')(lambda config: config['x'])\n"
        "raybo.tune(job, trials=2, method='random', in_process=True, watch=print)\n"
        "assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, capture_output=True)


@pytest.mark.parametrize("scheduler", ["asha", "hyperband", "median"])
def test_schedulers_end_and_resume_trials(tmp_path, scheduler):
    study = tune(climb, trials=20, scheduler=scheduler, storage=tmp_path / "climb.db")
    assert study.count(State.PRUNED) > 2
    assert study.count(State.PENDING, State.PAUSED) == 0
    assert study.count(State.FINISHED) > 0
    assert all(each.verdict == each.recorded for each in replay_verdicts(study))


def test_every_failure_is_recorded():
    @raybo.objective(
        space={"x": raybo.Categorical(["fine", "raises", "exits", "nan", "gives up"])}, metric="y", mode="max"
    )
    def job(config):
        match config["x"]:
            case "raises":
                raise KeyError("q")
            case "exits":
                sys.exit(3)
            case "gives up":
                raise raybo.TrialPruned("hopeless")
            case "nan":
                return float("nan")
        return 1.0

    study = tune(job, trials=5, enqueue=[{"x": x} for x in ("raises", "exits", "nan", "gives up", "fine")])
    states = [trial.state for trial in study.trials]
    assert states == [State.FAILED, State.FAILED, State.FAILED, State.PRUNED, State.FINISHED]
    assert study.trials[0].reason.startswith("KeyError: 'q' (test_in_process.py:")
    assert study.trials[1].reason == "SystemExit: 3"
    assert (
        "match config" in study.trials[0].details["traceback"]
        or "raise KeyError" in study.trials[0].details["traceback"]
    )


def test_a_trial_is_ended_by_its_limit():
    @raybo.objective(space={"x": raybo.Categorical(["loops", "reports"])}, metric="y", mode="max", steps=1000)
    def job(config):
        while config["x"] == "loops":
            time.sleep(0.01)
        for step in range(1, 1000):
            time.sleep(0.02)
            raybo.report(1.0 * step)

    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0] > 0
    study = tune(job, trials=2, trial_seconds=0.2, enqueue=[{"x": "loops"}, {"x": "reports"}], keep_going=True)
    assert {trial.reason for trial in study.trials} == {"it ran longer than its limit of 0.2 seconds"}
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0] > 0) == before


def test_the_study_ends_when_its_time_is_over(tmp_path):
    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        while True:
            time.sleep(0.01)

    study = tune(job, max_minutes=2.0 / 60, storage=tmp_path / "job.db")
    assert study.ended == "the budget of 2s is used"
    assert [trial.state for trial in study.trials] == [State.STOPPED]


def test_ctrl_c_stops_and_the_next_run_continues(tmp_path):
    path = tmp_path / "job.db"

    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        if raybo.current_trial().number == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        tune(job, trials=4, storage=path)
    study = raybo.load(path)
    assert [trial.state for trial in study.trials] == [State.FINISHED, State.FINISHED, State.STOPPED]
    assert study.ended == "stopped by the user"
    assert tune(job, trials=4, storage=path).count(State.FINISHED) == 4


def test_ctrl_c_waits_until_an_event_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "job.db"
    from raybo.engine.study.event_log import EventLog

    add = EventLog.add

    def interrupted(self, event):
        if event.kind.value == "told":
            os.kill(os.getpid(), signal.SIGINT)
        return add(self, event)

    monkeypatch.setattr(EventLog, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(bowl, storage=path)
    assert [trial.state for trial in raybo.load(path).trials] == [State.FINISHED]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_trial_that_kills_its_process_is_lost(tmp_path):
    path = tmp_path / "job.db"

    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        if raybo.current_trial().number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return 1.0

    for _ in range(2):
        child = os.fork()
        if not child:
            tune(job, trials=3, storage=path, retries=1)
        os.waitpid(child, 0)
    study = tune(job, trials=3, storage=path, retries=1)
    assert [trial.state for trial in study.trials] == [State.FINISHED, State.LOST, State.FINISHED]
    assert study.trials[1].reason == "the process that ran it was interrupted"


def test_a_checkpoint_is_continued_from(tmp_path):
    path = tmp_path / "climb.db"

    @raybo.objective(space=X, metric="height", mode="max", steps=4)
    def job(config):
        saved = raybo.checkpoint()
        first = 0 if saved is None else int((saved / "step").read_text())
        for step in range(first + 1, 5):
            with raybo.saving() as directory:
                (directory / "step").write_text(str(step))
            raybo.report({"height": step, "attempt": raybo.current_trial().attempt})
            if step == 2 and not first:
                raise RuntimeError("power cut")

    tune(job, trials=1, storage=path)
    trial = tune(job, trials=1, storage=path, retry_failed=True).trials[0]
    assert (trial.state, trial.attempt, trial.value) == (State.FINISHED, 2, 4.0)
    assert [step for step, _ in trial.reports] == [1, 2, 3, 4]


def test_a_full_disk_is_no_fault_of_the_job(tmp_path):
    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        if raybo.current_trial().attempt == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return 1.0

    study = tune(job, trials=2, storage=tmp_path / "job.db")
    assert [(trial.state, trial.attempt) for trial in study.trials] == [(State.FINISHED, 2)] * 2


def test_hopeless_studies_are_given_up(tmp_path):
    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        raise ValueError("no data")

    with pytest.raises(TrialError, match="the first 5 trials all failed with the same error: ValueError: no data"):
        tune(job, trials=20, storage=tmp_path / "job.db")


def test_the_best_are_confirmed(tmp_path):
    study = tune(bowl, trials=6, confirm="2x3", storage=tmp_path / "bowl.db")
    assert [len(each.values) for each in study.confirmed] == [3, 3]


def test_requests_of_other_processes_are_performed(tmp_path):
    path = tmp_path / "job.db"

    @raybo.objective(space={**X, "z": raybo.Float(0, 1)}, metric="y", mode="max", steps=100)
    def job(config):
        if raybo.current_trial().number == 0:
            requests.ask(path, [0.125, 0.25])
            requests.ask(path, [0.375, None])
            requests.ask(path, [7.0, None])  # by other means than raybo's
        if raybo.current_trial().number == 3:
            requests.ask_to_stop(path)
        return 1.0

    study = tune(job, storage=path)
    assert study.trials[1].config == {"x": 0.125, "z": 0.25}
    assert study.trials[2].config["x"] == 0.375
    assert study.trials[2].tags == {"origin": "enqueued", "given": ["x"]}
    assert (len(study.trials), study.ended) == (4, "stopped by the user")
    assert [(each.trial, each.differs) for each in replay(study)] == [(0, ()), (2, ()), (3, ())]


@pytest.mark.parametrize("seconds", [-86_400, 86_400])
def test_requests_are_heard_whatever_the_clock_says(tmp_path, monkeypatch, seconds):
    path, now = tmp_path / "job.db", time.time()

    def ask_to_stop():
        name = requests.ask(path)
        os.utime(requests.directory(path) / f"{name}.json", (now + seconds, now + seconds))

    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        if raybo.current_trial().number == 4:
            ask_to_stop()
        return 1.0

    assert requests.listen(path)
    ask_to_stop()  # for an earlier run: none is going on
    assert tune(job, trials=2, storage=path).ended == "all 2 trials have been run"
    study = tune(job, trials=8, storage=path)
    assert (len(study.trials), study.ended) == (5, "stopped by the user")

    requests.listen(path)
    rows = [[0.25], [0.5], [0.75]]
    for number, row in enumerate(rows):
        monkeypatch.setattr(requests.time, "time_ns", lambda at=int(now + seconds * number): at * 10**9)
        requests.ask(path, row)
    assert [request.values for request in requests.waiting(path)] == rows


def test_lost_trial_is_stopped_with_its_study(tmp_path):
    """Its disk was full, and the study ended before it could run again."""
    path = tmp_path / "job.db"

    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        requests.ask_to_stop(path)
        raise OSError(errno.ENOSPC, "No space left on device")

    study = tune(job, storage=path, enqueue=[{"x": 0.25}, {"x": 0.5}])
    assert study.ended == "stopped by the user"
    assert [(trial.state, trial.attempt) for trial in study.trials] == [(State.STOPPED, 2), (State.PENDING, 1)]
    assert [event.data["losses"] for event in study.events if event.kind is Kind.RETRIED] == [1]


def test_progress_is_shown_from_another_thread(tmp_path):
    seen = []
    tune(bowl, watch=lambda status: seen.append((status.finished, threading.current_thread().name)))
    assert seen[-1][0] == 8

    def fail(status):
        raise ValueError("no screen")

    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        time.sleep(0.3)
        return 1.0

    with pytest.raises(ValueError, match="no screen"):
        tune(job, storage=tmp_path / "job.db", watch=fail)
    assert raybo.load(tmp_path / "job.db").ended == "its progress cannot be shown: ValueError: no screen"


def test_all_that_is_used_of_a_budget_is_shown():
    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        return {"y": 1.0, "tokens": 100}

    seen = []
    tune(job, trials=None, budget=50, cost="tokens", watch=seen.append)
    assert seen[-1].budget[0] == 100.0


@contextlib.contextmanager
def unread_output():
    """Make standard output a pipe that nobody reads within the block."""
    before = os.dup(1)
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
    os.close(writer)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


@raybo.objective(space=X, metric="y", mode="max")
def prints(config):
    if raybo.current_trial().number == 1:
        os.write(1, b"said by a trial\n")
    return 1.0


def test_a_trial_whose_output_nobody_reads_has_not_failed(tmp_path):
    path = tmp_path / "job.db"
    with pytest.raises(BrokenPipeError), unread_output():
        tune(prints, trials=4, storage=path)
    study = raybo.load(path)
    assert [trial.state for trial in study.trials] == [State.FINISHED, State.STOPPED]
    assert study.ended == study.trials[1].reason == "nobody reads the output any more"
    assert tune(prints, trials=4, storage=path).count(State.FINISHED) == 4


def test_a_compared_trial_whose_output_nobody_reads_runs_again(tmp_path):
    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        os.write(1, b"said by a trial\n")
        return 1.0

    path = tmp_path / "run.db"
    run = {"trials": 2, "method": "random", "seed": 0, "storage": path, "options": {}, "between": lambda: None}
    with pytest.raises(BrokenPipeError), unread_output():
        tune_here(job, **run)
    assert [trial.state for trial in raybo.load(path).trials] == [State.PENDING]
    assert tune_here(job, **run).count(State.FINISHED) == 2


def test_a_broken_pipe_of_the_jobs_own_is_its_failure():
    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    assert tune(job, trials=1).count(State.FAILED) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("through", [False, True])
def test_a_trial_whose_output_finds_no_room_has_not_failed(tmp_path, monkeypatch, through):
    file = io.FileIO("/dev/full", "w")
    full = io.TextIOWrapper(file if through else io.BufferedWriter(file), write_through=through)

    @raybo.objective(space=X, metric="y", mode="max")
    def job(config):
        sys.stdout.write("said by a trial\n")
        sys.stdout.flush()
        return 1.0

    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        with pytest.raises(Unwritable, match="No space left on device"):
            tune(job, storage=tmp_path / "job.db")
    study = raybo.load(tmp_path / "job.db")
    assert [trial.state for trial in study.trials] == [State.STOPPED]
    assert study.ended == "the output cannot be written (No space left on device)"
    with open(os.devnull, "w") as null:  # where what is left can be written
        os.dup2(null.fileno(), file.fileno())
    full.close()


@pytest.mark.parametrize("name", ["workers", "address", "detach", "fresh_workers"])
def test_what_needs_ray_is_refused(name, tmp_path):
    value = {"workers": 2, "address": "auto"}.get(name, True)
    with pytest.raises(RayError, match=f"in_process runs one trial .* leave out {name}"):
        tune(bowl, storage=tmp_path / "bowl.db", **{name: value})


def test_a_new_study_that_maximises_a_loss_says_so(tmp_path, caplog):
    objective = raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss")(lambda config: config["x"])
    for _ in range(2):
        raybo.tune(objective, in_process=True, method="random", trials=1, storage=tmp_path / "a.db")
    assert caplog.messages == ['a.db: loss is being maximised (the default); use mode="min" to minimise it']
