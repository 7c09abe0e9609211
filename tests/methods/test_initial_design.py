"""The size of an initial design."""

from __future__ import annotations

import pytest

from raybo.methods.parts.initial_design import design_size
from raybo.record.events import Planned
from raybo.record.history import History
from raybo.space import Float, Space


@pytest.mark.parametrize(
    ("d", "planned", "published", "size"),
    [
        (2, None, 20, 20),  # nobody says how long the study is
        (2, 100, 20, 20),
        (2, 40, 20, 10),  # a quarter
        (6, 16, 60, 7),  # d + 1, which shows every axis
        (20, 20, 200, 10),  # but never more than half
        (50, 60, 10, 30),
        (3, 1, 30, 1),
    ],
)
def test_a_short_study_keeps_most_of_its_trials_for_the_model(d, planned, published, size):
    history = History(Space({f"x{i}": Float(0, 1) for i in range(d)}).cube)
    if planned is not None:
        history.apply(Planned(trials=planned))
    assert design_size(history, published, None) == size
    assert design_size(history, published, 4) == 4
