"""Studies on a real Ray: what becomes of every kind of trial, of the study's own death, and of being stopped."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import raybo
from raybo.common.errors import JournalInUse, MethodError, ObjectiveError, RayError, SpaceError, TrialError
from raybo.engine import driver
from raybo.engine.study.timings import DEEPEST
from raybo.journal import Journal, read
from raybo.record.events import Kind, Told
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.study.replay import replay
from tests.conftest import CPUS

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]

SPACE = raybo.Space({"x": raybo.Float(0, 1), "n": raybo.Integer(1, 9)})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def log(tmp_path):
    """A file to which trials, which run in other processes, write a line each."""
    file = tmp_path / "log"
    file.touch()
    return file


OF_A_TRIAL = (  # but the configuration, whose objects are read back as text
    *("number", "state", "value", "context", "tags", "attempt", "reason", "seconds", "suggest_seconds"),
    *("suggest_processor_seconds", "details", "checkpoint", "values", "violations", "reports", "last_run"),
)


def tune(objective, path, **arguments):
    """A study, checked for what holds of every one that has ended."""
    study = raybo.tune(objective, **{"method": "random", "seed": 0, "workers": 2, **arguments}, storage=path)
    check_journal(path)
    loaded = raybo.load(path)
    for mine, theirs in zip(study.trials, loaded.trials, strict=True):
        for name in OF_A_TRIAL:
            assert getattr(mine, name) == getattr(theirs, name), name
        assert study.space.pack(mine.config) == loaded.space.pack(theirs.config)
    assert study.planned == arguments["trials"]
    assert study.count(State.PENDING) == 0
    assert not path.with_name(f"{path.name}-lock").exists()
    return study


def check_journal(path):
    """Events are numbered without a hole; every trial is asked for before it ends, and ends at most once."""
    _, events = read(path)
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert [event.at for event in events] == sorted(event.at for event in events)
    ended, asked = set(), 0
    for event in events:
        if event.kind is Kind.ASKED:
            assert event.trial == asked
            assert event.data["seen"] < event.number
            asked += 1
        elif event.kind not in (Kind.PLANNED, Kind.ENDED):
            assert event.trial < asked
            assert event.trial not in ended
            if event.is_end:
                ended.add(event.trial)
    return events


@pytest.fixture
def gate(tmp_path):
    """A file whose size is how many trials may end, of a job that says `wait_at(gate)`."""
    return tmp_path / "gate"


def wait_at(gate):
    while raybo.current_trial().number >= gate.stat().st_size:
        time.sleep(0.02)


def simple(**declared):
    @raybo.objective(space=SPACE, metric="score", **declared)
    def simple(config):
        return {"score": config["x"] * config["n"], "half": config["x"] / 2}

    return simple


# ---- the ordinary course


def test_every_trial_is_run_and_told(path):
    study = tune(simple(), path, trials=10, workers=4)
    assert [trial.number for trial in study.trials] == list(range(10))
    for trial in study.trials:
        assert trial.state is State.FINISHED
        assert trial.value == trial.config["x"] * trial.config["n"]
        assert trial.details["metrics"] == {"half": trial.config["x"] / 2}
        assert trial.seconds >= 0
        assert trial.attempt == 1
    assert study.best.value == max(trial.value for trial in study.trials)
    assert study.path == path


def test_trial_is_committed_before_it_runs(path):
    @raybo.objective(space=SPACE)
    def job(config):
        if config not in [trial.config for trial in raybo.load(path).trials]:
            raise ValueError("nobody would know of this run")
        return config["x"]

    assert tune(job, path, trials=8).count(State.FINISHED) == 8


@pytest.mark.slow
def test_study_without_storage_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = raybo.tune(simple(mode="min"), trials=4, method="sobol", workers=2)
    assert study.path is None
    assert study.best.value == min(trial.value for trial in study.trials)
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("method", ["random", "auto"])
def test_sequential_study_is_reproducible_by_seed(tmp_path, method):
    studies = [tune(simple(), tmp_path / f"{i}.db", trials=7, workers=1, seed=5, method=method) for i in range(2)]
    first, second = ([(trial.config, trial.value, trial.tags) for trial in study.trials] for study in studies)
    assert first == second


@pytest.mark.slow
def test_every_proposal_replays_from_its_history(path):
    """Also with several workers: the journal up to `seen` gives the proposal that follows."""
    tune(simple(), path, trials=16, workers=4, method="gp-ucb", initial=4)
    description, events = read(path)
    searcher = Searcher(SPACE, description.method, description.mode, description.seed, **description.options)
    replayed = 0
    for asked in (event for event in events if event.kind is Kind.ASKED):
        while searcher.history.last_event < asked.data["seen"]:
            searcher.apply(events[searcher.history.last_event])
        # what happened between seeing and asking was not known to the method, so it is put aside
        again = searcher.propose(searcher.history)
        assert (again.trial, again.data["x"], again.data["tags"]) == (asked.trial, asked.data["x"], asked.data["tags"])
        replayed += 1
    assert replayed == 16
    assert sum("theta" in event.data.get("tags", {}) for event in events) >= 8


@pytest.mark.slow
def test_workers_run_in_parallel_up_to_their_number(path):
    met = path.with_name("met")
    met.mkdir()

    @raybo.objective(space=SPACE)
    def sleeping(config):
        begin = time.time()
        met.joinpath(str(os.getpid())).touch()
        while len(list(met.iterdir())) < 3 and time.time() < begin + 60:  # a busy machine starts workers one by one
            time.sleep(0.01)
        time.sleep(0.3)
        return {"value": 1.0, "begin": begin, "end": time.time(), "pid": os.getpid()}

    study = tune(sleeping, path, trials=12, workers=3)
    spans = [trial.details["metrics"] for trial in study.trials]
    at_once = [sum(a["begin"] <= b["begin"] < a["end"] for a in spans) for b in spans]
    assert max(at_once) == 3
    assert len({span["pid"] for span in spans}) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "seconds", "waits"), [(CPUS, 0.03, True), (CPUS, 0.4, False), (2, 0.03, False), (1, 0.03, False)]
)
def test_short_trials_wait_in_rays_queue(path, workers, seconds, waits):
    """Nobody waits for Ray then; where it has more room than the study may use, it would run that trial at once."""

    @raybo.objective(space=SPACE)
    def sleeping(config):
        begin = time.time()
        time.sleep(seconds)
        return {"value": 1.0, "begin": begin, "end": time.time()}

    study = tune(sleeping, path, trials=6 * workers + 6, workers=workers)
    spans = [trial.details["metrics"] for trial in study.trials]
    assert max(sum(a["begin"] <= b["begin"] < a["end"] for a in spans) for b in spans) <= workers
    open_trials, most = 0, 0
    for event in study.events:
        open_trials += (event.kind is Kind.ASKED) - (event.kind is Kind.TOLD)
        most = max(most, open_trials)
    # one, or as many as the time calls for that commits take here
    assert (workers < most <= workers * (1 + DEEPEST)) if waits else most == workers


def test_status_shows_only_committed_events(path):
    @raybo.objective(space=SPACE)
    def quick(config):
        time.sleep(0.05)
        if config["n"] == 5:
            raise ValueError("five")
        return config["x"]

    told, notes = [], []

    def watch(status):
        states = [trial.state for trial in raybo.load(path).trials]
        assert states.count(State.FINISHED) >= status.finished
        assert states.count(State.FAILED) >= status.failed
        if status.best is not None:
            assert raybo.load(path).trials[status.best[0]].value == status.best[1]
        assert status.running <= 2
        told.append((status.finished + status.failed, status))
        notes.extend(status.notes)

    study = tune(quick, path, trials=40, watch=watch)
    counts = [count for count, _ in told]
    assert counts == sorted(counts)
    last = told[-1][1]
    assert (last.finished + last.failed, last.planned, last.running) == (40, 40, 0)
    assert last.best == (study.best.number, study.best.value)
    failed = [trial.number for trial in study.trials if trial.state is State.FAILED]
    assert failed
    assert sorted(notes) == sorted(f"trial {number} failed: ValueError: five" for number in failed)


@pytest.mark.slow
def test_the_study_answers_while_its_method_thinks(path, log):
    """A status is asked for every 0.2 s; were the event loop kept by a proposal, the last one before it would come."""

    class Slow(raybo.Space):
        def rows(self, X):  # every proposal is made a row of the journal, where the method runs
            begun = time.time()
            time.sleep(1.5)
            with log.open("a") as file:
                file.write(f"{begun} {time.time()}\n")
            return super().rows(X)

    @raybo.objective(space=Slow({"x": raybo.Float(0, 1)}))
    def job(config):
        return config["x"]

    told = []
    tune(job, path, trials=2, workers=1, watch=lambda status: told.append(time.time()))
    thinking = [tuple(map(float, line.split())) for line in log.read_text().splitlines()]
    assert len(thinking) >= 2
    assert min(sum(begun < at < ended for at in told) for begun, ended in thinking) > 2


# ---- each row of the table of outcomes


@pytest.mark.slow
def test_results_and_exceptions_are_recorded_once(path, log):
    kinds = [
        "float",
        "dict",
        "nan",
        "inf",
        "none",
        "missing",
        "text",
        "raises",
        "exits",
        "interrupts",
        "odd",
        "unplain",
    ]

    @raybo.objective(space={"kind": raybo.Categorical(kinds)}, metric="score")
    def job(config):
        with log.open("a") as file:
            file.write(config["kind"] + "\n")

        class OddError(Exception):
            def __init__(self, one, two):
                super().__init__(one)
                self.lock = threading.Lock()

        def raises(error):
            raise error

        return {
            "float": lambda: 0.5,
            "dict": lambda: {"score": np.float32(0.25), "array": np.zeros(3)},
            "nan": lambda: {"score": float("nan")},
            "inf": lambda: float("inf"),
            "none": lambda: None,
            "missing": lambda: {"accuracy": 1.0},
            "text": lambda: "0.5",
            "raises": lambda: raises(ValueError("bad rate")),
            "exits": lambda: raises(SystemExit(3)),
            "interrupts": lambda: raises(KeyboardInterrupt()),
            "odd": lambda: raises(OddError("odd", 2)),
            "unplain": lambda: {
                "score": 1,
                "big": 10**5_000,
                "delta": np.timedelta64(1),
                "long": np.longdouble(1),
                "lock": threading.Lock(),
            },
        }[config["kind"]]()

    study = tune(job, path, trials=60, workers=4)
    assert {trial.config["kind"] for trial in study.trials} == set(kinds)
    assert len(log.read_text().split()) == 60  # nothing here is run twice
    expected = {
        "float": 0.5,
        "dict": 0.25,
        "nan": "its score is nan, not a finite number",
        "inf": "its score is inf, not a finite number",
        "none": "it returned None; return the number, or a dict with 'score'",
        "missing": "it returned no 'score' but 'accuracy'",
        "text": "its score is not a number but '0.5'",
        "raises": "ValueError: bad rate",
        "exits": "SystemExit: 3",
        "interrupts": "KeyboardInterrupt",
        "odd": "OddError: odd",
        "unplain": 1.0,
    }
    for trial in study.trials:
        wanted = expected[trial.config["kind"]]
        if isinstance(wanted, float):
            assert (trial.state, trial.value, trial.reason) == (State.FINISHED, wanted, "")
        else:
            assert (trial.state, trial.value, trial.reason) == (State.FAILED, None, wanted)
        if trial.config["kind"] in ("raises", "exits", "interrupts", "odd"):
            assert "in job" in trial.details["traceback"]
        assert trial.attempt == 1
    assert study.best.value == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "die",
    [lambda: os._exit(0), lambda: os.kill(os.getpid(), 9), lambda: ctypes.string_at(0)],
    ids=["exit", "kill", "segv"],
)
def test_a_trial_whose_worker_is_lost_starts_again(path, log, die):
    @raybo.objective(space=SPACE)
    def dying(config):
        faulthandler.disable()  # a segmentation fault without its pages of text
        with log.open("a") as file:
            file.write(f"{config['x']}\n")
        if log.read_text().split().count(str(config["x"])) == 1:
            die()
        return config["x"]

    study = tune(dying, path, trials=2, retries=1)
    assert [(trial.state, trial.attempt, trial.reason) for trial in study.trials] == [(State.FINISHED, 2, "")] * 2
    assert len(log.read_text().split()) == 4
    retried = [event for event in read(path)[1] if event.kind is Kind.RETRIED]
    assert sorted(event.trial for event in retried) == [0, 1]
    assert all("its worker died" in event.data["reason"] for event in retried)


@pytest.mark.slow
@pytest.mark.parametrize("retries", [0, 2])
def test_trial_is_lost_after_its_last_attempt(path, log, retries):
    @raybo.objective(space=SPACE)
    def dying(config):
        with log.open("a") as file:
            file.write("run\n")
        os._exit(1)

    notes = []
    study = tune(dying, path, trials=1, retries=retries, watch=lambda status: notes.extend(status.notes))
    (trial,) = study.trials
    assert (trial.state, trial.attempt, trial.value) == (State.LOST, retries + 1, None)
    assert "its worker died" in trial.reason
    assert len(log.read_text().split()) == retries + 1
    losses = [event.data["losses"] for event in read(path)[1] if event.kind is Kind.RETRIED]
    assert losses == list(range(1, retries + 1))  # a restarted study counts from there
    assert [note.split(":")[0] for note in notes] == [
        *(f"trial 0 starts again (attempt {n})" for n in range(2, retries + 2)),
        "trial 0 lost",
    ]


@pytest.mark.slow
def test_trial_over_its_time_limit_fails(path, log):
    @raybo.objective(space={"hang": raybo.Categorical(["sleep", "stubborn", "no"])}, trial_seconds=2.0)
    def hanging(config):
        with log.open("a") as file:
            file.write("run\n")
        if config["hang"] == "sleep":
            time.sleep(600)  # one call into C
        while config["hang"] == "stubborn":
            with contextlib.suppress(BaseException):
                time.sleep(0.01)
        return 1.0

    study = tune(hanging, path, trials=8, workers=4, retries=3)
    assert {trial.config["hang"] for trial in study.trials} == {"sleep", "stubborn", "no"}
    for trial in study.trials:
        if trial.config["hang"] == "no":
            assert trial.state is State.FINISHED
        else:
            assert (trial.state, trial.attempt) == (State.FAILED, 1)
            assert trial.reason == "it ran longer than its limit of 2 seconds"
    assert len(log.read_text().split()) == 8  # not retried


@pytest.mark.slow
def test_time_limit_counts_from_the_trials_begin(path):
    """Of four trials submitted together only one has room: the last waits longer than it may run."""

    @raybo.objective(space=SPACE, num_cpus=CPUS)
    def filling(config):
        time.sleep(1.2)
        return 1.0

    study = tune(filling, path, trials=4, workers=4, trial_seconds=3.4)
    assert [trial.state for trial in study.trials] == [State.FINISHED] * 4


def mended_by(file):
    """A job that fails until there is a file."""

    @raybo.objective(space=SPACE)
    def job(config):
        if not file.exists():
            raise ModuleNotFoundError(f"No module named 'boost' at {time.time()}")
        return config["x"]

    return job


@pytest.mark.slow
def test_failed_trials_run_again_under_their_own_numbers(path):
    job = mended_by(path.with_name("mend"))
    with pytest.raises(
        TrialError, match=r"first 5 trials all failed with the same error: ModuleNotFoundError: .*--retry-failed"
    ):
        tune(job, path, trials=20, workers=1, method="sobol")
    assert [trial.state for trial in raybo.load(path).trials] == [State.FAILED] * 5
    path.with_name("mend").touch()
    study = raybo.tune(job, trials=7, workers=2, storage=path, retry_failed=True)
    assert [trial.state for trial in study.trials] == [State.FINISHED] * 7
    assert [trial.attempt for trial in study.trials] == [2] * 5 + [1] * 2
    assert [e.trial for e in study.events if e.kind is Kind.RETRIED] == [0, 1, 2, 3, 4]
    assert not any(trial.differs for trial in replay(raybo.load(path)))
    again = raybo.tune(job, trials=7, workers=2, storage=path, retry_failed=True)  # none has failed
    assert len(again.events) == len(study.events)


@pytest.mark.slow
def test_retried_trials_that_fail_again_stay_failed(path):
    job = mended_by(path.with_name("mend"))
    tune(job, path, trials=8, workers=1, keep_going=True)
    with pytest.raises(TrialError, match="first 5 trials all failed with the same error"):
        raybo.tune(job, trials=8, workers=1, storage=path, retry_failed=True)
    study = raybo.load(path)
    assert [trial.state for trial in study.trials] == [State.FAILED] * 8
    assert [trial.attempt for trial in study.trials] == [2] * 5 + [1] * 3


@pytest.mark.slow
def test_a_study_whose_trials_all_fail_ends(path):
    @raybo.objective(space=SPACE)
    def failing(config):
        raise RuntimeError

    study = tune(failing, path, trials=6, method="auto", keep_going=True)
    assert [trial.state for trial in study.trials] == [State.FAILED] * 6
    with pytest.raises(raybo.TrialError, match="no trial has finished"):
        _ = study.best


# ---- stopped


@pytest.mark.slow
def test_study_over_its_time_limit_stops_trials(path):
    @raybo.objective(space=SPACE)
    def slow(config):
        time.sleep(0.1 if config["x"] < 0.5 else 600)
        return config["x"]

    reasons = []
    for minutes in (0.05, 0.5):  # a busy machine may need all of the first before any trial runs
        study = tune(slow, path, trials=50, max_minutes=minutes, watch=lambda status: reasons.append(status.reason))
        stopped = [trial for trial in study.trials if trial.state is State.STOPPED]
        if stopped:
            break
    assert 1 <= len(stopped) <= 2
    assert {trial.reason for trial in stopped} == {f"the budget of {60 * minutes:g}s is used"}
    assert all(trial.value is None for trial in stopped)
    assert reasons[-1] == f"the budget of {60 * minutes:g}s is used"
    assert study.count(State.FINISHED, State.STOPPED) == len(study.trials) < 50


@pytest.mark.slow
def test_continued_study_replaces_stopped_trials(path, log):
    hang = path.with_name("hang")
    hang.touch()

    @raybo.objective(space=SPACE)
    def job(config):
        if config["n"] > 4 and hang.exists():
            with log.open("a") as file:
                file.write("hangs\n")
            time.sleep(600)
        return config["x"]

    def interrupt(status):
        if len(log.read_text().split()) == 2:
            raise KeyboardInterrupt  # as Ctrl-C does between two statuses

    arguments = {"trials": 8, "storage": path, "workers": 2, "watch": interrupt}
    for stopped in (2, 4):
        log.write_text("")
        with pytest.raises(KeyboardInterrupt):
            raybo.tune(job, method="random", seed=0, **arguments)
        check_journal(path)
        study = raybo.load(path)
        assert study.count(State.STOPPED) == stopped
        assert study.count(State.FINISHED, State.STOPPED) == len(study.trials)
        assert {trial.reason for trial in study.trials if trial.state is State.STOPPED} == {"stopped by the user"}
    hang.unlink()
    ended = tune(job, path, trials=8, method=None, seed=None)
    assert ended.trials[: len(study.trials)] == study.trials
    assert ended.count(State.FINISHED) == 8
    assert len(ended.trials) == 8 + 4


@pytest.mark.slow
def test_error_in_the_users_watch_harms_nothing(path):
    def watch(status):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        raybo.tune(simple(), trials=5, method="random", workers=2, storage=path, watch=watch)
    study = continued(simple(), path, trials=5)
    assert study.count(State.FINISHED) == 5


def continued(objective, path, **arguments):
    """Continues, waiting for the last study's actor to be gone as far as its journal shows it."""
    give_up = time.monotonic() + 120
    while True:
        try:
            return tune(objective, path, **{"seed": None, "method": None, **arguments})
        except JournalInUse:
            assert time.monotonic() < give_up
            time.sleep(0.2)


