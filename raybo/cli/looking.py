"""Commands that look at a study that is kept: show, plot, export; and what methods there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from raybo.cli.console import make_console, say
from raybo.error_text import in_words
from raybo.errors import RayboError
from raybo.files import STANDARD_OUTPUT, is_stream

if TYPE_CHECKING:
    from raybo.study import Study


@click.command()
@click.argument("journal", type=Path, metavar="FILE.db")
@click.option("--last", default=20, show_default=True, metavar="N", help="How many of the last trials to list.")
@click.option("--all", "everything", is_flag=True, help="List every trial.")
@click.option("--trial", type=int, metavar="N", help="Show everything about one trial instead.")
@click.option("--watch", is_flag=True, help="Follow a study that is running, until it ends; Ctrl-C only stops looking.")
@click.option("--replay", "again", is_flag=True, help="Propose every trial again from the journal alone, and compare.")
@click.option(
    "--context", multiple=True, metavar="NAME=VALUE", help="Show the best trial for this context instead; repeatable."
)
def show(
    journal: Path, last: int, everything: bool, trial: int | None, watch: bool, again: bool, context: tuple[str, ...]
) -> None:
    """Show a study: its trials, why they were tried, and the best one. It may be running meanwhile."""
    from raybo.reporting.tables import best_view, study_view
    from raybo.reporting.trial_view import trial_view
    from raybo.reporting.watch import watch_study
    from raybo.space import read_text
    from raybo.study import load

    if again:
        _replay(load(journal))
    elif trial is not None:
        make_console().print(trial_view(load(journal), trial))
    elif context:
        study = load(journal)
        told = [text.partition("=")[::2] for text in context]
        make_console().print(best_view(study, {name: read_text(study.context, name, value) for name, value in told}))
    elif watch:
        watch_study(journal, make_console(), max(1, last))
    else:
        study = load(journal)
        make_console().print(study_view(study, len(study.trials) if everything else max(1, last)))


@click.command()
@click.argument("journal", type=Path, metavar="FILE.db")
@click.option(
    "-o",
    "--output",
    type=Path,
    metavar="FILE",
    help="A page (.html, or - for standard output) or a picture.  [default: FILE.html]",
)
def plot(journal: Path, output: Path | None) -> None:
    """Draw a study: a page with all its figures (.html), or a picture for a paper (.png, .svg, .pdf)."""
    from raybo.reporting import draw
    from raybo.study import load

    path = output or Path(f"{journal.stem}.html")
    draw(load(journal), path)
    say(f"Wrote {path}", err=str(path) == STANDARD_OUTPUT)


@click.command()
@click.argument("journal", type=Path, metavar="FILE.db")
@click.option(
    "--to",
    required=True,
    metavar="FORM",
    help="csv, reports (a CSV of every step), json, optuna (a journal file for optuna-dashboard), tensorboard (a "
    "directory), mlflow (a tracking URI).",
)
@click.option(
    "-o", "--output", required=True, metavar="WHERE", help="The file, directory or URI to write; - is standard output."
)
@click.option("--raw", is_flag=True, help="csv: no apostrophe before texts that a spreadsheet would take for formulas.")
@click.option("--follow", is_flag=True, help="Keep it up to date until the study ends; Ctrl-C only stops that.")
def export(journal: Path, to: str, output: str, raw: bool, follow: bool) -> None:
    """Write a study in a form that other programs read: once, or for as long as it runs."""
    from raybo.integrations.export import exporter
    from raybo.reporting.watch import follow as keep_following
    from raybo.study import load

    study = load(journal)
    write = exporter(to, output, raw=raw)
    if follow:
        study = keep_following(journal, write)
    else:
        try:
            write(study)
        except RayboError:
            raise
        except Exception as error:  # whatever another program's package raises
            raise RayboError(f"{output}: it cannot be written as {to}: {in_words(error)}") from error
    say(f"Wrote {len(study.trials)} trials to {output}", err=is_stream(output))


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
def methods(names: tuple[str, ...]) -> None:
    """List the methods: what each does, and its options."""
    from raybo import methods as registry
    from raybo.reporting.tables import options_table

    for name in names:
        registry.load(name)
    make_console().print(options_table(names or list(registry.METHODS), registry.describe))


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
def schedulers(names: tuple[str, ...]) -> None:
    """List the schedulers, which end trials early that report as they go: what each does, and its options."""
    from raybo import schedulers as registry
    from raybo.reporting.tables import options_table

    for name in names:
        registry.load(name)
    make_console().print(options_table(names or list(registry.SCHEDULERS), registry.describe))


def _replay(study: Study) -> None:
    from raybo.errors import TrialError
    from raybo.replay import replay, replay_verdicts

    replayed = list(replay(study))
    different = [again for again in replayed if again.differs]
    for again in different:
        say(f"trial {again.trial}: proposed again, its {' and its '.join(again.differs)} differ")
    if different:
        raise TrialError(f"{len(different)} of {len(replayed)} proposals differ; was another version or machine used?")
    judged = list(replay_verdicts(study))
    wrong = [again for again in judged if again.verdict != again.recorded]
    for verdict in wrong:
        say(
            f"trial {verdict.trial}, step {verdict.step}: judged again, it is {verdict.verdict}, not {verdict.recorded}"
        )
    if wrong:
        raise TrialError(f"{len(wrong)} of {len(judged)} verdicts differ; was another version used?")
    verdicts = f" and {len(judged)} verdicts given" if judged else ""
    say(f"{len(replayed)} proposals made{verdicts} again from the journal alone: every one is the same")
