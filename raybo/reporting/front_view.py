"""The front of a study with several metrics, and how its trials stand with the constraints, for a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from raybo.events import State, Trial
from raybo.reporting.fitted import Named, add_column
from raybo.reporting.words import named
from raybo.study import Study

LONGEST = 20  # rows; of a longer front those that are spread evenly over it


def front_view(study: Study, *, one_line: bool = False) -> Group:
    """The front as a table, in the order of the first metric, with its hypervolume; of one metric nothing."""
    front = study.front
    title = Text.assemble(
        "front ",
        (f"{len(front)} trial{'' if len(front) == 1 else 's'}", "bold green"),
        f", hypervolume {study.hypervolume():.6g}",
    )
    reference = ", ".join(f"{name} {value:.4g}" for name, value in study.reference().items())
    title.append(f" above {reference}" if reference else "", "dim")
    if one_line or not front:
        return Group(title)
    shown = spread(front)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    add_column(table, "trial", (str(trial.number) for trial in shown), right=True)
    for name in study.goals.needed:
        add_column(table, name, [f"{trial.values[name]:.6g}" for trial in shown], right=True)
    table.add_column("configuration", ratio=1)
    for trial in shown:
        values = [f"{trial.values[name]:.6g}" for name in study.goals.needed]
        table.add_row(str(trial.number), *values, Named(named(dict(study.space.open_values(trial.config))), None))
    left = [Text(f"and {len(front) - len(shown)} more between them", "dim")] if len(shown) < len(front) else []
    return Group(title, table, *left)


def spread(front: list[Trial]) -> list[Trial]:
    """At most `LONGEST` trials of a front, both ends among them."""
    if len(front) <= LONGEST:
        return front
    return [front[round(i * (len(front) - 1) / (LONGEST - 1))] for i in range(LONGEST)]


def constraints_line(study: Study) -> list[RenderableType]:
    """How many finished trials break each constraint; nothing where none is declared."""
    if not study.goals.constraints:
        return []
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    told = []
    for constraint in study.goals.constraints:
        broken = sum(constraint.name in trial.violations for trial in done)
        told.append(f"{constraint}: broken by {broken} of {len(done)}" if broken else f"{constraint}: satisfied by all")
    return [Text(f"constraints: {'; '.join(told)}", "dim")] if done else []
