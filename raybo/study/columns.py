"""A study's trials as columns: a row per trial, a column for each thing that is known of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from raybo.common.errors import MissingExtra, install_command
from raybo.record.events import Event, Reported
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.space import Categorical, Float, Integer, Parameter, Space, branches_of, choice_names

if TYPE_CHECKING:
    import pandas

Expected: TypeAlias = Mapping[int, tuple[float, float]]  # by a trial's number, mean and standard deviation

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # how formulas begin, or what spreadsheets skip before one
NOT_FINITE = ("nan", "inf", "-inf")  # as a journal keeps them
NUMBERS = {"number": "int64", "value": "float64", "seconds": "float64", "attempt": "int64"}


def columns_of(
    trials: Sequence[Trial], space: Space, context: Space | None, expected: Expected | None = None
) -> dict[str, list[Any]]:
    """Number, state, value, seconds, attempt and reason of each trial, its parameters, contexts and further metrics.

    What a model expects of the trials is in `expected` and `expected_sd`, unless that is None.

    If the job has cheap versions, `fidelity` is the number of rows, folds or the like at which a trial ran.

    With several metrics or constraints each number that is asked for has a column of its name, and the value is that of
    the first metric; `violations` says, as JSON, by how much constraints are broken, in studies where they are.

    A parameter whose name is taken has `config.` before it, a context `context.`, a metric `metric.`. What is not
    known, or not open in a trial's configuration, is None; a choice that holds parameters is given by its name, and a
    metric that is a list or a dict is JSON.
    """
    table: dict[str, list[Any]] = {
        "number": [trial.number for trial in trials],
        "state": [str(trial.state) for trial in trials],
        "value": [trial.value for trial in trials],
        "seconds": [trial.seconds for trial in trials],
        "attempt": [trial.attempt for trial in trials],
        "reason": [trial.reason for trial in trials],
    }
    if any(trial.fidelity for trial in trials):
        table["fidelity"] = _fidelities(trials)
    if any(trial.violations for trial in trials):
        table["violations"] = _violations(trials)
    table |= _expected(trials, expected)
    for name, _, values in _parameters(trials, space, context, table):
        table[name] = values
    for name, values in _metrics(trials, table):
        table[name] = values
    return table


def columns_of_reports(events: Sequence[Event]) -> dict[str, list[Any]]:
    """Trial, step, value, seconds and attempt of each report, in the journal's order, and what else was said with it.

    A metric whose name is taken has `metric.` before it. Steps that were repeated after a loss are left out.
    """
    told = [event for event in events if isinstance(event, Reported) and not event.repeated]
    table: dict[str, list[Any]] = {"trial": [event.trial for event in told]}
    for name in ("step", "value", "seconds", "attempt"):
        table[name] = [getattr(event, name) for event in told]
    for name, values in _named_apart([event.metrics or {} for event in told], table):
        table[name] = values
    return table


def as_cell(value: Any) -> Any:
    """A value for a CSV file: an apostrophe before a text that a spreadsheet would take for a formula."""
    text = value if value is None or isinstance(value, (bool, int, float)) else str(value)
    return f"'{text}" if isinstance(text, str) and _is_formula(text) else value


def from_cell(cell: str) -> str:
    """The text that `as_cell` made the cell of."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _is_formula(text: str) -> bool:
    """Return True if a spreadsheet would take it for a formula; -inf is a number to whatever else reads the file."""
    return text.startswith(FORMULAS) and text != "-inf"