# ---- taken up again


@pytest.mark.slow
def test_continued_study_equals_an_uninterrupted_one(tmp_path, log):
    @raybo.objective(space=SPACE)
    def job(config):
        with log.open("a") as file:
            file.write(f"{config['x']}\n")
        return config["x"]

    whole = tune(job, tmp_path / "whole.db", trials=9, workers=1)
    log.write_text("")
    tune(job, tmp_path / "parts.db", trials=4, workers=1)
    first = raybo.load(tmp_path / "parts.db")
    parts = tune(job, tmp_path / "parts.db", trials=9, workers=1, seed=None, method=None)
    assert parts.trials[:4] == first.trials
    assert [(t.config, t.value) for t in parts.trials] == [(t.config, t.value) for t in whole.trials]
    assert len(log.read_text().split()) == 9
    again = tune(job, tmp_path / "parts.db", trials=9, seed=None, method=None)  # nothing is left to do
    assert again.trials == parts.trials
    assert len(log.read_text().split()) == 9


@pytest.mark.slow
def test_trials_in_flight_are_run_again(path, log):
    """Leave a journal as a power cut does: with a trial asked and not told."""
    description, _ = raybo_description(simple(), path)
    searcher = Searcher(SPACE, "random", "max", 0)
    with contextlib.closing(Journal(path, description)) as journal:
        journal.append([searcher.plan(4)])
        for _ in range(3):
            journal.append([searcher.apply(searcher.propose(searcher.history))])
        journal.append([searcher.apply(Told(1, value=123.0, seconds=1.0))])
    study = tune(simple(), path, trials=4)
    assert [trial.state for trial in study.trials] == [State.FINISHED] * 4
    assert [trial.attempt for trial in study.trials] == [2, 1, 2, 1]
    assert study.trials[1].value == 123.0
    assert [trial.config for trial in study.trials[:3]] == [trial.config for trial in searcher.trials]


