"""Commands that start processes of their own, inside a trial: their reports, their end and their failures."""

from __future__ import annotations

import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import raybo
from raybo.common.errors import ObjectiveError
from raybo.integrations import process_tree
from raybo.integrations.launch import LaunchError, launch
from raybo.integrations.process_tree import descendants
from raybo.job.reports import TrialPruned, reports_sent_to
from raybo.record.states import State
from tests.integrations.listener import Listener
from tests.processes import is_alive

SPACE = raybo.Space({"x": raybo.Float(0, 1)})
LAUNCHER = """
import os, subprocess, sys
count, script, *more = sys.argv[1:]
ranks = [
    subprocess.Popen([sys.executable, script, *more], env={**os.environ, "RANK": str(r), "WORLD_SIZE": count},
                     start_new_session=True)
    for r in range(int(count))
]
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""
SCRIPT = """
import os, sys, time
import raybo
me = raybo.current_trial()
first = 1
if (kept := raybo.checkpoint()) is not None:
    first = int((kept / "step").read_text()) + 1
for step in range(first, 5):
    open(f"{me.directory}/pid-{me.rank}", "w").write(str(os.getpid()))
    HAPPENS
    if me.rank == 0:
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
    raybo.report({"loss": me.config["x"] + me.rank, "ranks": me.world_size}, step=step)
"""


@pytest.fixture
def command(tmp_path):
    """Returns the command of a launcher of two ranks that do this at each step."""

    def command(happens="pass", program=None):
        (tmp_path / "launcher.py").write_text(LAUNCHER)
        (tmp_path / "script.py").write_text(SCRIPT.replace("HAPPENS", happens))
        started = program or [sys.executable, str(tmp_path / "launcher.py"), "2"]
        return [*started, str(tmp_path / "script.py")]

    return command


def tune(command, path, trials=1, **options):
    @raybo.objective(space=SPACE, metric="loss", mode="min", steps=4)
    def job(config):
        launch(command, grace_seconds=5)

    return raybo.tune(job, **{"method": "sobol", "seed": 0, "in_process": True, **options}, trials=trials, storage=path)


def test_ranks_report_through_rank_0(command, tmp_path):
    trial = tune(command(), tmp_path / "a.db").trials[0]
    assert trial.state is State.FINISHED, trial.reason
    assert trial.value == trial.config["x"]
    assert trial.details["metrics"]["ranks"] == 2
    assert trial.checkpoint is not None


def test_ranks_hear_that_their_node_leaves(command, tmp_path):
    from raybo.job.current_trial import running

    me = raybo.CurrentTrial(0, 1, 0, {"x": 0.5}, tmp_path, _asks_leaving=lambda: (tmp_path / "leaves").exists())
    happens = (
        "assert not me.is_leaving or step > 1, 'too early'\n"
        "    open(f'{me.directory}/leaves', 'w').close()\n"
        "    assert me.is_leaving, 'not heard'"
    )
    with running(me), reports_sent_to(Listener(tmp_path)):
        launch(command(happens, [sys.executable]))


def test_a_rank_that_is_killed_while_saving_has_saved_nothing(tmp_path):
    """Another that is started in its place continues from, and reports, what was whole before."""
    saves = "import os, raybo\nwith raybo.saving() as d: (d / 'half').touch(); os.kill(os.getpid(), 9)"
    listener = Listener(tmp_path)
    with reports_sent_to(listener):
        for script in (saves, "import raybo; raybo.report(1.0)"):
            programs = shlex.join([sys.executable, "-c", script])
            launch(["sh", "-c", f"{programs} || true"])
    assert listener.reports == {1: 1.0}
    assert listener.last is None


@pytest.mark.parametrize("program", ["trainer", pytest.param("xgboost", marks=pytest.mark.slow)])
def test_callbacks_save_on_rank_0(command, tmp_path, program):
    source = {
        "trainer": """
from raybo.integrations.trainer_reports import TrainerReports
reports = TrainerReports("loss", None)
for step in (1, 2):
    reports.report({"loss": 1 / step}, step, lambda directory: (directory / "step").write_text(str(step)), "here")
