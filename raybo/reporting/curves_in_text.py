"""What a trial has reported, in text: how far it has got, its curve as a line of blocks, the verdict on it."""

from __future__ import annotations

from collections.abc import Sequence

from raybo.record.events import State
from raybo.record.trial import Trial
from raybo.study.study import Study

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # blocks of a line, at most


def reports_anything(study: Study) -> bool:
    """Whether any trial has reported a step."""
    return bool(study.history.reports_in_order)


def steps_of(study: Study, trial: Trial) -> str:
    """How far a trial is, `7/52`; empty where it has reported nothing."""
    if not trial.step:
        return ""
    return f"{trial.step}" if study.steps is None else f"{trial.step}/{study.steps}"


def spark_line(values: Sequence[float], width: int = WIDTH) -> str:
    """Values as a line of blocks, the higher the larger; where there are too many, a block shows the last of several.

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
    """Why it was ended or has to wait, and by which rule; empty where neither holds."""
    if trial.state not in (State.PRUNED, State.PAUSED):
        return ""
    return f"{trial.state} after step {trial.step} by {trial.details.get('rule', 'the user')}: {trial.reason}"