def raybo_description(objective, path):
    """The description that such a study has, from a study of one trial."""
    elsewhere = path.with_name("elsewhere.db")
    raybo.tune(objective, trials=1, method="random", seed=0, storage=elsewhere)
    return read(elsewhere)


@pytest.mark.slow
def test_study_actor_may_be_killed_any_time(path, log, gate):
    @raybo.objective(space=SPACE)
    def job(config):
        with log.open("a") as file:
            file.write(f"{config['x']}\n")
        time.sleep(0.1)
        wait_at(gate)
        return config["x"]

    lock = path.with_name(path.name + "-lock")
    killed, counts = [], []

    def watch(status):
        counts.append(status.finished)
        if len(killed) < 2 and status.finished >= 4 * (len(killed) + 1):
            holder = json.loads(lock.read_text())
            if holder["process"] not in killed:
                assert holder["driver"] == os.getpid() != holder["process"]
                os.kill(holder["process"], signal.SIGKILL)
                killed.append(holder["process"])
                gate.write_bytes(bytes((5, 9, 20)[len(killed)]))

    gate.write_bytes(bytes(5))  # whenever a status is shown, trials are under way when it is killed
    study = tune(job, path, trials=20, watch=watch)
    assert len(killed) == 2
    assert [trial.state for trial in study.trials] == [State.FINISHED] * 20
    assert counts[-1] == 20
    runs = log.read_text().split()
    again = {trial.number for trial in study.trials if trial.attempt > 1}
    assert again
    for trial in study.trials:  # what had finished was not run again; what was in flight, once a kill
        assert runs.count(str(trial.config["x"])) <= trial.attempt
        assert trial.number in again or runs.count(str(trial.config["x"])) == 1
    assert len(runs) <= 20 + 2 * 2