""",
        "xgboost": """
import numpy as np, xgboost
from raybo.integrations.xgboost import Report
data = xgboost.DMatrix(np.arange(4.0)[:, None], label=np.arange(4.0), nthread=1)
xgboost.train({"nthread": 1}, data, 2, evals=[(data, "all")], verbose_eval=False, callbacks=[Report("all", "rmse")])
""",
    }[program]
    started = command()
    (tmp_path / "script.py").write_text(source)
    listener = Listener(tmp_path / "kept")
    listener.directory.mkdir()
    with reports_sent_to(listener):
        launch(started)
    assert list(listener.reports) == [1, 2]
    assert len(list(listener.directory.iterdir())) == 2
    assert list(listener.last.iterdir())


@pytest.mark.slow
def test_a_verdict_ends_the_ranks(command, tmp_path):
    before = descendants()  # of other tests in this process
    study = tune(command(), tmp_path / "a.db", 6, scheduler="median", scheduler_options={"startup": 2})
    assert study.count(State.FINISHED) + study.count(State.PRUNED) == 6
    assert study.count(State.PRUNED) > 0
    assert descendants() <= before


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        ("if me.rank == 1 and step == 2: raise KeyError('b')", "LaunchError: rank 1: KeyError: 'b'"),
        ("if me.rank == 1 and step == 2: raise MemoryError('big')", "out of memory: MemoryError: rank 1: MemoryError"),
        ("if me.rank == 0: raise ConnectionResetError\n    raise ValueError('bug')", "LaunchError: rank 1: ValueError"),
        ("sys.stderr.write('no such device\\n'); os._exit(3)", "ended with 3: no such device"),
    ],
)
def test_the_cause_of_a_failure_is_told(command, tmp_path, happens, reason):
    trial = tune(command(happens), tmp_path / "a.db").trials[0]
    assert trial.state is State.FAILED
    assert reason in trial.reason
    assert trial.out_of_memory == ("MemoryError" in reason)


def test_what_cannot_be_launched_is_told():
    with pytest.raises(LaunchError, match=r"cannot be started: .*No such file"):
        launch(["/no/such/program"])
    for wrong in ("torchrun train.py", []):
        with pytest.raises(ObjectiveError, match="command must be a list of a program and its arguments"):
            launch(wrong)


def test_ranks_that_ignore_the_end_are_killed(tmp_path):
    class Ends(Listener):
        def report(self, metrics, step):
            raise TrialPruned("enough")

    script = tmp_path / "stubborn.py"
    script.write_text(
        "import os, signal, subprocess, sys, time, raybo\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{other.pid}}')\n"
        "try:\n    raybo.report(0.5)\nexcept BaseException:\n    time.sleep(600)\n"
    )
    begun = time.monotonic()
    with reports_sent_to(Ends(tmp_path)), pytest.raises(TrialPruned, match="enough"):
        launch([sys.executable, script], grace_seconds=0.5)
    assert time.monotonic() < begun + 60
    assert not any(is_alive(int(pid)) for pid in (tmp_path / "pids").read_text().split())


def test_what_ignores_sigterm_is_killed_without_a_proc(monkeypatch):
    monkeypatch.setattr(process_tree, "descendants", set)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    process_tree.end(process, 0.1)
    assert process.wait(timeout=30) == -signal.SIGKILL
    process.stdout.close()


def test_whatever_a_command_prints_is_passed_on(capfd):
    launch([sys.executable, "-c", r"import os; os.write(2, b'caf\xe9\n' + b'x' * 300_000); print('end')"])
    assert capfd.readouterr().err.startswith("caf\N{REPLACEMENT CHARACTER}\nxxx")


def test_a_long_path_to_temporary_files_does_no_harm(command, tmp_path, monkeypatch):
    (long := tmp_path / ("long" * 30)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert tune(command(), tmp_path / "a.db").trials[0].state is State.FINISHED


def test_threads_of_a_rank_report_one_after_the_other(tmp_path):
    class Counts(Listener):
        def report(self, metrics, step):
            time.sleep(0.001)
            seen.append(metrics["loss"])

    script, seen = tmp_path / "threads.py", []
    script.write_text(
        "import threading, raybo\n"
        "def some(first):\n    for i in range(50):\n        raybo.report({'loss': float(first + i)})\n"
        "threads = [threading.Thread(target=some, args=(100 * i,)) for i in range(4)]\n"
        "for each in threads:\n    each.start()\n"
        "for each in threads:\n    each.join()\n"
    )
    with reports_sent_to(Counts(tmp_path)):
        launch([sys.executable, script])
    assert sorted(seen) == [float(100 * i + j) for i in range(4) for j in range(50)]


def test_a_signal_handler_that_reports_during_a_report_gets_an_error(tmp_path):
    class Interrupts(Listener):
        def report(self, metrics, step):
            super().report(metrics, step)
            if len(self.reports) == 1:  # not again for the handler's own report, when the process is ending
                os.kill(int(metrics["pid"]), signal.SIGUSR1)
                time.sleep(0.5)

    script = tmp_path / "handler.py"
    script.write_text(
        "import os, signal, raybo\n"
        "def report(*_):\n    raybo.report({'loss': 0.5, 'pid': float(os.getpid())})\n"
        "signal.signal(signal.SIGUSR1, report)\nreport()\n"
    )
    with reports_sent_to(Interrupts(tmp_path)), pytest.raises(LaunchError, match="RuntimeError: reentrant call"):
        launch([sys.executable, script])


@pytest.mark.slow
@pytest.mark.ray
def test_no_rank_outlives_a_killed_worker(ray_session, command, tmp_path):
    happens = (
        "if step == 2 and me.attempt == 1 and me.rank == 1:\n"
        "        open(f'{me.directory}/first', 'w').write(f'{os.getpid()}')\n"
        "        time.sleep(600)"
    )
    words = command(happens)

    @raybo.objective(space=SPACE, metric="loss", mode="min", steps=4)
    def job(config):
        import threading

        me = raybo.current_trial()

        def strike():
            while not (me.directory / "first").exists():
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)

        if me.attempt == 1:
            threading.Thread(target=strike, daemon=True).start()
        launch(words)

    trial = raybo.tune(job, trials=1, method="sobol", seed=0, workers=1, storage=tmp_path / "a.db").trials[0]
    assert (trial.state, trial.attempt) == (State.FINISHED, 2)
    first = next((tmp_path / "a.db.trials").glob("*/first")) if (tmp_path / "a.db.trials").is_dir() else None
    first = first or next(tmp_path.glob("**/first"))
    until = time.monotonic() + 60
    while is_alive(int(first.read_text())) and time.monotonic() < until:
        time.sleep(0.1)
    assert not is_alive(int(first.read_text()))


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("program", ["torchrun", "accelerate"])
def test_launchers_of_pytorch_report(command, tmp_path, program):
    if importlib.util.find_spec("accelerate") is None and program == "accelerate":
        pytest.skip("accelerate is not installed")
    words = {
        "torchrun": [
            "torch.distributed.run",
            "--nproc-per-node=2",
            "--rdzv-backend=c10d",
            "--rdzv-endpoint=127.0.0.1:0",
        ],
        "accelerate": [
            *("accelerate.commands.launch", "--multi_gpu", "--num_processes=2", "--num_machines=1"),
            *("--mixed_precision=no", "--dynamo_backend=no", "--main_process_port=0"),
        ],
    }[program]
    words = [sys.executable, "-m", *words]
    happens = (
        "import torch, torch.distributed as dist\n"
        "    if not dist.is_initialized(): dist.init_process_group('gloo')\n"
        "    sum = torch.ones(1)\n    dist.all_reduce(sum)\n    assert sum == me.world_size == 2"
    )
    trial = tune(command(happens, words), tmp_path / "a.db").trials[0]
    assert trial.state is State.FINISHED, trial.reason
    failing = "if me.rank == 1 and step == 2: raise ValueError('bug')"
    trial = tune(command(failing, words), tmp_path / "b.db").trials[0]
    assert trial.reason == "LaunchError: rank 1: ValueError: bug"
