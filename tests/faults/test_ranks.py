"""A trial of several processes fares as promised if one of them fails."""

from __future__ import annotations

import itertools

import pytest

from tests.faults.ranks import PROMISES, Manner, Phase, Strike, strike, strikes

SOME = (
    Strike(0, Manner.KILLED, Phase.SAVES, 1, 2),
    Strike(1, Manner.STOPPED, Phase.TRAINS, 0, 2),
    Strike(2, Manner.EXITS, Phase.MEETS, 0, 2),
)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("planned", SOME, ids=str)
def test_a_failing_rank_has_the_promised_outcome(planned, tmp_path, ray_session):
    assert strike(planned, tmp_path, ray_session).complaints == []


def test_a_plan_strikes_every_cell_each_round():
    cells = len(Manner) * len(Phase) * 2
    planned = list(itertools.islice(strikes(seed=1), 2 * cells))
    assert len({(each.manner, each.phase, each.rank, each.count) for each in planned}) == 2 * cells
    assert list(itertools.islice(strikes(seed=1, first=7), 5)) == planned[7:12]
    assert set(PROMISES) == set(Manner)