@pytest.mark.slow
def test_study_with_a_lost_actor_can_be_continued(path, gate, monkeypatch):
    @raybo.objective(space=SPACE)
    def job(config):
        time.sleep(0.1)
        wait_at(gate)
        return config["x"]

    def watch(status):
        if status.finished >= 2:
            os.kill(json.loads(path.with_name(path.name + "-lock").read_text())["process"], signal.SIGKILL)

    gate.write_bytes(bytes(4))  # however late a status is shown, the study has not ended
    monkeypatch.setattr(driver, "RESTARTS", 0)
    with pytest.raises(RayError, match=r"^the study's own process was lost for good \(.*; the same command") as caught:
        raybo.tune(job, trials=10, method="random", workers=2, storage=path, watch=watch)
    assert "\n" not in str(caught.value)
    assert raybo.load(path).count(State.FINISHED) >= 2
    gate.write_bytes(bytes(10))
    assert tune(job, path, trials=10, seed=None, method=None).count(State.FINISHED) == 10


def test_one_study_at_a_time_writes_a_journal(path):
    tune(simple(), path, trials=1)
    description, _ = read(path)
    with contextlib.closing(Journal(path, description)), pytest.raises(JournalInUse, match="another study is writing"):
        raybo.tune(simple(), trials=2, storage=path)


