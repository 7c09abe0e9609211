"""A Tuner with RayboSearch and ASHA over XGBoost on KC1: `python -m tests.integrations.tune_xgboost DIRECTORY`.

Run again with the same directory, it restores the experiment; at its end it prints what became of the trials as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import uuid
from pathlib import Path

TRIALS, BEFORE = 14, 8

os.environ.update(
    TUNE_GLOBAL_CHECKPOINT_S="1",
    TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1",
    RAY_AIR_NEW_OUTPUT="0",
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
    RAY_USAGE_STATS_ENABLED="0",
)


def train(config):
    import time

    from ray import tune

    from trials.xgboost_defects import xgboost_defects

    held = Path(config["held"])  # while it is there, so many trials begin and no more
    if held.exists():
        held.with_name(f"begun-{uuid.uuid4()}").touch()
        while held.exists() and len(list(held.parent.glob("begun-*"))) > BEFORE:
            time.sleep(0.05)
    for trees in (5, 10, 20, 40):
        tune.report({"accuracy": xgboost_defects(config["booster"], trees=trees)["accuracy"]})
        time.sleep(0.05)


def main(directory: Path) -> None:
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    from raybo.engine.ray.connection import patient_start, without_helpers
    from raybo.integrations.ray_tune import RayboSearch

    with tempfile.TemporaryDirectory(prefix="rb-", dir="/tmp") as temporary:
        with patient_start(ray), without_helpers(ray):
            ray.init(
                address="local",
                num_cpus=2,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="error",
                object_store_memory=80 * 2**20,
                runtime_env={"env_vars": {"PYTHONPATH": os.getcwd()}},
                _temp_dir=temporary,
            )
        try:
            if tune.Tuner.can_restore(str(directory / "kc1")):
                tuner = tune.Tuner.restore(str(directory / "kc1"), trainable=train, restart_errored=True)
            else:
                tuner = tune.Tuner(
                    train,
                    param_space={
                        "booster": {
                            "eta": tune.loguniform(2**-10, 1.0),
                            "max_depth": tune.lograndint(1, 51),
                            "colsample_bytree": tune.uniform(0.1, 1.0),
                            "reg_lambda": tune.loguniform(2**-10, 2**10),
                        },
                        "name": "kc1",
                        "held": str(directory / "held"),
                    },
                    tune_config=tune.TuneConfig(
                        search_alg=RayboSearch(method="gp-ucb", initial=4, seed=0),
                        scheduler=ASHAScheduler(max_t=4, grace_period=1, reduction_factor=2),
                        metric="accuracy",
                        mode="max",
                        num_samples=TRIALS,
                        max_concurrent_trials=2,
                        reuse_actors=True,
                    ),
                    run_config=tune.RunConfig(name="kc1", storage_path=str(directory), verbose=0),
                )
            results = tuner.fit()
        finally:
            ray.shutdown()
    ends = [[r.metrics.get("training_iteration"), r.metrics.get("accuracy")] for r in results]
    sys.stdout.write(json.dumps({"ends": ends, "errors": results.num_errors}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
