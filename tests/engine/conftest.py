"""A real cluster of several hosts, shared by a module's tests."""

from __future__ import annotations

import pytest

from tests.engine import hosts
from tests.renewed import Renewed


@pytest.fixture(scope="module")
def clusters():
    with Renewed(lambda: hosts.Hosts(head_cpus=1)) as found:
        yield found


@pytest.fixture
def cluster(clusters, request):
    yield from clusters.lend(request.node)