def test_another_study_is_refused_before_anything_runs(path):
    tune(simple(), path, trials=1)
    before = path.read_bytes()
    for arguments, words in (
        ({"method": "sobol"}, "method is 'random' in the journal and 'sobol' now"),
        ({"seed": 1}, "seed is 0 in the journal and 1 now"),
    ):
        with pytest.raises(raybo.JournalError, match=words):
            raybo.tune(simple(), trials=2, storage=path, **arguments)
    assert path.read_bytes() == before


# ---- what users bring along


@pytest.mark.slow
def test_categories_may_be_any_objects(path):
    class Kernel:
        def __init__(self, power):
            self.power = power

    def square(x):
        return x**2

    choices = [Kernel(3), square, range(4), None, float("nan"), (1, [2]), True, 1, 1.0]

    @raybo.objective(space={"c": raybo.Categorical(choices)})
    def job(config):
        c = config["c"]
        if hasattr(c, "power"):
            return c.power
        return c(3) if callable(c) else -1.0 if c != c else 4.0

    study = tune(job, path, trials=40, workers=4)
    assert study.count(State.FINISHED) == 40
    seen = {id(trial.config["c"]) for trial in study.trials}
    assert seen == {id(choice) for choice in choices}
    values = {id(trial.config["c"]): trial.value for trial in study.trials}
    assert [values[id(choice)] for choice in choices[:5]] == [3.0, 9.0, 4.0, 4.0, -1.0]
    more = tune(job, path, trials=42, seed=None, method=None)
    assert len(more.trials) == 42


