from __future__ import annotations

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    model = trial.suggest_categorical("model", ["ridge", "trees"])
    if model == "ridge":
        return (trial.suggest_float("alpha", 1e-3, 1e3, log=True) - 2.0) ** 2 + 0.1
    depth = trial.suggest_int("depth", 1, 12)
    return (depth - 5) ** 2 / 10 + trial.suggest_float("rate", 0.0, 1.0)


if __name__ == "__main__":
    sampler = optunahub.load_module(package="samplers/raybo").RayboSampler()
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=30)
    print(study.best_params, study.best_value)
