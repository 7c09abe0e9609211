"""A trial's reports in text: its progress, its learning curve as a line of blocks, the verdict on it."""

from __future__ import annotations

from collections.abc import Sequence

from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.study.study import Study

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # blocks of a line, at most


def reports_anything(study: Study) -> bool:
    """True if any trial has reported a step."""
    return bool(study.history.reports_in_order)


def steps_of(study: Study, trial: Trial) -> str:
    """Return a trial's progress, `7/52`; empty if it has reported nothing."""
    if not trial.step:
        return ""
    return f"{trial.step}" if study.steps is None else f"{trial.step}/{study.steps}"


def spark_line(values: Sequence[float], width: int = WIDTH) -> str:
    """Return values as a line of blocks, the higher the larger; if there are too many, a block is the last of several.

    Where all are the same, so are the blocks.
    """
    if not values:
        return ""
    count = min(width, len(values))
    chosen = [values[(i + 1) * len(values) // count - 1] for i in range(count)]
    low, high = min(chosen), max(chosen)
    if low == high:
        return BLOCKS[0] * count
    # halves first: the difference of two floats may be beyond every float
    return "".join(BLOCKS[int((len(BLOCKS) - 1) * ((v / 2 - low / 2) / (high / 2 - low / 2)) + 0.5)] for v in chosen)


def verdict_in_words(trial: Trial) -> str:
    """Return why it was ended or has to wait, and by which rule; empty if neither holds."""
    if trial.state not in (State.PRUNED, State.PAUSED):
        return ""
    if trial.fidelity:
        return trial.reason
    return f"{trial.state} after step {trial.step} by {trial.details.get('rule', 'the user')}: {trial.reason}"
