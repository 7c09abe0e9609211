"""Reasons are in the units of the metrics, and those of older journals in standard deviations."""

from __future__ import annotations

import re

import numpy as np
import pytest

import raybo
from raybo.methods.explaining import in_units
from raybo.methods.parts.fitted_model import prediction_in_words
from raybo.record.goals import Goals

OLD = {"acquisition": "log-ei", "mean": -1.41, "std": 0.2}  # of a journal of 0.2


@pytest.mark.parametrize("method", ["auto", "ei", "gp-ucb", "map"])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_expectations_are_in_the_metric_units(method, mode):
    options = {"initial": 4} if method in ("ei", "gp-ucb") else {}
    searcher = raybo.Searcher({"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, method, mode, seed=0, **options)
    values = []
    for _ in range(12):
        trial = searcher.ask()
        text, known = searcher.explain(trial), list(values)
        values.append(1000 + 3 * trial.config["x"])
        searcher.tell(trial, values[-1])
    found = re.search(r"value (\S+) expected \((\S+) to (\S+)\), best so far (\S+)$", text)
    mean, low, high, best = map(float, found.groups())
    assert 990 < low <= mean <= high < 1010
    assert best == pytest.approx(max(known) if mode == "max" else min(known), abs=1)
    assert mean == pytest.approx(values[-1], abs=2)


def test_all_models_that_decided_expect_together():
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "auto", seed=0)
    for _ in range(9):
        trial = searcher.ask()
        searcher.tell(trial, -((trial.config["x"] - 0.4) ** 2))
    trial = searcher.ask()
    low, mean, high, best = trial.tags["expects"][0]
    assert low <= mean <= high
    assert best == pytest.approx(searcher.best.value, rel=1e-5)


def test_several_metrics_are_named_each_with_its_sign():
    goals = Goals(("accuracy", "seconds"), ("max", "min"))
    tags = {"expects": [[0.90, 0.95, 0.97, 0.96], [-12.0, -10.0, -9.0, -8.0]]}
    assert in_units(tags, goals) == "accuracy 0.95 expected (0.9 to 0.97), seconds 10 expected (9 to 12)"


def test_tags_of_older_journals_are_explained_too():
    method = raybo.Searcher({"x": raybo.Float(0, 1)}, "auto").method
    assert method.explain(OLD) == "expected improvement: expected 1.41 sd worse than average, uncertain by 0.20 sd"
    assert prediction_in_words({"mean": [0.5, -1.0], "std": [0.1, 0.2], "success": 0.9}) == (
        "expected 0.50 sd better than average and 1.00 sd worse than average, uncertain by 0.10 and 0.20 sd, "
        "succeeds with probability 0.90"
    )


def test_values_that_no_number_holds_have_no_tag():
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "ei", seed=0)
    for _ in range(8):
        trial = searcher.ask()
        searcher.tell(trial, float(np.exp(300 * trial.config["x"])))
    assert searcher.explain(searcher.ask())
