"""How busy the workers are: a study of trials that sleep, and the share of the time in which trials ran.

python -m benchmarks.idle [--method gp-ucb] [--trials 100] [--milliseconds 100] [--workers 2]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import datetime
from pathlib import Path

import raybo
from raybo.history import Kind
from raybo.study import Study


@raybo.objective(space=raybo.Space({f"x{i}": raybo.Float(0, 1) for i in range(6)}), metric="value", mode="max")
def sleeper(config: dict[str, float], *, milliseconds: float = 100.0) -> float:
    """A smooth function that takes its time."""
    time.sleep(milliseconds / 1_000)
    return -sum((value - 0.3) ** 2 for value in config.values())


def busy_share(study: Study, workers: int, warm_up: int) -> float:
    """Seconds in which trials ran over the workers' seconds, from the end of the first `warm_up` trials."""
    told = [event for event in study.events if event.kind is Kind.TOLD]
    begin, end = datetime.fromisoformat(told[warm_up - 1].at), datetime.fromisoformat(told[-1].at)
    ran = 0.0
    for event in told:
        start = datetime.fromisoformat(event.data["started"])
        ran += max(0.0, event.data["seconds"] - max(0.0, (begin - start).total_seconds()))
    return ran / (workers * (end - begin).total_seconds())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="gp-ucb")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--milliseconds", type=float, default=100.0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        study = raybo.tune(
            sleeper,
            trials=arguments.trials,
            method=arguments.method,
            seed=0,
            workers=arguments.workers,
            storage=Path(directory, "study.db"),
            settings={"milliseconds": arguments.milliseconds},
        )
    share = busy_share(study, arguments.workers, warm_up=10)
    print(
        f"{arguments.method}: {arguments.workers} workers busy {100 * share:.1f} % of the time after the first 10 of "
        f"{arguments.trials} trials of {arguments.milliseconds:g} ms"
    )


if __name__ == "__main__":
    main()
