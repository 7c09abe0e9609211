"""Several metrics: above which point volume counts."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo.methods.several import FAR, MARGIN, Several
from raybo.surrogate import standard_model

SPACE = {"x": raybo.Float(0.0, 1.0), "y": raybo.Float(0.0, 1.0)}


@pytest.mark.parametrize("k", [2, 3])
def test_the_ends_of_a_front_of_three_metrics_are_reached_for_every_fourth_time(k):
    names = "abc"[:k]
    searcher = raybo.Searcher(SPACE, "random", seed=0, metrics=dict.fromkeys(names, "max"))
    far = []
    for n in range(1, 17):
        trial = searcher.ask()
        x, y = trial.config["x"], trial.config["y"]
        searcher.tell(trial, dict(zip(names, (1.0 - x * x - y * y, x, y), strict=False)))
        if n < 6:
            continue
        several = Several.of(searcher.history, standard_model(), np.random.default_rng(0))
        low, extent = several.front.min(axis=0), np.ptp(several.front, axis=0)
        assert (several.reference <= low - MARGIN * extent).all()
        if np.allclose(several.reference, low - FAR * extent):
            far.append(n)
    assert far == ([] if k == 2 else [7, 11, 15])
