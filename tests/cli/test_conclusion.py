"""The lines by which a study ends on the console."""

from __future__ import annotations

import time

import pytest

import raybo
from raybo.cli.conclusion import conclude
from raybo.cli.console import make_console
from raybo.common.errors import TrialError

X = {"x": raybo.Float(0, 1)}


def last_line(study, path):
    console = make_console()
    with console.capture() as captured:
        conclude(console, study, path)
    return captured.get().splitlines()[-1]


@raybo.objective(space=X, metric="y", mode="max")
def priced(config):
    return {"y": config["x"], "tokens": 400}


@pytest.mark.parametrize(
    ("limits", "line"),
    [
        ({"budget": 1_234_567, "trials": 3}, "3 trials, 1,200 of 1,234,567 tokens used, {}; continue with --trials 6"),
        ({"budget": 1_000}, "3 trials, 1,200 of 1,000 tokens used, {}; continue with --budget 2400 --cost tokens"),
    ],
)
def test_what_is_suggested_continues_the_study(tmp_path, limits, line):
    path = tmp_path / "a.db"
    study = raybo.tune(priced, in_process=True, method="random", cost="tokens", storage=path, **limits)
    assert last_line(study, path) == line.format(f"saved in {path}")


def test_a_budget_too_short_for_a_trial_is_no_failure(tmp_path):
    @raybo.objective(space=X, metric="y", mode="max")
    def long(config):
        while True:
            time.sleep(0.01)

    study = raybo.tune(long, in_process=True, method="random", budget=1.0, storage=tmp_path / "a.db")
    with pytest.raises(TrialError, match=r"^no trial has finished: the budget of 1s is used; see raybo show "):
        last_line(study, tmp_path / "a.db")


def test_the_only_trial_has_failed(tmp_path):
    @raybo.objective(space=X, metric="y", mode="max")
    def fails(config):
        raise ValueError("broken")

    study = raybo.tune(fails, in_process=True, method="random", trials=1, storage=tmp_path / "a.db")
    with pytest.raises(TrialError, match=r"^the only trial has not finished: ValueError: broken; see raybo show "):
        last_line(study, tmp_path / "a.db")