def test_constants_of_a_tune_space_reach_the_trial(path):
    from ray import tune as ray_tune

    table = np.arange(5.0)
    space = raybo.Space.from_tune({"m": {"lr": ray_tune.uniform(0, 1), "table": table}, "list": [1, "two"]})

    @raybo.objective(space=space)
    def job(config):
        assert config["list"] == [1, "two"]
        return config["m"]["table"].sum() + config["m"]["lr"]

    study = tune(job, path, trials=3)
    assert [trial.value for trial in study.trials] == [10.0 + trial.config["m"]["lr"] for trial in study.trials]
    assert study.trials[0].config["m"]["table"] is table


def test_a_space_may_depend_on_the_settings(path):
    @raybo.objective(space=lambda width: {"x": raybo.Float(width, 2 * width)})
    def job(config, *, width: int = 1):
        return config["x"] / width

    study = tune(job, path, trials=4, settings={"width": "10"})
    assert all(10 <= trial.config["x"] <= 20 for trial in study.trials)
    assert study.description.settings == {"width": 10}


def test_trials_keep_to_threads_and_working_directory(path):
    @raybo.objective(space=SPACE, num_cpus=2)
    def job(config):
        from threadpoolctl import threadpool_info

        return max([pool["num_threads"] for pool in threadpool_info()], default=1)

    assert tune(job, path, trials=2, workers=1).best.value <= 2


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"num_cpus": 1_000}, "a trial needs CPU=1000, and no node of the cluster has more than 4"),
        ({"num_gpus": 1}, "a trial needs GPU=1, and no node of the cluster has more than 0"),
        ({"memory": 2**60}, "a trial needs memory="),
        ({"resources": {"tpu_of_mine": 2}}, "a trial needs tpu_of_mine=2, and no node of the cluster has more than 0"),
    ],
    ids=str,
)
def test_trial_too_large_for_any_node_is_refused(path, declared, words):
    with pytest.raises(RayError) as caught:
        raybo.tune(simple(**declared), trials=2, storage=path)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("num_cpus", [0, 0.5, 2])
