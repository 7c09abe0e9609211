"""Commands that list studies: those of a directory or a cluster, and those that can be priors of a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from raybo.cli.arguments import JSON, at_most_one, default_storage
from raybo.cli.console import make_console, say, say_json

if TYPE_CHECKING:
    from raybo.reporting.studies import Progress
    from raybo.searcher.wanted import Wanted


@click.command()
@click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", metavar="[DIR]"
)
@click.option(
    "--address", metavar="auto|HOST:PORT", help="List the detached studies on this Ray cluster instead of a directory."
)
@JSON
@click.pass_context
def studies(ctx: click.Context, directory: Path, address: str | None, as_json: bool) -> None:
    """List the studies in a directory, or on a cluster.

    DIR is searched for journals, by default the current directory. The list shows which studies are running, where,
    and how far each one has got.

    \b
        raybo studies
        raybo studies results/ --json
        raybo studies --address 10.0.0.1:6379

    --json prints a list of objects with the keys name, running_on (null unless it is running), done, planned, failed
    (numbers of trials, null where unknown), best (text), method and problem (what is wrong with the journal, or null).
    """
    from raybo.reporting.studies import HEADINGS, studies_in
    from raybo.reporting.table_layout import text_table

    at_most_one(ctx, "directory", "address")
    found = studies_in(directory) if address is None else _on_cluster(address)
    if as_json:
        say_json([study.facts for study in found])
        return
    if not found:
        say(f"No studies in {directory}" if address is None else f"No detached studies on the cluster at {address}")
        return
    make_console().print(text_table(HEADINGS, [study.cells for study in found]))


def _on_cluster(address: str) -> list[Progress]:
    from raybo.engine.detached_studies import studies_on
    from raybo.reporting.studies import Progress, on_the_front

    rows = []
    for study in studies_on(address):
        plan, status = study.plan, study.status
        best = ""
        if status is not None and status.front is not None:
            best = on_the_front(status.front[0])
        elif status is not None and status.best is not None:
            best = f"{status.metric} {status.best[1]:.6g} (trial {status.best[0]})"
        rows.append(
            Progress(
                study.name,
                where="the cluster" if plan is None else str(plan.path),
                done=None if status is None else status.ended,
                planned=None if status is None else status.planned,
                failed=None if status is None else status.failed,
                best=best,
                method="" if plan is None else plan.description.method,
                problem="it does not answer" if plan is None else "",
            )
        )
    return rows


@click.command()
@click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", metavar="[DIR]"
)
@click.option(
    "--for",
    "target",
    required=True,
    metavar="FILE[:NAME]|FILE.db",
    help="The job that is to be tuned: its file or module, as for `raybo tune`, or a study's journal.",
)
@JSON
def priors(directory: Path, target: str, as_json: bool) -> None:
    """List the studies in a directory that can serve as priors for a job.

    `raybo tune --prior DIR` begins a study with those that fit; of the others the list says why they do not, and
    which is the job's own journal.

    \b
        raybo priors results/ --for job.py
        raybo priors --for job.db --json

    --json prints a list of objects with the keys name, knows (the parameters in common), trials, metric, newest (UTC,
    the time of the last event), and problem (why it cannot be used, or null); the others are null if there is one.
    """
    from raybo.reporting.studies import PRIOR_HEADINGS, prior_candidates
    from raybo.reporting.table_layout import text_table

    found = prior_candidates(directory, _wanted(target))
    if as_json:
        say_json([each.facts for each in found])
    elif not found:
        say(f"No studies in {directory}")
    else:
        make_console().print(text_table(PRIOR_HEADINGS, [each.cells for each in found]))


def _wanted(target: str) -> Wanted:
    """Return what the study of a job, or of a journal, wants of its priors."""
    from raybo.job.loading import load_objective
    from raybo.searcher.wanted import Wanted
    from raybo.study.study import load

    if target.endswith(".db"):
        return Wanted.by(load(target).description, Path(target))
    objective = load_objective(target)
    return Wanted(objective.space, objective.goals, objective.context, default_storage(target))
