"""Every public call, with arguments that nobody should give: each is taken, or refused in a line of raybo's own."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import raybo
from raybo.common.errors import RayboError
from raybo.journal import read
from tests.adversary import values
from tests.adversary.faults import LONGEST_LINE, Case, last_lines

MANY = 100  # calls per case
MOST_SECONDS = 20.0  # of one call, on a busy machine
X = {"x": raybo.Float(0, 1), "n": raybo.Integer(1, 9), "c": raybo.Categorical(["a", "b"])}
CONFIG = {"x": 0.5, "n": 3, "c": "a"}


class Evasive:
    """It raises at every attribute that it does not have."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class Endless(dict[str, Any]):
    """A mapping that raises when it is read."""

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no keys")

    def keys(self) -> Any:
        raise RuntimeError("no keys")

    def items(self) -> Any:
        raise RuntimeError("no items")


class Sizeless(list[Any]):
    """A sequence without a length."""

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("no items")


class Undecided:
    """It is neither true nor false."""

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


class Unhashable(str):
    """A name that cannot be one of a dict."""

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


def nested(kind: type, depth: int) -> Any:
    """A dict or list that holds another, and so on."""
    found: Any = 1
    for _ in range(depth):
        found = {"a": found} if kind is dict else [found]
    return found


def looped(kind: type) -> Any:
    """A dict or list that holds itself."""
    found: Any = kind()
    if kind is dict:
        found["a"] = found
    else:
        found.append(found)
    return found


HOSTILE: tuple[Callable[[], Any], ...] = (
    Evasive,
    Sizeless,
    Undecided,
    values.Unrepresentable,
    values.Incomparable,
    values.Unfloatable,
    lambda: Endless(a=1),
    lambda: Unhashable("x"),
    lambda: looped(dict),
    lambda: looped(list),
    lambda: nested(dict, 3_000),
    lambda: nested(list, 3_000),
    lambda: {"x": looped(dict)},
    lambda: {1: 2},
    lambda: {"x": values.Unrepresentable(), "n": 3, "c": "a"},
    lambda: {**CONFIG, "x": 10**400},
    lambda: [values.Unrepresentable()],
    lambda: [values.Incomparable(), values.Incomparable()],
    lambda: (each for each in [1, 2]),
    lambda: (1 / 0 for _ in [1]),
    lambda: iter([]),
    lambda: Evasive,
    lambda: np.array([[0.5, np.nan, np.inf]]),
    lambda: np.array(["a", None], dtype=object),
    lambda: np.zeros((0, 3)),
    lambda: np.zeros((2, 2, 2)),
    lambda: np.datetime64("NaT"),
    lambda: memoryview(b"abc"),
    lambda: "\ud800",
    lambda: ["\ud800"],
    lambda: {"\ud800": 1.0},
    lambda: range(3),
    lambda: {1, 2},
    lambda: Exception("no"),
    lambda: lambda *_: 1 / 0,
)
PLAUSIBLE: dict[str, Callable[[], Any]] = {
    "low": lambda: 0.5,
    "high": lambda: 2,
    "choices": lambda: ["a", "b"],
    "parameters": lambda: X,
    "space": lambda: X,
    "param_space": lambda: X,
    "config": lambda: CONFIG,
    "configs": lambda: [CONFIG],
    "row": lambda: [0.5, 3, 0],
    "rows": lambda: [[0.5, 3, 0]],
    "X": lambda: np.full((2, 3), 0.5),
    "u": lambda: np.array([0.5]),
    "rng": lambda: np.random.default_rng(0),
    "name": lambda: "x",
    "n": lambda: 2,
    "trial": lambda: 0,
    "value": lambda: 0.5,
    "metrics": lambda: {"loss": 0.5},
    "mode": lambda: "min",
    "method": lambda: "random",
    "reason": lambda: "no",
    "result": lambda: {"value": 0.5},
    "trial_id": lambda: "a",
    "metric": lambda: "value",
    "function": lambda: lambda config: 0.5,
    "objective": lambda: _job(),
    "estimator": lambda: _estimator(),
}


def anything(rng: Random) -> Any:
    """Any value, most of them hostile."""
    return rng.choice(HOSTILE)() if rng.random() < 0.6 else values.anything(rng)


