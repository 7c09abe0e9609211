"""Shared by all tests: seeded hypothesis, one local Ray for the tests that need one, and which of them run together."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

os.environ.update(
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",  # before anything imports ray: every listener on the loopback interface
    RAY_USAGE_STATS_ENABLED="0",
    RAY_AUTH_MODE="token",
    RAY_worker_cap_enabled="false",  # or a killed study's processors come back only after seconds
    RAY_worker_niceness="0",  # at Ray's 15, beside other tests, a study may take a minute to start
)
os.environ.pop("RAY_ADDRESS", None)
# in the background, or under nohup, processes that the tests start would ignore Ctrl-C and a closed terminal
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

import pytest
import scipy.linalg  # noqa: F401  # loads every BLAS; limited below
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from tests.renewed import FAILED, Renewed

threadpool_limits(1)  # in this process, of several; what a test starts decides for itself

settings.register_profile(
    "raybo", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("raybo")

QUICK = ("common", "record", "space", "job", "schedulers")  # rooms of pure logic
# files of slow tests, by what they take: what begins last should be short
LONGEST = (
    "test_faults",
    "test_readme",
    "test_jobs",
    "test_ray_train",
    "test_gangs_on_cluster",
    "test_tune",
    "test_cluster",
    "test_harness",
    "test_papers",
    "test_gradient_boosting",
)
QUICK_SECONDS = 60  # what `-m quick -n 2` may take on two cores; half of it if nothing else runs
BEGUN = time.monotonic()
PROCESSES = 8  # at most, with `-n auto`: each has to import and collect everything
NO_CASE = SimpleNamespace(params={})
CPUS = 4  # more than the machine may have: the trials of the tests sleep rather than compute


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Return the processes of `-n auto`: one for each processor, and one more for slow tests, which often wait."""
    return min(PROCESSES, len(os.sched_getaffinity(0)) + (config.option.markexpr == "slow"))


def pytest_ignore_collect(collection_path, config):
    """With `-m quick` read only the rooms of quick tests, and with `-m slow` only files that have slow ones."""
    if collection_path.suffix != ".py":
        return None
    if config.option.markexpr == "quick":
        return True if collection_path.parent.name not in QUICK else None
    if config.option.markexpr == "slow":
        return True if "slow" not in collection_path.read_text(encoding="utf-8") else None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """One process runs all fast tests that start a Ray: never two at once, and one session's Ray for all of them.

    Slow ones go by file, as they wait more than they compute. And one process runs all of the contract's for a method,
    whose histories begin alike.
    """
    if config.option.markexpr == "slow":
        items.sort(key=lambda item: (*LONGEST, item.path.stem).index(item.path.stem))
    for item in items:
        if _is_quick(item):
            item.add_marker(pytest.mark.quick)
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if "ray_session" in item.fixturenames or item.get_closest_marker("ray"):
                slow = item.get_closest_marker("slow")
                item.add_marker(pytest.mark.xdist_group(f"ray {item.path.stem}" if slow else "ray"))
            elif item.path.stem == "test_contract" and "name" in (case := getattr(item, "callspec", NO_CASE).params):
                item.add_marker(pytest.mark.xdist_group(f"contract {case['name']}"))


def _is_quick(item):
    """True in a file of a room of pure logic, for what starts no Ray, needs no statistics and draws no examples."""
    if item.path.parent.name not in QUICK or item.path.stem == "test_contract":
        return False
    return not (
        any(item.get_closest_marker(mark) for mark in ("ray", "slow", "statistical"))
        or getattr(getattr(item, "function", None), "is_hypothesis_test", False)
    )


def pytest_terminal_summary(terminalreporter, config):
    """Say how long the quick tests took, and if they are no longer quick."""
    if config.option.markexpr != "quick":
        return
    count = sum(len(terminalreporter.stats.get(key, [])) for key in ("passed", "failed"))
    seconds = time.monotonic() - BEGUN
    verdict = "as they should" if seconds < QUICK_SECONDS else f"more than {QUICK_SECONDS}: see --durations=20"
    terminalreporter.write_line(f"quick: {count} tests in {seconds:.0f} s, {verdict}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """A test's fixtures learn, before they are taken down, whether it has failed."""
    report = yield
    item.stash[FAILED] = report.failed
    return report


@contextlib.contextmanager
def local_ray():
    """A local Ray that this process is connected to."""
    import ray

    from raybo.engine.ray.connection import start_local

    with tempfile.TemporaryDirectory(prefix="rb-", dir="/tmp") as directory:  # Ray's sockets need a short path
        try:
            start_local(ray, CPUS, Path(directory))
            yield ray
        finally:
            ray.shutdown()


def _scope_of_rays(fixture_name, config):
    """Slow tests go by file, and in a process that has finished one, others start Rays of their own."""
    return "module" if config.option.markexpr == "slow" else "session"


@pytest.fixture(scope=_scope_of_rays)
def rays():
    with Renewed(local_ray) as found:
        yield found


@pytest.fixture
def ray_session(rays, request):
    """A local Ray, the one that `raybo.tune` finds this process connected to."""
    yield from rays.lend(request.node)


@pytest.fixture
def few_draws(monkeypatch):
    """Importance from fewer draws: enough for a figure, in an eighth of the time."""
    from raybo.reporting.importance import importance

    monkeypatch.setitem(importance.__kwdefaults__, "draws", 6)


@pytest.fixture
def unconnected(monkeypatch):
    """As in a process that is not connected to any Ray, whichever test came before."""
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
