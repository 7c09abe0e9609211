"""The front of a study with several metrics, and how its trials fare against its constraints, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from raybo.common.arguments import is_number
from raybo.record.events import Kind
from raybo.record.goals import is_broken
from raybo.record.states import State
from raybo.record.trial import Trial
from raybo.reporting.formatting import named
from raybo.reporting.table_layout import Named, add_column
from raybo.study.study import Study

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
        table.add_row(str(trial.number), *values, Named(named(dict(study.space.named_values(trial.config))), None))
    left = [Text(f"and {len(front) - len(shown)} more between them", "dim")] if len(shown) < len(front) else []
    return Group(title, table, *left)


def spread(front: list[Trial]) -> list[Trial]:
    """At most `LONGEST` trials of a front, both ends among them."""
    if len(front) <= LONGEST:
        return front
    return [front[round(i * (len(front) - 1) / (LONGEST - 1))] for i in range(LONGEST)]


def constraints_line(study: Study) -> list[RenderableType]:
    """Return how many finished trials violate each constraint; nothing if none is declared.

    Of one that holds at every step, pruned trials count too that have reported its number: breaking it ends a trial.
    """
    if not study.goals.constraints:
        return []
    done = {trial.number for trial in study.trials if trial.state is State.FINISHED}
    texts = []
    for constraint in study.goals.constraints:
        broken = {number for number in done if constraint.name in study.trials[number].violations}
        counted = set(done)
        if constraint.at_every_step:
            for number, value in _reported(study, constraint.name):
                counted.add(number)
                broken |= {number} if is_broken(constraint.margin(value)) else set()
        if not counted:
            continue
        how_many = f"broken by {len(broken)} of {len(counted)}" if broken else "satisfied by all"
        texts.append(f"{constraint}: {how_many}")
    return [Text(f"constraints: {'; '.join(texts)}", "dim")] if texts else []


def _reported(study: Study, name: str) -> Iterator[tuple[int, float]]:
    """Return the values of a metric that pruned trials have reported, with the trial of each."""
    for event in study.events:
        if event.kind is Kind.REPORTED and study.trials[cast(int, event.trial)].state is State.PRUNED:
            values = {**event.data.get("metrics", {}), study.goals.names[0]: event.data["value"]}
            if is_number(value := values.get(name)):
                yield cast(int, event.trial), value