def attack(rng: Random, directory: Path) -> Case:
    """Calls of everything that is public; what they leave is a journal that can be read."""
    case = Case("calls", tried=MANY)
    calls = [*_calls(directory)]
    before = Path.cwd()
    os.chdir(directory)  # a name of a file may be any
    try:
        for i in range(MANY):
            name, make = rng.choice(calls)
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                case.faults += [f"{i}: {fault}" for fault in _fault(name, make, rng)]
        close()
    finally:
        os.chdir(before)
    for journal in directory.glob("*.db"):
        try:
            read(journal)
        except RayboError as error:
            case.faults.append(f"a journal was left that cannot be read: {error}")
    return case


def _fault(name: str, make: Callable[[], Any], rng: Random) -> Iterator[str]:
    function = make()
    given, named = _arguments(function, rng)
    words = f"{name}({', '.join([*map(_shown, given), *(f'{key}={_shown(each)}' for key, each in named.items())])})"
    begun = time.monotonic()
    try:
        found = function(*given, **named)
        if hasattr(type(found), "__enter__") and name.startswith("raybo.saving"):
            with found:
                pass
    except (RayboError, raybo.TrialPruned) as error:
        text = str(error)
        if len(text) > LONGEST_LINE or "\n" in text or not text.strip():
            yield f"{words}: no line: {text[:300]!r}"
    except ZeroDivisionError:  # of a callable that was given
        pass
    except ValueError as error:  # scikit-learn's own, by its conventions
        if not name.startswith("RayboSearchCV"):
            yield f"{words}: {last_lines(''.join(traceback.format_exception(error)))}"
    except BaseException:  # whatever else leaves the call is what is looked for
        yield f"{words}: {last_lines(traceback.format_exc())}"
    if time.monotonic() - begun > MOST_SECONDS:
        yield f"{words}: it took {time.monotonic() - begun:.0f} s"


def _arguments(function: Callable[..., Any], rng: Random) -> tuple[list[Any], dict[str, Any]]:
    """Arguments that fit the signature: at least one of them is any value."""
    parameters = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    needed = [each for each in parameters if each.default is each.empty]
    kept = ("watch", "in_process")  # so that a study is quick, and quiet
    others = [each for each in parameters if each.default is not each.empty and each.name not in kept]
    chosen = needed + rng.sample(others, min(len(others), rng.choice([0, 1, 1, 2])))
    hostile = rng.choice(chosen).name if chosen else ""
    given: list[Any] = []
    named: dict[str, Any] = {}
    for each in chosen:
        known = PLAUSIBLE.get(each.name)
        value = anything(rng) if known is None or each.name == hostile or rng.random() < 0.2 else known()
        if each.kind is each.POSITIONAL_ONLY or (each in needed and each.kind is each.POSITIONAL_OR_KEYWORD):
            given.append(value)
        else:
            named[each.name] = value
    return given, named


def _shown(value: Any) -> str:
    try:
        return repr(value)[:80]
    except BaseException:  # some raise
        return f"<{type(value).__name__}>"


# ---- what can be called


def _job() -> raybo.Objective:
    return raybo.objective(space=X, metric="loss", mode="min")(lambda config: config["x"])


def _estimator() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


def _searcher(**more: Any) -> raybo.Searcher:
    searcher = raybo.Searcher(X, "random", "min", seed=0, **more)
    searcher.ask(2)
    searcher.tell(1, 0.5)
    return searcher


def _study(directory: Path) -> raybo.Study:
    path = directory / "kept.db"
    if not path.exists():
        _tune(path)(_job())
    return raybo.load(path)


def _tune(path: Path) -> Callable[..., Any]:
    def tune(objective: Any, **more: Any) -> Any:
        usual = {"trials": 1, "method": "random", "max_minutes": 0.02, "storage": path, "watch": False}
        return raybo.tune(objective, **{**usual, **more, "in_process": True})

    tune.__signature__ = inspect.signature(raybo.tune)  # type: ignore[attr-defined]
    return tune


def _tune_search(**more: Any) -> Any:
    from raybo.integrations.ray_tune import RayboSearch

    search = RayboSearch(X, "loss", "min", "random", **more)
    search.suggest("a")
    return search


