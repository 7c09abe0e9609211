"""Shared by the callbacks of trainers: which number is reported, and how a trainer stops if its trial is pruned."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raybo.common.errors import ObjectiveError
from raybo.common.messages import nearest
from raybo.job.current_trial import current_trial
from raybo.job.reports import TrialPruned, is_received, report, saving


class TrainerReports:
    """Reports of a trainer that stops when it is asked to.

    A pruned trial does not break off the trainer: `report` returns True, the callback asks its trainer to stop, and
    `end` raises `TrialPruned` once it has.

    Attributes:
        pruned: what ends the trial; None while it may continue.
    """

    def __init__(self, metric: str, name: str | None) -> None:
        self.metric, self.name = metric, metric if name is None else name
        self.pruned: TrialPruned | None = None

    def report(
        self, found: Mapping[str, Any], step: int | None, save: Callable[[Path], object] | None, where: str
    ) -> bool:
        """Report a step, with a checkpoint if there is a `save`; return True if the trainer has to stop.

        Of a trial of several processes the first one's checkpoint is kept. The others save too, as trainers may do it
        together. Outside a trial nothing is saved.

        Raises:
            ObjectiveError: `found`, the trainer's numbers, lacks the metric; `where` says what the trainer calls them.
            TrialPruned: the trainer was asked to stop before, and has continued.
        """
        if self.pruned is not None:
            raise self.pruned
        value = number_called(self.metric, found, where)
        if save is not None and is_received():
            if is_first():
                with saving() as directory:
                    save(directory)
            else:
                with tempfile.TemporaryDirectory(prefix="raybo-checkpoint-") as unused:
                    save(Path(unused))
        try:
            report({self.name: value}, step=step)
        except TrialPruned as pruned:
            self.pruned = pruned
        return self.pruned is not None

    def end(self) -> None:
        """Raise `TrialPruned` if the trial has to end; the trainer has stopped."""
        if self.pruned is not None:
            pruned, self.pruned = self.pruned, None
            raise pruned


def is_first() -> bool:
    """True unless this is another than the first of a trial's processes."""
    trial = current_trial()
    return trial is None or trial.rank == 0


def keeps_checkpoints() -> bool:
    """True if a checkpoint that is saved here is kept: in a trial's first process."""
    return is_received() and is_first()


def number_called(metric: str, found: Mapping[str, Any], where: str) -> float:
    """Return a trainer's number. Raises ObjectiveError if there is none of the name."""
    if metric not in found:
        raise ObjectiveError(f"Report: {where} has no {metric!r}{nearest(metric, list(found))}")
    return float(found[metric])
