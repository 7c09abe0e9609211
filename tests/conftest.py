"""Shared by all tests: seeded hypothesis, and one local Ray a session for the tests that need one."""

from __future__ import annotations

import os
import tempfile

os.environ.update(
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",  # before anything imports ray: every listener on the loopback interface
    RAY_USAGE_STATS_ENABLED="0",
    RAY_AUTH_MODE="token",
    RAY_worker_cap_enabled="false",  # or a killed study's processors come back only after seconds
)
os.environ.pop("RAY_ADDRESS", None)

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "raybo", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("raybo")

CPUS = 4  # more than the machine may have: the trials of the tests sleep rather than compute


@pytest.fixture(scope="session")
def ray_session():
    """A local Ray, the one that `raybo.tune` finds this process connected to."""
    import ray

    with tempfile.TemporaryDirectory(prefix="rb-", dir="/tmp") as directory:  # Ray's sockets need a short path
        ray.init(
            address="local",
            num_cpus=CPUS,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            object_store_memory=80 * 2**20,
            _temp_dir=directory,
        )
        yield ray
        ray.shutdown()


@pytest.fixture
def unconnected(monkeypatch):
    """As in a process that is not connected to any Ray, whichever test came before."""
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
