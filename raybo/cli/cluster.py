"""Commands for studies that run elsewhere: as jobs of a Ray cluster, or left on one with --detach."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybo.cli.arguments import SEARCH, TARGET, all_of, default_storage, pairs, read_list
from raybo.cli.console import conclude, make_console, say

if TYPE_CHECKING:
    from raybo.integrations.jobs import Cluster, Job
    from raybo.integrations.travel import Arrival

DASHBOARD = click.option(
    "--address",
    default="http://127.0.0.1:8265",  # where `ray dashboard` and an SSH tunnel put a cluster's dashboard
    envvar="RAY_API_SERVER_ADDRESS",  # Ray's own
    show_default=True,
    show_envvar=True,
    metavar="http://HOST:8265",
    help="The dashboard of the cluster's head.",
)
ANY_ADDRESS = click.option(
    "--address",
    default="auto",
    show_default=True,
    metavar="auto|HOST:PORT|http://HOST:8265",
    help="The cluster it runs on; for a job, its dashboard.",
)
JOB = click.argument("name", metavar="JOB")


@click.command()
@TARGET
@all_of(SEARCH)
@DASHBOARD
@click.option(
    "--storage",
    metavar="FILE.db",
    help="The journal on the head, absolute or from ~.  [default: ~/raybo/USER/DIRECTORY/FILE.db]",
)
@click.option(
    "-o",
    "--output",
    type=Path,
    metavar="FILE.db",
    help="The journal here: sent along where it exists, up to date at the end.  [default: FILE's name with .db]",
)
@click.option("--exclude", multiple=True, metavar="PATTERN", help="What is not sent, as in .gitignore; repeatable.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Show its progress, and fetch its journal.")
def submit(
    target: str,
    address: str,
    storage: str | None,
    output: Path | None,
    exclude: tuple[str, ...],
    follow: bool,
    known_from: Path | None,
    enqueue: Path | None,
    **search: Any,
) -> None:
    """Tune the objective of a Python file on a Ray cluster, as a job of it.

    The working directory is sent, without what .gitignore names. A journal that is here is continued there, and at the
    end it has what the cluster found. Ctrl-C leaves the job running.
    """
    from raybo.integrations.jobs import Cluster

    pairs(search["settings"], "--set")
    pairs(search["options"], "--option")
    pairs(search["scheduler_options"], "--scheduler-option")
    if enqueue is not None:
        read_list(enqueue)
    for form, where in pairs(search["logs"], "--log").items():
        if "://" not in where and not os.path.isabs(where):
            raise click.UsageError(
                f"--log {form}={where}: what a job writes in its own directory is lost; use a URI, or "
                "an absolute path on the head"
            )
    artifacts = search["artifacts"]
    if artifacts is not None and "://" not in artifacts and not os.path.isabs(artifacts):
        raise click.UsageError(
            f"--artifacts {artifacts}: what a job keeps in its own directory is lost; use a URI, or an absolute path "
            "of a directory that all nodes share"
        )
    here = output or default_storage(target)
    cluster = Cluster(address)
    job = cluster.submit(
        target,
        _spelled(search),
        directory=Path.cwd(),
        exclude=exclude,
        storage=storage,
        study=here,
        known_from=known_from,
        enqueue=enqueue,
    )
    say(f"{job.name} begins; its journal is {job.storage} on the cluster's head", err=search["quiet"])
    if follow:
        _follow(cluster, job.name, here)
    else:
        say(f"raybo attach {job.name} --address {address} follows it, raybo fetch brings its journal here")


@click.command()
@DASHBOARD
def jobs(address: str) -> None:
    """List the studies that were submitted to a cluster."""
    from raybo.integrations.jobs import Cluster
    from raybo.reporting.fitted import text_table

    def state(job: Job) -> str:
        return job.state.lower() + (f" ({job.exit_code})" if job.exit_code else "")

    rows = [(job.name, state(job), job.began, job.target, job.storage) for job in Cluster(address).jobs()]
    make_console().print(text_table(("job", "state", "began", "tunes", "journal on the head"), rows))


@click.command()
@JOB
@DASHBOARD
@click.option(
    "-o", "--output", type=Path, metavar="FILE.db", help="The journal here.  [default: the name it has there, here]"
)
def fetch(name: str, address: str, output: Path | None) -> None:
    """Bring the journal of a job here; it may be running.

    A journal that is here already is only added to: it must have gone the same way so far, and keeps what it has more.
    """
    from raybo.integrations.jobs import Cluster

    cluster = Cluster(address)
    path = output or Path(Path(cluster.job(name).storage).name)
    say(_told(cluster.fetch(name, path), name))


@click.command()
@click.argument("name", metavar="NAME")
@ANY_ADDRESS
def attach(name: str, address: str) -> None:
    """Follow a study that was begun with --detach, or a job. Ctrl-C leaves it running.

    NAME is its journal's, without `.db`; or the job's.
    """
    if _is_dashboard(address):
        from raybo.integrations.jobs import Cluster

        cluster = Cluster(address)
        _follow(cluster, cluster.job(name).name, None)
        return
    from raybo.engine.follow import attach as run
    from raybo.engine.progress import Display

    console = make_console()
    try:
        with Display(console) as display:
            study = run(name, address, display)
    except KeyboardInterrupt:
        say(f"{name} goes on; raybo stop {name} ends it", err=True)
        raise
    if study is not None and study.path is not None:
        conclude(console, study, study.path)


@click.command()
@click.argument("name", metavar="NAME")
@ANY_ADDRESS
def stop(name: str, address: str) -> None:
    """End a study that was begun with --detach, or a job; its journal keeps what has finished, and can be continued."""
    if _is_dashboard(address):
        from raybo.integrations.jobs import Cluster

        job = Cluster(address).stop(name)
        say(f"Stopped; the study is in {job.storage} on the head; raybo fetch {name} brings it here")
        return
    from raybo.engine.follow import stop as run

    study = run(name, address)
    where = "" if study is None else f"; the study is in {study.path}"
    say(f"Stopped{where}")


# ---- what runs on the head


@click.command("job-run", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("storage")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def job_run(storage: str, arguments: tuple[str, ...]) -> None:
    """Run `raybo tune` as a job, on the journal STORAGE, with what was sent along."""
    from raybo.cli.tuning import tune
    from raybo.integrations.travel import unload
    from raybo.journal import exists

    path = Path(storage).expanduser()
    was_here = exists(path)
    with tempfile.TemporaryDirectory() as scratch:
        arrival, more = unload(path, Path(scratch))
        if was_here and (arrival is None or arrival.ahead):
            sent = "none was sent" if arrival is None else f"it has {arrival.ahead} events more than the one sent"
            say(f"continues {path}, which was here already ({sent}); another --storage begins another study")
        tune.main([*arguments, *more, "--storage", str(path)], prog_name="raybo tune", standalone_mode=False)


@click.command("job-send", hidden=True)
@click.argument("storage")
def job_send(storage: str) -> None:
    """Print the journal STORAGE for `raybo fetch`."""
    from raybo.integrations.travel import lines_of, pack

    for line in lines_of(pack(Path(storage).expanduser())):
        say(line)


# ---- ours


def _follow(cluster: Cluster, name: str, here: Path | None) -> None:
    """Show a job until it ends, bring its journal to `here`, and leave with its exit code."""
    from raybo.errors import RayError
    from raybo.integrations.jobs import failure

    try:
        job = cluster.follow(name, lambda piece: say(piece, nl=False))
    except KeyboardInterrupt:
        say(f"{name} goes on; raybo stop {name} --address {cluster.address} ends it", err=True)
        raise
    if here is not None and _has_run(job):
        say(_told(cluster.fetch(name, here), name))
    if job.state == "STOPPED":
        say(f"{name} was stopped", err=True)
        sys.exit(130)
    if job.exit_code:
        say(f"Error: {name} failed: {failure(job)}", err=True)
        sys.exit(job.exit_code)
    if job.state == "FAILED":
        raise RayError(f"{name} failed: {failure(job)}")


def _has_run(job: Job) -> bool:
    """Whether it may have a journal: not where Ray could not begin it, nor where it was wrong use."""
    return job.state == "STOPPED" or job.exit_code in (0, 1, 130)


def _told(arrival: Arrival, name: str) -> str:
    if arrival.ahead:
        return f"{arrival.path} stays: it has all of {name}, and {arrival.ahead} events more"
    return f"{arrival.path} has all of {name}: {arrival.added} events are new"


def _is_dashboard(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def _spelled(search: dict[str, Any]) -> list[str]:
    """The options of a search as they are typed."""
    parameters = {p.name: p.opts[-1] for p in submit.params if isinstance(p, click.Option)}
    typed = []
    for name, value in search.items():
        for one in value if isinstance(value, tuple) else (value,):
            if one is True:
                typed.append(parameters[name])
            elif one is not None and one is not False:
                typed += [parameters[name], str(one)]
    return typed
