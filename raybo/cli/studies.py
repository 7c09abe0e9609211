"""The command that lists studies: those of a directory, and those that run on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from raybo.cli.console import make_console

if TYPE_CHECKING:
    from raybo.reporting.studies import Progress


@click.command()
@click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", metavar="[DIR]"
)
@click.option(
    "--address", metavar="auto|HOST:PORT", help="List what runs detached on this Ray cluster instead of a directory."
)
def studies(directory: Path, address: str | None) -> None:
    """List the studies whose journals are in a directory: which run, where, and how far each of them is."""
    from raybo.reporting.fitted import text_table
    from raybo.reporting.studies import HEADINGS, studies_in

    found = studies_in(directory) if address is None else _on_cluster(address)
    make_console().print(text_table(HEADINGS, [study.cells for study in found]))


def _on_cluster(address: str) -> list[Progress]:
    from raybo.engine.studies import studies_on
    from raybo.reporting.studies import Progress

    rows = []
    for study in studies_on(address):
        plan, status = study.plan, study.status
        best = "" if status is None or status.best is None else f"{status.metric} {status.best[1]:.6g}"
        rows.append(
            Progress(
                study.name,
                where="the cluster" if plan is None else str(plan.path),
                done=None if status is None else status.finished + status.failed,
                planned=None if status is None else status.planned,
                failed=None if status is None else status.failed,
                best=best if status is None or status.best is None else f"{best} (trial {status.best[0]})",
                method="it does not answer" if plan is None else plan.description.method,
            )
        )
    return rows
