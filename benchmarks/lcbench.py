"""LCBench by its surrogate: learning curves of 52 epochs for seven hyperparameters of a network, on 34 tasks.

Zimmer, Lindauer, Hutter (2021), "Auto-PyTorch Tabular: Multi-Fidelity MetaLearning for Efficient and Robust AutoDL",
for the curves; Pfisterer et al. (2022), "YAHPO Gym", for the surrogate fitted to them, which is shipped in
data/lcbench (Apache-2.0). A curve is a function of the configuration: the same one always has the same.

    python -m benchmarks.lcbench       # the references, made anew

The settings of raybo's schedulers were tried on some of `INSTANCES`; none of `OTHERS` was looked at before they were
settled, and none of `LEFT` before the last rules of `benchmarks.budget`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import raybo

DATA = Path(__file__).parent / "data" / "lcbench"
EPOCHS = 52
INPUTS = ("batch_size", "learning_rate", "momentum", "weight_decay", "num_layers", "max_units", "max_dropout")
# of each: the best accuracy known, and what random search comes to after 40 runs, in the mean; see `reference`
REFERENCES = {
    "7593": (91.695, 73.684),
    "34539": (99.146, 98.074),
    "126029": (99.190, 92.412),
    "167104": (96.567, 92.476),
    "167149": (99.484, 97.208),
    "167161": (90.866, 81.953),
    "167181": (94.286, 90.032),
    "167200": (88.578, 70.975),
    "168331": (86.881, 58.524),
    "168868": (99.756, 99.522),
    "126025": (99.472, 88.753),
    "126026": (99.748, 96.873),
    "167083": (80.977, 67.878),
    "167152": (98.715, 96.932),
    "167184": (85.342, 79.800),
    "167185": (97.896, 96.234),
    "167190": (93.621, 85.280),
    "167201": (85.999, 75.325),
    "168329": (54.951, 27.064),
    "168335": (99.693, 92.826),
    "146212": (99.197, 98.082),
    "167168": (89.426, 78.524),
    "168330": (76.720, 65.311),
    "168908": (91.984, 80.552),
    "168910": (88.769, 68.923),
    "189354": (95.657, 71.289),
    "189862": (95.177, 85.514),
    "189865": (99.004, 94.725),
    "189866": (94.697, 70.163),
    "189873": (99.232, 76.876),
}
INSTANCES, OTHERS, LEFT = tuple(REFERENCES)[:10], tuple(REFERENCES)[10:20], tuple(REFERENCES)[20:]
SECONDS, ACCURACY = (
    0,
    1,
)  # of the outputs: time, accuracy, cross entropy, balanced accuracy of validation, two of the test

space = raybo.Space(
    {
        "batch_size": raybo.Integer(16, 512, log=True),
        "learning_rate": raybo.Float(1e-4, 1e-1, log=True),
        "momentum": raybo.Float(0.1, 0.99),
        "weight_decay": raybo.Float(1e-5, 1e-1),
        "num_layers": raybo.Integer(1, 5),
        "max_units": raybo.Integer(64, 1024, log=True),
        "max_dropout": raybo.Float(0.0, 1.0),
    }
)


def curves(task: str, configs: list[dict[str, Any]]) -> NDArray[np.float64]:  # (m, 52)
    """Validation accuracy in percent after every epoch."""
    inputs = np.array([[config[name] for name in INPUTS] for config in configs], dtype=np.float32)
    continuous = np.empty((len(configs) * EPOCHS, 1 + len(INPUTS)), dtype=np.float32)
    continuous[:, 0] = np.tile(np.arange(1, EPOCHS + 1), len(configs))
    continuous[:, 1:] = np.repeat(inputs, EPOCHS, axis=0)
    return _run(task, continuous).reshape(len(configs), EPOCHS)


def finals(task: str, configs: list[dict[str, Any]]) -> NDArray[np.float64]:  # (m,)
    """Validation accuracy in percent after the last epoch."""
    inputs = np.array([[EPOCHS, *(config[name] for name in INPUTS)] for config in configs], dtype=np.float32)
    return _run(task, inputs)


def finals_and_seconds(task: str, configs: list[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Validation accuracy in percent after the last epoch, and the seconds of a whole run."""
    inputs = np.array([[EPOCHS, *(config[name] for name in INPUTS)] for config in configs], dtype=np.float32)
    outputs = _outputs(task, inputs)
    return outputs[:, ACCURACY], outputs[:, SECONDS]


def _run(task: str, continuous: NDArray[np.float32]) -> NDArray[np.float64]:  # (m, 8) -> (m,)
    return _outputs(task, continuous)[:, ACCURACY]


def _outputs(task: str, continuous: NDArray[np.float32]) -> NDArray[np.float64]:  # (m, 8) -> (m, 6)
    session, tasks = _surrogate()
    which = np.full((len(continuous), 1), tasks[task], dtype=np.int32)
    (outputs,) = session.run(None, {"x_cat": which, "x_cont": continuous})
    return np.asarray(outputs, dtype=np.float64)


@lru_cache(maxsize=1)
def _surrogate() -> tuple[Any, dict[str, int]]:
    try:
        import onnxruntime
    except ImportError:
        raise raybo.MissingExtra("LCBench needs onnxruntime: pip install 'raybo[benchmarks]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(DATA / "model.onnx"), options, providers=["CPUExecutionProvider"])
    return session, json.loads((DATA / "encoding.json").read_text())["OpenML_task_id"]


def reference(task: str) -> tuple[float, float]:
    """The best accuracy of 20,000 uniform points and ten rounds of mutations; the mean best of 40 of the points."""
    rng = np.random.default_rng(0)
    X = space.snap(rng.random((20_000, space.d)))
    y = finals(task, space.decode(X))
    chance = float(np.mean([rng.choice(y, 40).max() for _ in range(4_000)]))
    for sd in (0.2, 0.1, 0.1, 0.05, 0.05, 0.02, 0.02, 0.01, 0.01, 0.005):
        top = np.argsort(-y)[:60]
        children = np.repeat(X[top], 30, axis=0)
        moved = (rng.random(children.shape) < 0.4) * sd * rng.standard_normal(children.shape)
        children = space.snap(np.clip(children + moved, 0.0, 1.0))
        X, y = np.vstack([X[top], children]), np.concatenate([y[top], finals(task, space.decode(children))])
    return float(y.max()), chance


if __name__ == "__main__":
    for name in REFERENCES:
        print(f'    "{name}": ({", ".join(f"{value:.3f}" for value in reference(name))}),')