def test_trials_may_need_any_part_of_the_machine(path, num_cpus):
    assert tune(simple(num_cpus=num_cpus), path, trials=3, workers=None).count(State.FINISHED) == 3


def test_what_cannot_be_sent_is_named_before_ray_starts(path, monkeypatch):
    connection, rows = sqlite3.connect(":memory:"), (row for row in "ab")
    monkeypatch.setattr(driver, "ray_for_study", None)

    @raybo.objective(space=SPACE)
    def reading(config):
        return float(len(rows.gi_code.co_name) + connection.total_changes)

    reason = r"^reading: it cannot be sent to the workers: cannot pickle 'sqlite3.Connection' object "
    with pytest.raises(ObjectiveError, match=rf"{reason}\(the variable 'connection'\); create such objects inside"):
        raybo.tune(reading, trials=1, storage=path)

    @raybo.objective(space=SPACE)
    def streaming(config):
        return float(len(list(rows)))

    with pytest.raises(ObjectiveError, match=r"cannot pickle 'generator' object \(the variable 'rows'\)"):
        raybo.tune(streaming, trials=1, storage=path.with_name("other.db"))


def test_unpicklable_functions_are_refused_by_name(path):
    lock = threading.Lock()

    @raybo.objective(space=SPACE)
    def locked(config):
        with lock:
            return 1.0

    with pytest.raises(ObjectiveError, match=r"^locked: it cannot be sent to the workers: .*lock") as caught:
        raybo.tune(locked, trials=1, storage=path)
    assert "\n" not in str(caught.value)

    @raybo.objective(space={"c": raybo.Categorical([lock, 1])})
    def choosing(config):
        return 1.0

    with pytest.raises(ObjectiveError, match=r"^choosing: it cannot be sent to the workers: .*lock") as caught:
        raybo.tune(choosing, trials=1, storage=path.with_name("other.db"))
    assert "\n" not in str(caught.value)


