"""The error of a run's model: the squared error of the posterior mean on a grid, after each trial.

The model is the one that the methods of unknown hyperparameters share, `surrogate.uhe_model`, with the hyperparameters
that the next proposal was made with, as the method reads them from its tags, and otherwise the last ones; the most
likely ones as long as there are none. Errors are in units of the objective, squared. They are kept beside the run's
journal.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from raybo.common.errors import JournalError
from raybo.common.files import write_file
from raybo.job.objective import Objective
from raybo.record.states import State
from raybo.space import Array
from raybo.study.study import Study
from raybo.surrogate import GP, Observations, Standardised, fit_map, uhe_model

POINTS = 2_500  # of the grid, about; the objective is evaluated at each


def keep_model_errors(study: Study, objective: Objective, before: Callable[[], None] = lambda: None) -> None:
    """Compute a complete run's errors and write them, unless that is done; if it is not, `before` is called first."""
    assert study.path is not None
    file = study.path.with_suffix(".model-error.json")
    if file.exists() and len(json.loads(file.read_text(encoding="utf-8"))) == len(study.trials):
        return
    before()
    write_file(file, json.dumps(model_errors(study, objective).tolist()) + "\n")


def kept_model_errors(study: Study) -> Array:  # (n,)
    """Read the model errors of a run.

    Raises:
        JournalError: there is nothing, or it cannot be read.
    """
    assert study.path is not None
    file = study.path.with_suffix(".model-error.json")
    try:
        return np.array(json.loads(file.read_text(encoding="utf-8")), dtype=np.float64)
    except (OSError, ValueError) as error:
        raise JournalError(f"{file}: its errors cannot be read ({error}); run the experiment again") from error


def model_errors(study: Study, objective: Objective) -> Array:  # (n,)
    """Mean squared error of the posterior mean on a grid after each trial; NaN before the first value."""
    grid = grid_of(study.space.d)
    truth = np.array([_value(objective, config) for config in study.space.decode(grid)])
    X = study.space.encode([trial.config for trial in study.trials])
    errors = np.full(len(study.trials), np.nan)
    thetas: Array | None = None  # (s, p)
    is_fitted_here = True
    for i, _ in enumerate(study.trials):
        known = [j for j in range(i + 1) if study.trials[j].state is State.FINISHED]
        if not known:
            continue
        y = np.array([study.trials[j].value for j in known], dtype=np.float64)
        outputs = Standardised.of(y)
        observations = Observations.of(X[known], outputs.apply(y), study.space.cube.categorical)
        next_tags = study.trials[min(i + 1, len(study.trials) - 1)].tags
        following = study.method.fitted_hyperparameters(next_tags)
        if following is not None:
            thetas, is_fitted_here = following, False
        elif thetas is None or is_fitted_here:
            start = uhe_model().start(study.space.d)
            thetas = fit_map(observations, uhe_model(), [start] if thetas is None else [thetas[0], start])[None, :]
        means = [_mean(GP.of(observations, uhe_model(), theta), grid) for theta in thetas]
        errors[i] = np.mean(np.square(outputs.invert(np.mean(means, axis=0)) - truth))
    return errors


def grid_of(d: int) -> Array:  # (m, d)
    """Centres of equal cells, POINTS of them or somewhat fewer."""
    k = max(2, round(POINTS ** (1.0 / d) - 0.5))
    axis = (np.arange(k) + 0.5) / k
    return np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)


def _value(objective: Objective, config: dict[str, object]) -> float:
    returned = objective(config, **objective.settings)
    return float(returned[objective.metric] if isinstance(returned, dict) else returned)


def _mean(gp: GP, X: Array) -> Array:  # (m, d) -> (m,)
    """The posterior mean alone, which costs a fraction of the variance."""
    return gp.prior_mean + gp.kernel.matrix(X, gp.X) @ gp.alpha