def _methods(name: str, make: Callable[[], Any], *methods: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    for method in methods:
        yield f"{name}.{method}", lambda method=method: getattr(make(), method)


def _property(make: Callable[[], Any], name: str) -> Callable[[], Any]:
    return lambda: lambda: getattr(make(), name)


def _calls(directory: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Public calls: each with what makes it, and the object that it belongs to, anew."""
    from raybo.integrations.ray_tune import RayboSearch
    from raybo.integrations.sklearn import RayboSearchCV

    of_raybo = (
        *("Float", "Integer", "Categorical", "Ordinal", "Space", "Searcher"),
        *("load", "shared", "plots", "report", "saving", "checkpoint", "current_trial"),
    )
    for name in of_raybo:
        yield f"raybo.{name}", lambda name=name: getattr(raybo, name)
    for name in ("from_json", "from_tune"):
        yield f"Space.{name}", lambda name=name: getattr(raybo.Space, name)
    yield "Searcher.of", lambda: raybo.Searcher.of
    yield "raybo.objective", lambda: raybo.objective
    yield "raybo.objective(...)", lambda: _decorated
    for parameter in X.values():
        kind = type(parameter).__name__
        yield from _methods(kind, lambda parameter=parameter: parameter, "accept")
    yield from _methods("Ordinal", lambda: raybo.Ordinal([1, 2, 4]), "accept")
    yield from _methods(
        *("Space", lambda: raybo.Space(X), "accept", "encode", "decode", "points", "rows", "snap", "sample", "pack"),
        *("unpack", "values", "open_values", "named_values", "require_allowed", "to_json"),
    )
    yield from _methods(
        *("Searcher", _searcher, "ask", "tell", "fail", "add", "report", "prune", "pause", "promoted", "retry", "plan"),
        *("explain", "expected", "best_for", "hypervolume"),
    )
    yield from _methods("kept Searcher", lambda: _kept(directory), "ask", "tell", "fail", "add")
    yield from _methods("searcher with steps", lambda: _searcher(steps=9, scheduler="asha"), "report", "prune", "tell")
    yield from _methods("searcher with context", lambda: _searcher_in_context(), "ask", "tell", "fail", "best_for")
    study = lambda: _study(directory)  # noqa: E731
    yield from _methods("Study", study, "count", "explain", "expected", "best_for", "hypervolume", "code_of", "files")
    yield from _methods("Study", study, "directory", "to_dataframe")
    yield from _methods("Objective", _job, "with_settings", "wanting", "require_settings")
    for _ in range(4):  # it has the most arguments
        yield "raybo.tune", lambda: _tune(directory / "tuned.db")
    yield "RayboSearch", lambda: RayboSearch
    yield from _methods(
        *("RayboSearch", _tune_search, "suggest", "on_trial_result", "on_trial_complete", "on_pause", "on_unpause"),
        *("set_search_properties", "add_evaluated_point", "add_evaluated_points"),
    )
    yield "RayboSearchCV", lambda: lambda **more: RayboSearchCV(_estimator(), X, **more)
    yield "RayboSearchCV.fit", lambda: _fitted
    for name in ("random_forest", "svm", "mlp", "xgboost", "lightgbm", "logistic_regression", "lora"):
        yield f"raybo.spaces.{name}", lambda name=name: getattr(raybo.spaces, name)


def _decorated(function: Any) -> Any:
    return raybo.objective(space=X)(function)


def close() -> None:
    """Close the searcher that is kept open between two calls."""
    for each in _open:
        each.close()
    _open.clear()


def _kept(directory: Path) -> raybo.Searcher:
    close()
    _open[:] = [raybo.Searcher(X, "random", "min", seed=0, storage=directory / "searched.db")]
    if not _open[0].trials:
        _open[0].ask(2)
    return _open[0]


_open: list[raybo.Searcher] = []  # the last one, which is closed when the next is made


def _searcher_in_context() -> raybo.Searcher:
    searcher = raybo.Searcher(X, "random", "min", seed=0, context={"load": raybo.Float(0, 1)})
    searcher.tell(searcher.ask(), 0.5, {"load": 0.5})
    searcher.ask()
    return searcher


def _fitted(param_space: Any, n_iter: Any = 2, method: Any = "random", where: Any = None, random_state: Any = 0) -> Any:
    from raybo.integrations.sklearn import RayboSearchCV

    search = RayboSearchCV(
        _estimator(), param_space, n_iter=n_iter, method=method, where=where, random_state=random_state, cv=2
    )
    return search.fit(np.arange(16.0).reshape(8, 2), [0, 1] * 4)
