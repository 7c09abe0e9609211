"""The surrogate's error on a grid matches a posterior computed by hand, and is stored beside the journal."""

from __future__ import annotations

import numpy as np
import pytest

import raybo
from raybo.common.errors import JournalError, MethodError
from raybo.experiments.measures import curve, measure
from raybo.experiments.model_error import grid_of, keep_model_errors, kept_model_errors, model_errors
from raybo.experiments.plan import Problem
from raybo.record.description import Description
from raybo.record.events import Asked, Told
from raybo.record.goals import Goals
from raybo.study.study import Study
from raybo.surrogate import GP, Observations, uhe_model

SPACE = raybo.Space({"x": raybo.Float(0, 2)})
THETA = np.log([0.2, 1.0, 1e-4]).tolist()


@raybo.objective(space=SPACE, mode="min")
def bowl(config, *, low=1.0):
    return low + 50.0 * (config["x"] - 1.0) ** 2


def study_of(tags, xs=(0.2, 0.9, 0.4, 0.6, 0.5), path=None):
    """A study of bowl at these points of the cube, with the tags of each."""
    description = Description("bowl", Goals(("value",), ("min",)), SPACE, "map", 0)
    events = []
    for i, (x, its) in enumerate(zip(xs, tags, strict=True)):
        values = SPACE.pack({"x": 2 * x})
        events.append(Asked(i, x=[x], values=values, tags=its, number=2 * i + 1))
        value = bowl({"x": 2 * x})
        events.append(Told(i, value=value, number=2 * i + 2))
    return Study(description, events, path)


def by_hand(xs, theta):
    X, y = np.array(xs)[:, None], np.array([bowl({"x": 2 * x}) for x in xs])
    gp = GP.of(Observations.of(X, (y - y.mean()) / y.std()), uhe_model(), np.array(theta))
    grid = grid_of(1)
    truth = np.array([bowl({"x": 2 * x}) for x in grid[:, 0]])
    return float(np.mean((gp.posterior(grid)[0] * y.std() + y.mean() - truth) ** 2))


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_grid_is_regular_and_of_bounded_size(d):
    grid = grid_of(d)
    assert grid.shape[1] == d
    assert 700 <= len(grid) <= 2_600
    np.testing.assert_allclose(grid.mean(axis=0), 0.5)


def test_model_error_uses_the_hyperparameters_then_current():
    xs = (0.2, 0.9, 0.4, 0.6, 0.5)
    long = np.log([0.5, 1.0, 1e-4]).tolist()
    errors = model_errors(study_of([{}, {}, {"theta": THETA}, {}, {"theta": long}]), bowl)
    assert errors[1] == pytest.approx(by_hand(xs[:2], THETA))
    assert errors[2] == pytest.approx(by_hand(xs[:3], THETA))  # nothing new: the last ones
    assert errors[3] == pytest.approx(by_hand(xs[:4], long))
    assert errors[4] == pytest.approx(by_hand(xs, long))


def test_samples_are_averaged_and_other_length_scales_used():
    one = model_errors(study_of([{"theta": THETA, "thetas": [THETA, THETA]}] * 5), bowl)
    other = model_errors(study_of([{"theta": np.log([0.9, 1, 1e-4]).tolist(), "lengthscale": [0.2]}] * 5), bowl)
    np.testing.assert_allclose(one, other)


def test_without_hyperparameters_they_are_fitted():
    errors = model_errors(study_of([{}] * 5), bowl)
    assert np.isfinite(errors).all()
    assert errors[-1] < errors[0]


def test_model_error_is_kept_beside_the_journal(tmp_path):
    study = study_of([{"theta": THETA}] * 5, path=tmp_path / "run.db")
    problem = Problem("bowl", "bowl.py", 5, optimum=1.0, found_within=0.5, model_error=True)
    with pytest.raises(JournalError, match="run the experiment again"):
        kept_model_errors(study)
    keep_model_errors(study, bowl)
    np.testing.assert_allclose(curve("model_error", study, problem, 1.0), model_errors(study, bowl))
    assert measure("final_model_error", study, problem, 1.0) == kept_model_errors(study)[-1]
    (tmp_path / "run.model-error.json").write_text("[1.0]")  # of a shorter run
    keep_model_errors(study, bowl)
    assert len(kept_model_errors(study)) == 5


def test_whether_the_optimum_was_missed():
    study = study_of([{}] * 5)
    near, far = (Problem("bowl", "bowl.py", 5, optimum=1.0 - gap, found_within=0.5) for gap in (0.0, 0.6))
    assert measure("missed", study, near, 1.0) == 0.0
    assert measure("missed", study, far, 0.4) == 1.0
    with pytest.raises(MethodError, match="how small the regret"):
        measure("missed", study, Problem("bowl", "bowl.py", 5), 1.0)
