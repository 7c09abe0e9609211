"""Signals to the processes of a study are lost attempts at most, and are distinguished from what a job does itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import raybo
from raybo.engine import lost_studies
from raybo.record.events import Kind
from raybo.record.states import State

SPACE = {"x": raybo.Float(0, 1)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


HOLDS = """
import os, signal, subprocess, sys, threading, time
from types import SimpleNamespace
from raybo.engine.ray import signals

signals.HELD_SECONDS = int(sys.argv[3])
if len(sys.argv) > 4:
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()  # takes the signal
services = SimpleNamespace(ConsolePopen=subprocess.Popen)
with signals.signals_held(SimpleNamespace(_private=SimpleNamespace(services=services))):
    child = services.ConsolePopen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: print("of Ray", flush=True))
    time.sleep(float(sys.argv[2]))
    child.terminate()
    print("whole", child.wait(), flush=True)
print("goes on", flush=True)
"""


def held(how, seconds, patience, *thread):
    """The exit status of a process that holds a signal, and what it says."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", HOLDS, how, str(seconds), str(patience), *thread]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return ran.returncode, ran.stdout.splitlines(), ran.stderr.strip().splitlines()[-1:]


@pytest.mark.parametrize("thread", [[], ["another thread"]])
def test_ctrl_c_waits_until_ray_is_up(thread):
    code, said, error = held("SIGINT", 0.2, 15, *thread)
    assert (said, error) == (["whole -15"], ["KeyboardInterrupt"])
    assert code in (1, 130, -signal.SIGINT)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP"])
def test_signal_ends_the_command_when_ray_is_up(how):
    assert held(how, 0.2, 15) == (-getattr(signal, how), ["whole -15"], [])


STARTS = """
import subprocess, sys
from types import SimpleNamespace
from raybo.engine.ray import signals

services = SimpleNamespace(ConsolePopen=subprocess.Popen)
with signals.signals_held(SimpleNamespace(_private=SimpleNamespace(services=services))):
    services.ConsolePopen([sys.argv[1], "^SigBlk", "/proc/self/status"]).wait()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it reads /proc")
@pytest.mark.parametrize(
    ("name", "waits"), [("gcs_server", [signal.SIGINT, signal.SIGTERM]), ("raylet", [signal.SIGINT])]
)
def test_only_the_gcs_is_deaf_to_sigterm(tmp_path, name, waits):
    (tmp_path / name).symlink_to(shutil.which("grep"))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", STARTS, str(tmp_path / name)]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout
    mask = int(said.split()[1], 16)
    assert [how for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if mask >> (how - 1) & 1] == waits


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_signal_is_not_held_for_ever(how):
    assert held(how, 30, 1) == (-getattr(signal, how), [], [])


ENDS = """
import os, signal, threading, time
from raybo.engine.ray import signals

with signals.signals_held():
    os.kill(os.getpid(), signal.SIGTERM)
    print(signals.held_signal().name, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: print("of Ray", flush=True))
    threading.Thread(target=signals.end_by, args=(signal.SIGTERM,)).start()
    time.sleep(30)
"""


def test_held_signal_ends_the_command_when_ray_dies():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run([sys.executable, "-c", ENDS], env=environment, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGTERM, "SIGTERM\n", "")


def reasons(study):
    """Why trials ran again, each reason once."""
    return {event.data["reason"] for event in study.events if event.kind is Kind.RETRIED}


def job_that_strikes(path, how, then=None):
    """A job that reports, and whose first attempt sends the study's process a signal; another later, if given."""

    @raybo.objective(space=SPACE, steps=6)
    def steps(config):
        for step in range(6):
            if (raybo.current_trial().number, raybo.current_trial().attempt, step) == (1, 1, 3):
                actor = json.loads(Path(f"{path}-lock").read_text())["process"]
                os.kill(actor, how)
                if then is not None:
                    time.sleep(2)
                    os.kill(actor, then)
            time.sleep(0.02)
            yield config["x"] + step

    return steps


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_signalled_worker_is_a_lost_attempt(ray_session, path, how):
    @raybo.objective(space=SPACE)
    def preempted(config):
        if raybo.current_trial().attempt == 1:
            os.kill(os.getpid(), how)
            time.sleep(60)
        return config["x"]

    study = raybo.tune(preempted, trials=2, method="random", storage=path, workers=1)
    assert [(trial.state, trial.attempt) for trial in study.trials] == 2 * [(State.FINISHED, 2)]
    assert reasons(study) == {"its worker died (WorkerCrashedError)"}


def test_exit_of_the_job_is_a_failure(ray_session, path):
    @raybo.objective(space=SPACE)
    def leaving(config):
        sys.exit(1)

    study = raybo.tune(leaving, trials=2, method="random", storage=path, workers=1, keep_going=True)
    assert [(str(trial.state), trial.attempt, trial.reason) for trial in study.trials] == 2 * [
        ("failed", 1, "SystemExit: 1")
    ]


@pytest.mark.slow
def test_later_trial_does_not_keep_a_handler(ray_session, path):
    @raybo.objective(space=SPACE)
    def deaf(config):
        if raybo.current_trial().number == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        elif raybo.current_trial().attempt == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return config["x"]

    study = raybo.tune(deaf, trials=2, method="random", storage=path, workers=1)
    assert [trial.attempt for trial in study.trials] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_signalled_study_continues_while_jobs_report(ray_session, path, how):
    study = raybo.tune(job_that_strikes(path, how), trials=4, method="random", storage=path, workers=2)
    assert study.count(State.FINISHED) == 4
    assert reasons(study) == {"the process that ran it was interrupted"}
    assert all(len(trial.reports) == 6 for trial in study.trials)


@pytest.mark.slow
def test_stopped_study_is_replaced_after_its_time(ray_session, path, monkeypatch, caplog):
    monkeypatch.setattr(lost_studies, "SILENT_SECONDS", 15.0)
    study = raybo.tune(job_that_strikes(path, signal.SIGSTOP), trials=4, method="random", storage=path, workers=2)
    assert study.count(State.FINISHED) == 4
    assert "has neither answered nor written for 15 s; a new one continues from the journal" in caplog.text


@pytest.mark.slow
def test_study_stopped_for_a_while_goes_on(ray_session, path):
    job = job_that_strikes(path, signal.SIGSTOP, then=signal.SIGCONT)
    study = raybo.tune(job, trials=4, method="random", storage=path, workers=2)
    assert [trial.attempt for trial in study.trials] == [1, 1, 1, 1]
    assert study.count(State.FINISHED) == 4