# ---- wrong use, refused before anything is started


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"trials": 0}, MethodError, "trials must be a whole number from 1, got 0"),
        ({"trials": 2.0}, MethodError, "trials must be a whole number from 1, got 2.0"),
        ({"trials": True}, MethodError, "trials must be a whole number from 1, got True"),
        ({"workers": 0}, MethodError, "workers must be a whole number from 1, got 0"),
        ({"retries": -1}, MethodError, "retries must be a whole number from 0, got -1"),
        ({"max_minutes": 0}, MethodError, "max_minutes must be a finite number above 0, got 0"),
        ({"max_minutes": float("nan")}, MethodError, "max_minutes must be a finite number above 0, got nan"),
        ({"max_minutes": "3"}, MethodError, "max_minutes must be a finite number above 0, got '3'"),
        ({"trial_seconds": -1}, MethodError, "trial_seconds must be a finite number above 0, got -1"),
        ({"seed": -1}, MethodError, "seed must be a whole number from 0, got -1"),
        ({"method": "gp_ucb"}, MethodError, "there is no method 'gp_ucb'; did you mean 'gp-ucb'?"),
        ({"method": "gp-ucb", "solvr": 1}, MethodError, "gp-ucb has no option 'solvr'; did you mean 'solver'?"),
        ({"method": "random", "mode": "min"}, MethodError, "random has no option 'mode'"),
        ({"method": "random", "space": SPACE}, MethodError, "random has no option 'space'"),
        ({"settings": ["folds=3"]}, ObjectiveError, "settings must be a dict of the objective's keyword parameters"),
        ({"settings": {"folds": 3}}, ObjectiveError, "simple has no parameter 'folds'"),
        ({"address": "127.0.0.1:1"}, RayError, ""),
        ({"address": "nonsense"}, RayError, ""),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(path, arguments, kind, words):
    with pytest.raises(kind) as caught:
        raybo.tune(simple(), storage=path, **arguments)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)
    if kind is not RayError:
        assert not path.exists()


def test_bad_objective_or_space_is_refused(path):
    with pytest.raises(ObjectiveError, match=r"an objective is needed, got .*; decorate the function with @raybo"):
        raybo.tune(lambda config: 1.0, trials=1, storage=path)
    with pytest.raises(SpaceError, match="x: a parameter must be"):
        raybo.tune(raybo.objective(space={"x": [1, 0]})(lambda config: 1.0), trials=1, storage=path)
    with pytest.raises(raybo.JournalError, match=r"the directory .* does not exist"):
        raybo.tune(simple(), trials=1, storage=path.parent / "nowhere" / "study.db")
    with pytest.raises(raybo.JournalError, match="it is a directory"):
        raybo.tune(simple(), trials=1, storage=path.parent)
    assert os.listdir(path.parent) == []
    assert Path(path.parent).is_dir()
