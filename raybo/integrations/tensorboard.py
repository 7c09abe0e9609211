"""A study in TensorBoard: values and times over trials as scalars, and every configuration with its value in HPARAMS.

How the study ended, and its rules, are under TEXT. What a model expects of each trial is written once it has ended.

A trial that reports has its curve over steps, and those of its other metrics, in a run of its own, `trial-NUMBER`.

The events are written by tensorboardX, which needs no deep-learning framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from raybo.errors import MissingExtra, install_command
from raybo.events import FAILURES, Event, Kind, Trial
from raybo.integrations.export import Exporter
from raybo.study import Study


def tensorboard_exporter(destination: str) -> Exporter:
    """A directory for `tensorboard --logdir`; each trial is written once, when it has ended.

    Raises:
        MissingExtra: tensorboardX is not installed.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise MissingExtra(f"TensorBoard's files need tensorboardX: {install_command('tensorboard')}") from None
    # what an earlier export left there is taken back, as all of it follows
    writer = SummaryWriter(destination, purge_step=0)
    seen = 0
    best: float | None = None
    told: dict[str, str] = {}

    def export(study: Study) -> None:
        nonlocal seen, best
        for event in study.events:
            if event.number > seen and event.kind in (Kind.TOLD, Kind.FAILED, Kind.PRUNED):
                assert event.trial is not None
                trial = study.trials[event.trial]
                if trial.feasible and trial.value is not None and study.goals.k == 1:
                    best = trial.value if best is None else study.goal.best_of([best, trial.value])
                _write(writer, study, trial, event, best)
                if trial.step:
                    reports = [e for e in study.events if e.trial == trial.number and e.report is not None]
                    with SummaryWriter(str(Path(destination, f"trial-{trial.number}")), purge_step=0) as curve:
                        _write_curve(curve, study, reports)
        seen = study.events[-1].number if study.events else 0
        _write_summary(writer, study, told)
        writer.flush()

    return export


def _write_summary(writer: Any, study: Study, told: dict[str, str]) -> None:
    """Its rules and how it ended, as texts; of one that has ended what a model expects of its trials, as scalars.

    Args:
        told: the texts that are written already, by name; what is written is put there.
    """
    texts = {"ended": study.ended, "where": "; ".join(rule.text for rule in study.space.rules)}
    if texts["ended"] and texts["ended"] != told.get("ended"):
        for number, (mean, sd) in (study.expectations or {}).items():
            writer.add_scalar("expected", mean, number)
            writer.add_scalar("expected_sd", sd, number)
    for name, text in texts.items():
        if text != told.get(name, ""):
            writer.add_text(f"study/{name}", text, len(study.trials))
            told[name] = text


def _write_curve(writer: Any, study: Study, reports: Sequence[Event]) -> None:
    """What one trial has reported, over its steps."""
    for event in reports:
        at = datetime.fromisoformat(event.at).timestamp() if event.at else None
        for name, value in {**(event.data.get("metrics") or {}), study.description.metric: event.data["value"]}.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                writer.add_scalar(name, value, event.data["step"], walltime=at)


def _write(writer: Any, study: Study, trial: Trial, event: Event, best: float | None) -> None:
    at = datetime.fromisoformat(event.at).timestamp() if event.at else None
    failed = sum(t.state in FAILURES for t in study.trials[: trial.number + 1])
    scalars = {
        "best": best,
        "seconds": trial.seconds,
        "suggest_seconds": trial.suggest_seconds,
        "failed": failed,
        study.description.metric: trial.value,  # last: the user's name wins
    }
    for name, value in scalars.items():
        if value is not None:
            writer.add_scalar(name, value, trial.number, walltime=at)
    if trial.value is not None:
        values = {
            n: v if isinstance(v, (bool, float, str)) or (isinstance(v, int) and abs(v) < 2**63) else repr(v)
            for n, v in study.space.open_values(trial.config)
        }
        metric = {f"hparam/{study.description.metric}": trial.value}
        writer.add_hparams(values, metric, name=f"trial-{trial.number}", global_step=trial.number)
