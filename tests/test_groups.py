"""The tests' own order: which of them run in one process."""

from __future__ import annotations

import os

import pytest


@pytest.mark.ray
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there is one process")
def test_groups_of_tests_are_kept_together(request):
    """They were not, unnoticed, under a pytest that pytest-xdist did not know."""
    assert request.node.nodeid.endswith("@ray")
