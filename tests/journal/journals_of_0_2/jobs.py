"""Objectives of the journals that release 0.2 wrote: arithmetic and short sleeps."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import raybo

PLANE = {"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}


def bowl(config: Mapping[str, Any]) -> float:
    """Return a value that is highest, 0, at (0.3, 0.7)."""
    return -((config["x"] - 0.3) ** 2) - (config["y"] - 0.7) ** 2


def at_step(config: Mapping[str, Any], step: int, steps: int) -> float:
    """Return the value at a step: curves rise to the bowl and cross."""
    return bowl(config) - (0.2 + 0.3 * config["x"]) * (1 - step / steps)


def steps_from_checkpoint(config: Mapping[str, Any], steps: int) -> Iterator[int]:
    """Yield the steps of a run, after the checkpoint if there is one, and save each."""
    kept = raybo.checkpoint()
    for step in range(1 if kept is None else int((kept / "step").read_text()) + 1, steps + 1):
        time.sleep(0.005 + 0.02 * config["y"])
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
        yield step


@raybo.objective(space=PLANE, steps=16)
def with_checkpoints(config):
    """Continue from a checkpoint after a pause."""
    for step in steps_from_checkpoint(config, 16):
        yield at_step(config, step, 16)


@raybo.objective(space={**PLANE, "n": raybo.Integer(1, 9)}, metric="loss", mode="min", steps=9)
def loss(config):
    """Report a loss, with a number and a text beside it."""
    for step in range(1, 10):
        yield {"loss": config["n"] / 50 - at_step(config, step, 9), "epoch": step, "note": f"step {step}"}


@raybo.objective(space=PLANE, metric="score", steps=8, value="best")
def best_of_steps(config):
    """Report values that rise and fall; the best of them counts."""
    for step in range(1, 9):
        raybo.report({"score": bowl(config) + 0.2 * math.sin(step * (0.3 + 0.2 * config["x"]))})


@raybo.objective(
    space={
        "at_most": raybo.Integer(5, 300, log=True),
        "rate": raybo.Float(1e-4, 1, log=True),
        "kind": raybo.Categorical(["a", "b"]),
    },
    metrics={"accuracy": "max", "seconds": "min"},
    constraints={"memory": "<= 80"},
)
def two_metrics(config):
    """Return two metrics and a third, constrained number."""
    accuracy = 1 - 1 / (1 + 0.05 * config["at_most"]) - 0.02 * abs(math.log10(config["rate"]) + 2)
    return {
        "accuracy": accuracy,
        "seconds": 0.01 * config["at_most"] + (config["kind"] == "b"),
        "memory": 0.4 * config["at_most"],
        "text": "kept",
    }


@raybo.objective(
    space={"width": raybo.Integer(8, 256, log=True), "x": raybo.Float(0, 1)},
    steps=9,
    constraints={"megabytes": "<= 60 at every step"},
)
def every_step(config):
    """Use more memory at each step, so that some trials break the constraint late."""
    for step in range(1, 10):
        value = step / 20 - 4 / config["width"] - (config["x"] - 0.4) ** 2
        yield {"value": value, "megabytes": 0.3 * config["width"] * (0.6 + 0.4 * step / 9)}


@raybo.objective(
    space=PLANE, context={"demand": raybo.Float(0, 1), "day": raybo.Categorical(["work", "rest"])}, mode="min"
)
def in_context(config):
    """Report a context that depends on the trial's number alone; one trial reports none."""
    number = raybo.current_trial().number
    if number != 3:
        raybo.report_context(demand=(0.37 * number) % 1, day="rest" if number % 4 == 0 else "work")
    return -bowl(config) + 0.5 * ((0.37 * number) % 1) * config["x"]


MODELS = {
    "model": raybo.Categorical(
        [
            {"kind": "svm", "C": raybo.Float(1e-3, 1e3, log=True, guess=1.0)},
            {"kind": "knn", "neighbours": raybo.Integer(1, 30)},
            "bayes",
        ]
    ),
    "batch": raybo.Ordinal([8, 16, 32, 64]),
    "share": raybo.Float(0.5, 0.999, scale="logit"),
}
RULES = ["batch <= 32 or share < 0.9", "model.knn.neighbours * batch <= 600"]


def accuracy(config: Mapping[str, Any]) -> float:
    """Return the accuracy of one of three models."""
    model = config["model"]
    if model == "bayes":
        value = 0.7
    elif model["kind"] == "svm":
        value = 0.9 - 0.02 * (math.log10(model["C"]) - 1) ** 2
    else:
        value = 0.85 - 0.001 * (model["neighbours"] - 7) ** 2
    return value + 0.01 * math.log2(config["batch"]) - 0.05 * (config["share"] - 0.8) ** 2


@raybo.objective(space=MODELS, metric="accuracy")
def before(config):
    """Return known results for `branches`, whose space has one parameter more, and rules."""
    return accuracy(config)


@raybo.objective(
    space=raybo.Space({**MODELS, "scale": raybo.Categorical([True, False])}, where=RULES), metric="accuracy"
)
def branches(config):
    """Tune a conditional space with an ordinal, rules and a guess."""
    return accuracy(config) + 0.005 * config["scale"]


@raybo.objective(space=PLANE, metric="score")
def noisy(config, *, scale: float = 0.1):
    """Add noise drawn from the trial's own seed."""
    seed = raybo.current_trial().seed
    return {"score": bowl(config) + scale * math.sin(seed % 1000), "seed": seed}


@raybo.objective(space=PLANE, mode="min")
def unlucky(config):
    """Fail in some trials; one trial loses its worker once, another at every attempt."""
    trial = raybo.current_trial()
    if trial.number == 11 or (trial.number == 5 and trial.attempt == 1):
        os._exit(1)
    if trial.number == 9 or (trial.number % 4 == 2 and trial.attempt == 1):
        raise ValueError(f"trial {trial.number} is unlucky")
    return -bowl(config)


@raybo.objective(space={f"x{i}": raybo.Float(-1, 1) for i in range(4)})
def hill(config):
    """Return a hill in four dimensions, for a local method."""
    return -sum((v - 0.2) ** 2 for v in config.values())


@raybo.objective(space={**PLANE, "c": raybo.Categorical(["p", "q", "r"])}, steps=6)
def killed(config):
    """Wait at step 4 of every trial from number HELD_FROM on, to be killed there."""
    held_from = int(os.environ.get("HELD_FROM", "1000"))
    for step in range(1, 7):
        while raybo.current_trial().number >= held_from and step == 4:
            time.sleep(0.05)
        yield at_step(config, step, 6) - 0.1 * (config["c"] == "q")
