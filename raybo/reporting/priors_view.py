"""Shows what earlier studies know of a study, and how much each of them counts now."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from raybo.common.errors import TrialError
from raybo.methods.parts.earlier_studies import expectations, weights
from raybo.methods.parts.prior_points import hold, know_too_little, same_job
from raybo.record.origin import Origin
from raybo.reporting.table_layout import text_table
from raybo.study.study import Study

HEADINGS = ("earlier study", "weight", "trials", "taken", "metric", "parameters in common", "only there")

HOLD = "the priors hold: the best of these was better than the median of the design"
SAME_JOB = "{}: the very same job, as it gave a value of these too; methods see its results as this study's own"
DO_NOT_HOLD = (
    "the priors mislead: the best of these was no better than the median of the design, and no more follows from them"
)
TOO_LITTLE = "but each lacks more than a quarter of the parameters, so methods are not shown what this trial gave"


@dataclass(frozen=True)
class PriorInUse:
    """One earlier study.

    Attributes:
        study: its name.
        weight: how much it counts now, by its agreement with the results so far; all sum to 1, unless all are 0.
        trials, taken: how many it had, and how many of them are kept here.
        metric: what it wanted.
        knows: names of the parameters that both studies have.
        only_there: names of those that only it had.
    """

    study: str
    weight: float
    trials: int
    taken: int
    metric: str
    knows: list[str]
    only_there: list[str]

    @property
    def facts(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @property
    def cells(self) -> tuple[str, ...]:
        """As a row of a table."""
        counts = f"{self.weight:.2f}", f"{self.trials:,}", f"{self.taken:,}"
        return self.study, *counts, self.metric, ", ".join(self.knows), ", ".join(self.only_there)


def priors_in_use(study: Study) -> list[PriorInUse]:
    """Return a study's priors, in the order in which they were given."""
    say = weights(study.history, expectations(study.history)).tolist()
    names = study.space.names
    return [
        PriorInUse(
            study=prior.study,
            weight=round(weight, 4),
            trials=prior.counts.get("trials", 0),
            taken=len(prior.scores),
            metric=f"{prior.counts.get('mode', '')} {prior.counts.get('metric', '')}".strip(),
            knows=[names[axis] for axis in prior.axes],
            only_there=list(prior.counts.get("only_there", ())),
        )
        for prior, weight in zip(study.history.priors, say, strict=True)
    ]


def priors_view(study: Study) -> RenderableType:
    """Return the output of `raybo show --priors`; TrialError if the study has none."""
    found = priors_in_use(study)
    if not found:
        raise TrialError("the study has no priors; `raybo tune ... --prior OLD.db` begins one with them")
    first = [trial for trial in study.trials if trial.origin is Origin.PRIOR]
    lines = [Text(f"  trial {trial.number}: {study.explain(trial)}") for trial in first]
    if (same := same_job(study.history)) is not None:
        lines.append(Text(f"  {SAME_JOB.format(same.study)}"))
    elif (held := hold(study.history)) is not None:
        lines.append(Text(f"  {HOLD if held else DO_NOT_HOLD}"))
        if held and know_too_little(study.history):
            lines.append(Text(f"  {TOO_LITTLE}"))
    return Group(text_table(HEADINGS, [each.cells for each in found]), *lines)
