"""Some minutes of the adversary, seeded; and that it notices what is broken."""

from __future__ import annotations

import pytest

from tests.adversary import other_user
from tests.adversary.__main__ import ATTACKS, ROOT, run

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(600)]

CASES = {"spaces": 40, "orders of ask and tell": 25, "two writers": 10, "links planted by another user": 12}


@pytest.mark.parametrize("name", ATTACKS)
def test_adversary_breaks_nothing(name: str) -> None:
    if name in ROOT and not other_user.are_possible():
        pytest.skip("needs root, to become another user")
    found = []
    for number in range(CASES.get(name, 8 if "Ray" not in name else 1) if name != "strange trials" else 3):
        case = run(name, 1, number)
        found += [f"case {number}: {case.what}: {fault}" for fault in case.faults]
    assert found == []