def to_dataframe(
    trials: Sequence[Trial], space: Space, context: Space | None, expected: Expected | None = None
) -> pandas.DataFrame:
    """Return a DataFrame with typed columns: numbers as numbers, choices and states as categories.

    Raises:
        MissingExtra: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra(f"to_dataframe needs pandas: {install_command('pandas')}") from None
    table = columns_of(trials, space, context, expected)
    frame = {name: pd.Series(table[name], dtype=dtype) for name, dtype in NUMBERS.items()}
    frame["state"] = pd.Series(pd.Categorical(table["state"], categories=[str(state) for state in State]))
    frame["reason"] = pd.Series(table["reason"], dtype="str")
    if "fidelity" in table:
        frame["fidelity"] = pd.Series(_fidelities(trials), dtype="int64")
    if "violations" in table:
        frame["violations"] = pd.Series(table["violations"], dtype=object)
    frame |= {name: pd.Series(values, dtype="float64") for name, values in _expected(trials, expected).items()}
    for name, parameter, values in _parameters(trials, space, context, {name: [] for name in frame}):
        if isinstance(parameter, Integer):
            whole = "Int64" if None in values else "int64"
            has_room = -(2**63) <= parameter.low and parameter.high < 2**63
            frame[name] = pd.Series(values, dtype=whole if has_room else object)
        elif isinstance(parameter, Float):
            frame[name] = pd.Series(values, dtype="float64")
        elif all(isinstance(choice, str) for choice in parameter.choices):
            frame[name] = pd.Series(pd.Categorical(values, categories=list(parameter.choices)))
        else:  # choices of any kind, None among them, which a column of categories cannot hold
            frame[name] = pd.Series(values, dtype=object)
    for name, values in _metrics(trials, {name: [] for name in frame}):
        is_number = all(value is None or type(value) in (int, float) or value in NOT_FINITE for value in values)
        frame[name] = pd.Series(values, dtype="float64" if is_number else object)
    return pd.DataFrame({name: frame[name] for name in table})


def _fidelities(trials: Sequence[Trial]) -> list[int]:
    return [at for trial in trials for at in trial.fidelity.values()]


def _violations(trials: Sequence[Trial]) -> list[str | None]:
    return [json.dumps(dict(trial.violations)) if trial.violations else None for trial in trials]


def _expected(trials: Sequence[Trial], expected: Expected | None) -> dict[str, list[Any]]:
    """Return columns with the expected value of each trial and its standard deviation; none without a model."""
    if expected is None:
        return {}
    pairs = [expected.get(trial.number, (None, None)) for trial in trials]
    return {"expected": [mean for mean, _ in pairs], "expected_sd": [sd for _, sd in pairs]}


def _metrics(trials: Sequence[Trial], taken: dict[str, list[Any]]) -> list[tuple[str, list[Any]]]:
    """Names that are free, and values, of what else trials returned, in the order in which it was first returned."""
    return _named_apart([{**trial.values, **(trial.details.get("metrics") or {})} for trial in trials], taken)


def _named_apart(
    returned: Sequence[Mapping[str, Any]], taken: Mapping[str, Sequence[Any]]
) -> list[tuple[str, list[Any]]]:
    found: list[tuple[str, list[Any]]] = []
    names = set(taken)
    for metric in dict.fromkeys(name for metrics in returned for name in metrics):
        name = metric
        while name in names:
            name = f"metric.{name}"
        names.add(name)
        values = [metrics.get(metric) for metrics in returned]
        found.append((name, [json.dumps(value) if isinstance(value, (list, dict)) else value for value in values]))
    return found


def _parameters(
    trials: Sequence[Trial], space: Space, context: Space | None, taken: dict[str, list[Any]]
) -> list[tuple[str, Parameter, list[Any]]]:
    """Names that are free, kinds and values of parameters and contexts."""
    found: list[tuple[str, Parameter, list[Any]]] = []
    names = set(taken)
    for prefix, part in (("config", space), ("context", context)):
        if part is None:
            continue
        configs = [trial.config if prefix == "config" else trial.context for trial in trials]
        rows = [[None] * part.d if config is None else part.values(config) for config in configs]
        for i, (name, parameter) in enumerate(zip(part.names, part.parameters.values(), strict=True)):
            while name in names:  # a parameter may have the name of another column
                name = f"{prefix}.{name}"
            names.add(name)
            values = [row[i] for row in rows]
            if isinstance(parameter, Categorical) and branches_of(parameter):
                told = Categorical(choice_names(parameter.choices))
                values = [v if v is None else told.choices[parameter.position(v, name)] for v in values]
                parameter = told
            found.append((name, parameter, values))
    return found
