"""The small disk that tests of faults fill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import disk


@pytest.fixture(scope="module")
def small() -> Iterator[disk.Disk | None]:
    if not disk.is_possible():
        yield None
        return
    with disk.Disk() as mounted:
        yield mounted
