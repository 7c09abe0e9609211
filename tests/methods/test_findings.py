from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo.methods.findings import interval


@pytest.mark.parametrize(
    ("mean", "sd", "text"),
    [
        (0.97, 0.0011, "0.9700 (90% interval 0.9682 to 0.9718)"),
        (1e-12, 1e-6, "1e-12 (90% interval -1.6e-06 to 1.6e-06)"),
        (-3e-5, 1e-6, "-3e-05 (90% interval -3.2e-05 to -2.8e-05)"),
        (1e-8, 1e-3, "0.0000 (90% interval -0.0016 to 0.0016)"),
        (0.0, 0.0, "0 (90% interval 0 to 0)"),
    ],
)
def test_intervals_have_the_digits_that_are_known(mean, sd, text):
    assert interval(mean, sd) == text


@pytest.mark.parametrize(("mode", "word"), [("max", "more"), ("min", "less")])
def test_the_model_expects_better_of_the_recommended_trial(mode, word):
    """The luckiest value is where its neighbours are bad."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", mode=mode, seed=0)
    sign = 1.0 if mode == "max" else -1.0
    noise = np.random.default_rng(0).normal(0.0, 0.3, 30)
    for x, e in zip(np.linspace(0.0, 1.0, 30), noise, strict=True):
        searcher.add({"x": x}, sign * ((3.0 if x == 0.0 else 0.0) - 4.0 * (x - 0.7) ** 2 + e))
    assert searcher.recommended.number != searcher.best.number == 0
    assert f", {word} than for trial 0, the best measured" in searcher.recommendation


def test_equal_values_are_not_called_the_best():
    """Among trials that measured the same, the model's favourite need not be the earliest."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", mode="max", seed=0)
    for x in np.linspace(0.0, 1.0, 21):
        searcher.add({"x": x}, round(1.0 - 4.0 * (x - 0.6) ** 2, 1))
    best, recommended = searcher.best, searcher.recommended
    assert (recommended.value, recommended.number > best.number) == (best.value, True)
    assert f", more than for trial {best.number}, which measured the same" in searcher.recommendation
