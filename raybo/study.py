"""A study as its users see it: the trials, the best of them, and what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from raybo import journal
from raybo.errors import MissingExtra
from raybo.history import Event, Kind, State, Trial, advance
from raybo.searcher import Mode, best_of
from raybo.space import Space

if TYPE_CHECKING:
    import pandas

    from raybo.journal import Description


class Study:
    """What a journal holds, read-only. Made by `raybo.tune` and `raybo.load`.

    Attributes:
        trials: every trial, in the order of asking.
        planned: how many trials the study means to run; None where nobody said.
        description: objective, metric, mode, method, options, seed.
        space: the search space.
        path: the journal; None where it was not kept.
    """

    def __init__(
        self, description: Description, events: Sequence[Event], path: Path | None = None, space: Space | None = None
    ) -> None:
        self.description = description
        self.events = list(events)
        self.path = path
        self.space = Space.from_json(description.space) if space is None else space
        self.mode: Mode = cast(Mode, description.mode)
        self.trials: list[Trial] = []
        self.planned: int | None = None
        for event in self.events:
            if event.kind is Kind.PLANNED:
                self.planned = int(event.data["trials"])
            advance(self.trials, event, self.space)

    @property
    def best(self) -> Trial:
        """The best finished trial, the earliest of equals.

        Raises:
            TrialError: no trial has finished yet.
        """
        return best_of(self.trials, self.mode)

    def count(self, *states: State) -> int:
        """How many trials are in any of the given states."""
        return sum(trial.state in states for trial in self.trials)

    def to_dataframe(self) -> pandas.DataFrame:
        """A row a trial: number, state, value, seconds, attempt, reason, and a column a parameter.

        A parameter whose name is taken has `config.` before it.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("to_dataframe needs pandas: pip install pandas") from None
        rows: list[dict[str, Any]] = []
        for trial in self.trials:
            row: dict[str, Any] = {
                "number": trial.number,
                "state": str(trial.state),
                "value": trial.value,
                "seconds": trial.seconds,
                "attempt": trial.attempt,
                "reason": trial.reason,
            }
            for path, name in zip(self.space.parameters, self.space.names, strict=True):
                value: Any = trial.config
                for key in path:
                    value = value[key]
                while name in row:  # a parameter may be called like another column
                    name = f"config.{name}"
                row[name] = value
            rows.append(row)
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        description = self.description
        done = self.count(State.FINISHED)
        text = f"Study of {description.objective}: {done} of {self.planned or len(self.trials)} trials finished"
        return f"{text}, best {description.metric} {self.best.value:.6g} (trial {self.best.number})" if done else text


def load(path: Path | str) -> Study:
    """The study of a journal, read-only; it may be running meanwhile.

    Raises:
        JournalError: there is no such file, or it is not a journal that this version can read.
    """
    description, events = journal.read(path)
    return Study(description, events, Path(path))
