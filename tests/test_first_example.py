"""The job that a wheel brings, for a first study without a clone."""

from __future__ import annotations

import subprocess
import sys

import pytest

import raybo
from raybo.examples.first import job


def test_one_variable_of_the_first_example_means_nothing():
    searcher = raybo.Searcher(job.space, mode="min", seed=1, trials=30)
    for _ in range(30):
        trial = searcher.ask()
        searcher.tell(trial, job(trial.config)["rmse"])
    assert searcher.best.value < 0.125
    width = searcher.best.config["width"]
    assert width["z"] > 5.0 * width["x"]


@pytest.mark.parametrize("options", [["--in-process"], pytest.param([], marks=pytest.mark.slow)])
def test_the_first_example_is_tuned_by_its_name(tmp_path, options):
    line = [sys.executable, "-m", "raybo.cli", "tune", "-m", "raybo.examples.first", "--trials", "6", *options]
    said = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=True).stdout
    assert "recommended: trial" in said
    assert said.splitlines().count("Starting Ray ...") == (0 if options else 1)
    assert "6 trials, saved in first.db" in said
