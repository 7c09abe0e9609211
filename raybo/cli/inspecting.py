"""Commands that look at a study: show, plot, export; and what methods and schedulers there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybo.cli.arguments import (
    JOURNAL,
    JSON,
    METHOD_NAMES,
    PATH,
    SCHEDULER_NAMES,
    at_most_one,
    complete_formats,
    named_values_of,
)
from raybo.cli.console import make_console, say, say_json
from raybo.common.errors import RayboError
from raybo.common.files import STANDARD_OUTPUT, is_stream
from raybo.common.messages import counted, in_words

if TYPE_CHECKING:
    from raybo.study.study import Study

MODES = (
    "trial",
    "context",
    "watch",
    "again",
    "best",
    "priors",
)  # exclusive options of `raybo show`; without any it shows the table


@click.command()
@JOURNAL
@click.option(
    "--last", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="List the last N trials."
)
@click.option(
    "--best", type=click.IntRange(min=1), metavar="N", help="List the best N trials, or N of the Pareto front."
)
@click.option("--all", "everything", is_flag=True, help="List every trial.")
@click.option("--trial", type=int, metavar="N", help="Show everything about one trial.")
@click.option(
    "--context", multiple=True, metavar="NAME=VALUE", help="Show the best trial for this context; repeatable."
)
@click.option("--watch", is_flag=True, help="Follow a running study until it ends; Ctrl-C only stops watching.")
@click.option(
    "--replay", "again", is_flag=True, help="Check that every proposal can be recomputed from the journal alone."
)
@click.option("--priors", is_flag=True, help="Show what earlier studies know, and how much each counts now.")
@JSON
@click.pass_context
def show(
    ctx: click.Context,
    journal: Path,
    last: int,
    best: int | None,
    everything: bool,
    trial: int | None,
    context: tuple[str, ...],
    watch: bool,
    again: bool,
    priors: bool,
    as_json: bool,
) -> None:
    """Show a study: its trials and the best one.

    Parameters that vary have columns if the window is wide enough, and so has the reason for each proposal. The study
    may be running.

    \b
        raybo show job.db
        raybo show job.db --best 20
        raybo show job.db --trial 7
        raybo show job.db --watch
        raybo show job.db --json > job.json

    --json prints one object, as `raybo export --to json` does: study (what is tuned, and how), planned (the number of
    trials), ended (why, or empty), best, best_expected and recommended (numbers, or null), front (numbers, with several
    metrics), notes (at, trial and text, where any were taken) and trials. It holds every trial unless --last is given;
    with --trial, that trial alone; with --context, the best one for it; with --priors, a list of objects with the keys
    study, weight, trials, taken, metric, knows and only_there. The keys of a trial: number, state, value, config,
    context, seconds, suggest_seconds, suggest_processor_seconds, attempt, reason (why it did not finish, or empty),
    explanation (why it was proposed), tags, details; values and violations if there are several metrics or
    constraints; expected and expected_sd if a model has an expectation of it; reports and checkpoint if it has
    reported steps.
    """
    from raybo.integrations.study_json import study_as_json, trial_as_json
    from raybo.reporting.priors_view import priors_in_use, priors_view
    from raybo.reporting.tables import best_view, study_view
    from raybo.reporting.trial_view import trial_view
    from raybo.reporting.watch import watch_study
    from raybo.space import read_text
    from raybo.study.study import load

    _refuse_what_excludes_another(ctx)
    texts = named_values_of(journal, context, "--context")
    if watch:
        watch_study(journal, make_console(), last)
        return
    study = load(journal)
    if again:
        _replay(study)
    elif trial is not None:
        view = trial_view(study, trial)
        if as_json:
            say_json(trial_as_json(study, study.trials[trial]))
        else:
            make_console().print(view)
    elif priors:
        if as_json:
            say_json([each.facts for each in priors_in_use(study)])
        else:
            make_console().print(priors_view(study))
    elif context:
        values = {name: read_text(study.context, name, value) for name, value in texts.items()}
        if as_json:
            say_json(trial_as_json(study, study.best_for(values)))
        else:
            make_console().print(best_view(study, values))
    elif as_json:
        is_limited = ctx.get_parameter_source("last") is click.core.ParameterSource.COMMANDLINE
        say_json(study_as_json(study, last if is_limited else None))
    else:
        listed = len(study.trials) if everything else best or last
        make_console().print(study_view(study, listed, best=best is not None))


def _refuse_what_excludes_another(ctx: click.Context) -> None:
    at_most_one(ctx, *MODES)
    for name in ("last", *MODES):
        at_most_one(ctx, name, "everything")
    for name in ("trial", "context", "again", "best", "priors"):
        at_most_one(ctx, name, "last")
    for name in ("watch", "again", "best"):
        at_most_one(ctx, name, "as_json")


@click.command()
@JOURNAL
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    help="The file to write: .html, .png, .svg or .pdf; - writes HTML to standard output.  [default: FILE.html]",
)
def plot(journal: Path, output: Path | None) -> None:
    """Draw a study as a page or a picture.

    An .html file is a page with all figures that needs no network; .png, .svg and .pdf are pictures for papers.

    \b
        raybo plot job.db
        raybo plot job.db -o job.pdf
    """
    from raybo.reporting import draw
    from raybo.study.study import load

    path = output or Path(f"{journal.stem}.html")
    draw(load(journal), path)
    if str(path) == STANDARD_OUTPUT:
        say("Wrote the page to standard output", err=True)
    else:
        say(f"Wrote {path}")


@click.command()
@JOURNAL
@click.option(
    "--to",
    required=True,
    metavar="FORMAT",
    shell_complete=complete_formats,
    help="csv (a row per trial), reports (a CSV with a row per reported step), json, optuna (a journal file for "
    "optuna-dashboard), tensorboard (a directory), mlflow (a tracking URI) or wandb (a project of Weights & Biases).",
)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="WHERE",
    help="The file, directory or URI to write to; - is standard output.",
)
@click.option(
    "--raw", is_flag=True, help="In CSV, put no apostrophe before text that a spreadsheet would take for a formula."
)
@click.option("--follow", is_flag=True, help="Keep it up to date until the study ends; Ctrl-C only stops the updates.")
def export(journal: Path, to: str, output: str, raw: bool, follow: bool) -> None:
    """Write a study in a format that other programs read.

    \b
        raybo export job.db --to csv -o job.csv
        raybo export job.db --to json -o -
        raybo export job.db --to optuna -o job.log --follow
    """
    from raybo.integrations.export import exporter
    from raybo.reporting.watch import follow as keep_following
    from raybo.study.study import load

    study = load(journal)
    write = exporter(to, output, raw=raw)

    def written_out(study: Study) -> None:
        try:
            write(study)
        except RayboError:
            raise
        except Exception as error:  # whatever another program's package raises
            raise RayboError(f"{output}: cannot be written as {to}: {in_words(error)}") from error

    if follow:
        study = keep_following(journal, written_out)
    else:
        written_out(study)
    where = "standard output" if output == STANDARD_OUTPUT else output
    steps = sum(len(trial.reports) for trial in study.trials)
    written = counted(steps, "step") if to == "reports" else counted(len(study.trials), "trial")
    say(f"Wrote {written} to {where}", err=is_stream(output))


@click.command()
@METHOD_NAMES
@JSON
def methods(names: tuple[str, ...], as_json: bool) -> None:
    """List the methods and their options.

    \b
        raybo methods
        raybo methods gp-ucb turbo
        raybo methods --json

    --json prints a list of objects with the keys name, description and options, a list of objects with the keys name,
    default and meaning.
    """
    from raybo import methods as registry

    _list(names or tuple(registry.METHODS), registry, as_json)


@click.command()
@SCHEDULER_NAMES
@JSON
def schedulers(names: tuple[str, ...], as_json: bool) -> None:
    """List the schedulers and their options.

    A scheduler stops unpromising trials early, if the objective reports intermediate results.

    \b
        raybo schedulers
        raybo schedulers asha
        raybo schedulers --json

    --json prints a list of objects with the keys name, description and options, a list of objects with the keys name,
    default and meaning.
    """
    from raybo import schedulers as registry

    _list(names or tuple(registry.SCHEDULERS), registry, as_json)


def _list(names: tuple[str, ...], registry: Any, as_json: bool) -> None:
    """Print what methods or schedulers of these names do, and their options."""
    from raybo.reporting.tables import options_table

    for name in names:
        registry.load(name)  # an unknown name is refused before anything is printed
    describe: Callable[[str], tuple[str, list[tuple[str, Any, str]]]] = registry.describe
    if not as_json:
        make_console().print(options_table(names, describe))
        return
    found = []
    for name in names:
        description, options = describe(name)
        listed = [{"name": option, "default": default, "meaning": meaning} for option, default, meaning in options]
        found.append({"name": name, "description": " ".join(description.split()), "options": listed})
    say_json(found)


def _replay(study: Study) -> None:
    from raybo.common.errors import TrialError
    from raybo.study.replay import replay, replay_verdicts

    replayed = list(replay(study))
    different = [again for again in replayed if again.differs and not again.is_rounding]
    for again in different:
        point = f"its point is {again.distance:.2g} of an axis away" if again.distance else "its point is the same"
        tags = f", and its tags differ: {', '.join(again.tags)}" if again.tags else ""
        say(f"trial {again.trial}: proposed again, {point}{tags}")
    if different:
        raise TrialError(f"{len(different)} of {len(replayed)} proposals differ; was another version or machine used?")
    judged = list(replay_verdicts(study))
    wrong = [again for again in judged if again.verdict != again.recorded]
    for verdict in wrong:
        say(f"trial {verdict.trial}, step {verdict.step}: the verdict is now {verdict.verdict}, was {verdict.recorded}")
    if wrong:
        raise TrialError(f"{len(wrong)} of {len(judged)} verdicts differ; was another version used?")
    verdicts = f" and {counted(len(judged), 'verdict')}" if judged else ""
    rounded = sum(again.is_rounding for again in replayed)
    same = f"all are identical, {rounded} of them but for rounding" if rounded else "all are identical"
    say(f"{counted(len(replayed), 'proposal')}{verdicts} recomputed from the journal alone: {same}")
