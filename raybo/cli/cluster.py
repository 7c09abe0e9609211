"""Commands for studies that run elsewhere: as jobs of a Ray cluster, or left on one with --detach."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from raybo.cli.arguments import (
    DASHBOARD_VARIABLE,
    FILE,
    JSON,
    PATH,
    SEARCH,
    all_of,
    complete_files,
    default_storage,
    logs_of,
    pairs,
    read_list,
)
from raybo.cli.conclusion import conclude
from raybo.cli.console import make_console, say, say_json
from raybo.common.messages import counted

if TYPE_CHECKING:
    from raybo.integrations.jobs import Cluster, Job
    from raybo.integrations.transfer import Arrival

TUNNELLED = "http://127.0.0.1:8265"  # where `ray dashboard` and an SSH tunnel put a cluster's dashboard
DASHBOARD = click.option(
    "--address",
    default=TUNNELLED,
    envvar=DASHBOARD_VARIABLE,
    show_default=True,
    show_envvar=True,
    metavar="http://HOST:8265",
    help="The cluster, by the address of its dashboard.",
)
ANY_ADDRESS = click.option(
    "--address",
    envvar=DASHBOARD_VARIABLE,
    metavar="auto|HOST:PORT|http://HOST:8265",
    help="The cluster that it runs on: auto or HOST:PORT for a detached study; for a job, the address of its "
    f"dashboard.  [env var: {DASHBOARD_VARIABLE}, of a dashboard; default: auto]",
)
BAD_USAGE = 2  # the exit code of a command that was misused, and so left no journal
STOP_SECONDS = 60.0  # wait for a study on this machine to record its stopped trials
JOB = click.argument("name", metavar="JOB")


@click.command()
@FILE
@all_of(SEARCH)
@DASHBOARD
@click.option(
    "--storage",
    metavar="FILE.db",
    help="The study's journal on the head node, absolute or starting with ~/.  [default: "
    "~/raybo/USER/DIRECTORY/FILE.db]",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE.db",
    help="The local copy of the journal: sent along if it exists, and updated at the end.  [default: FILE.db]",
)
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Files not to send, as in .gitignore; repeatable.")
@click.option(
    "--follow/--no-follow",
    default=True,
    show_default=True,
    help="Show the job's progress, and fetch its journal at the end.",
)
@JSON
def submit(
    file: str,
    address: str,
    storage: str | None,
    output: Path | None,
    exclude: tuple[str, ...],
    follow: bool,
    as_json: bool,
    known_from: Path | None,
    enqueue: Path | None,
    priors: tuple[str, ...],
    **search: Any,
) -> None:
    """Tune an objective on a Ray cluster, as a Ray job.

    The working directory is sent, except for what .gitignore excludes. A local journal is continued there, and
    updated at the end with what the cluster found. Ctrl-C leaves the job running.

    \b
        raybo submit job.py --trials 200
        raybo submit job.py --address http://10.0.0.1:8265 --no-follow

    --json does not follow the job; it prints an object with the keys of one of `raybo jobs --json`.
    """
    from raybo.integrations.jobs import Cluster

    pairs(search["settings"], "--set")
    pairs(search["options"], "--option")
    pairs(search["scheduler_options"], "--scheduler-option")
    if enqueue is not None:
        read_list(enqueue)
    for form, where in logs_of(search["logs"]):
        if "://" not in where and not os.path.isabs(where):
            raise click.UsageError(
                f"--log {form}={where}: files in a job's own directory are lost; give a URI, or an absolute path on "
                "the head node"
            )
    artifacts = search["artifacts"]
    if artifacts is not None and "://" not in artifacts and not os.path.isabs(artifacts):
        raise click.UsageError(
            f"--artifacts {artifacts}: files in a job's own directory are lost; give a URI, or the absolute path of a "
            "directory that all nodes share"
        )
    here = output or default_storage(file)
    if not here.parent.is_dir():
        raise click.UsageError(f"-o {here}: the directory {here.parent} does not exist; make it first")
    earlier = [_journals_of(prior, here) for prior in priors]
    cluster = Cluster(address)
    job = cluster.submit(
        file,
        _spelled(search),
        directory=Path.cwd(),
        exclude=exclude,
        storage=storage,
        study=here,
        known_from=known_from,
        enqueue=enqueue,
        priors=earlier,
    )
    if as_json:
        say_json(_facts(job))
        return
    say(f"{job.name} submitted; its journal is {job.storage} on the head node", err=search["quiet"])
    if follow:
        _follow(cluster, job.name, here)
    else:
        at = f"{quote(job.name)} --address {address}"
        into = "" if output is None else f" -o {quote(str(output))}"
        say(f"raybo attach {at} follows it, raybo fetch {at}{into} copies its journal here")


@click.command()
@DASHBOARD
@JSON
def jobs(address: str, as_json: bool) -> None:
    """List the studies submitted to a cluster.

    \b
        raybo jobs
        raybo jobs --address http://10.0.0.1:8265 --json

    --json prints a list of objects, oldest first, with the keys name, state (PENDING, RUNNING, SUCCEEDED, FAILED or
    STOPPED), exit_code, began (UTC), target, storage (the journal on the head node) and message.
    """
    from raybo.integrations.jobs import Cluster
    from raybo.reporting.table_layout import text_table

    def state(job: Job) -> str:
        return job.state.lower() + (f" ({job.exit_code})" if job.exit_code else "")

    found = Cluster(address).jobs()
    if as_json:
        say_json([_facts(job) for job in found])
        return
    if not found:
        say(f"No studies were submitted to {address}")
        return
    rows = [(job.name, state(job), job.began, job.target, job.storage) for job in found]
    make_console().print(text_table(("job", "state", "started", "tunes", "journal on the head node"), rows))


@click.command()
@JOB
@DASHBOARD
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE.db",
    help="The local copy of the journal.  [default: in the current directory, under its own name]",
)
@JSON
def fetch(name: str, address: str, output: Path | None, as_json: bool) -> None:
    """Copy a job's journal to this machine.

    The job may be running. An existing local copy is only added to: both must hold the same events as far as the
    shorter one goes, and a local copy that is ahead stays as it is.

    \b
        raybo fetch job-3f2a1c
        raybo fetch job-3f2a1c --address http://10.0.0.1:8265 -o job.db

    --json prints an object with the keys path, events (how many the journal has now), added (how many of them are new)
    and ahead (how many did not come from the job).
    """
    from raybo.integrations.jobs import Cluster

    cluster = Cluster(address)
    path = output or Path(Path(cluster.job(name).storage).name)
    arrival = cluster.fetch(name, path)
    if as_json:
        say_json({**asdict(arrival), "path": str(arrival.path)})
    else:
        say(_arrived(arrival, name))


@click.command()
@click.argument("name", metavar="NAME")
@ANY_ADDRESS
@click.pass_context
def attach(ctx: click.Context, name: str, address: str | None) -> None:
    """Follow a detached study, or a job.

    NAME is the name of the job, or of the study's journal without `.db`. Ctrl-C leaves it running. To follow a study
    through its journal, use `raybo show FILE.db --watch`.

    \b
        raybo attach job
        raybo attach job-3f2a1c --address http://10.0.0.1:8265
    """
    if address is not None and _is_dashboard(ctx, address):
        from raybo.integrations.jobs import Cluster

        cluster = Cluster(address)
        _follow(cluster, cluster.job(name).name, None)
        return
    from raybo.engine.follow import attach as run
    from raybo.engine.progress import Display

    console = make_console()
    try:
        with Display(console) as display, _without_address(address):
            ended = run(name, address or "auto", display)
    except KeyboardInterrupt:
        at = "" if address is None else f" --address {address}"
        say(f"{name} keeps running; raybo stop {name}{at} stops it", err=True)
        raise
    if ended.study is None:
        say(f"{name} has ended; {_there(ended.path)}")
    else:
        conclude(console, ended.study, ended.path)


@click.command()
@click.argument("name", metavar="FILE.db|NAME", shell_complete=complete_files)
@ANY_ADDRESS
@JSON
@click.pass_context
def stop(ctx: click.Context, name: str, address: str | None, as_json: bool) -> None:
    """Stop a running study, or a job.

    FILE.db is the journal of a study that is running on this machine, however it was started. NAME is the name of a
    job, or of a detached study on a cluster (its journal's name without `.db`). Running trials are stopped; what has
    finished is kept, and the study can be continued.

    \b
        raybo stop job.db
        raybo stop job --address auto
        raybo stop job-3f2a1c --address http://10.0.0.1:8265

    --json prints an object with the keys journal (its path where it runs) and has_ended: false if it was asked to stop,
    and has not within a minute.
    """
    is_typed = ctx.get_parameter_source("address") is ParameterSource.COMMANDLINE
    if name.endswith(".db") or (not is_typed and os.path.isfile(name)):
        if is_typed:
            raise click.UsageError(f"{name} is a journal on this machine, and needs no --address; leave it out")
        has_ended = _stop_here(Path(name))
        if as_json:
            say_json({"journal": name, "has_ended": has_ended})
        elif has_ended:
            say(f"Stopped; the study is in {name}")
        else:
            say(f"Asked to stop; it has not ended yet: raybo show {name} --watch follows it")
        return
    if address is not None and _is_dashboard(ctx, address):
        from raybo.integrations.jobs import Cluster

        job = Cluster(address).stop(name)
        if as_json:
            say_json({"journal": job.storage, "has_ended": True})
            return
        fetch = f"raybo fetch {name} --address {address}"
        say(f"Stopped; the study is in {job.storage} on the head node; {fetch} copies it here")
        return
    from raybo.engine.follow import stop as run

    with _without_address(address):
        ended = run(name, address or "auto")
    if as_json:
        say_json({"journal": str(ended.path), "has_ended": True})
        return
    say(f"Stopped; {_there(ended.path) if ended.study is None else f'the study is in {ended.path}'}")


def _there(path: Path) -> str:
    """Say where the journal of a study is that was started on another machine, and which command shows it."""
    return f"its journal is {path} on the machine where it was started: raybo show {quote(str(path))} shows it there"


def _stop_here(path: Path) -> bool:
    """Ask a study that runs on this machine to stop, and wait until it has; return False if that takes too long."""
    from raybo.journal import in_use, requests, require_exists

    require_exists(path)
    requests.ask_to_stop(path)
    give_up = time.monotonic() + STOP_SECONDS
    while in_use(path):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.1)
    return True


# ---- ours


def _follow(cluster: Cluster, name: str, here: Path | None) -> None:
    """Show a job until it ends, bring its journal to `here` or say where it is, and leave with its exit code."""
    from raybo.common.errors import RayboError, RayError
    from raybo.integrations.jobs import failure

    try:
        job = cluster.follow(name, lambda piece: say(piece, nl=False))
    except KeyboardInterrupt:
        say(f"{name} keeps running; raybo stop {name} --address {cluster.address} stops it", err=True)
        raise
    if here is not None and job.exit_code != BAD_USAGE:
        try:
            say(_arrived(cluster.fetch(name, here), name))
        except RayboError as error:
            if _has_run(job) and not job.exit_code:
                raise
            if _has_run(job):  # why it failed comes last
                say(str(error), err=True)
    elif _has_run(job):
        fetch = f"raybo fetch {name} --address {cluster.address}"
        say(f"its journal is {job.storage} on the head node; {fetch} copies it here")
    if job.state == "STOPPED":
        say(f"{name} was stopped", err=True)
        sys.exit(130)
    if job.exit_code:
        say(f"Error: {name} failed: {failure(job)}", err=True)
        sys.exit(job.exit_code)
    if job.state == "FAILED":
        raise RayError(f"{name} failed: {failure(job)}")


def _journals_of(prior: str, here: Path) -> tuple[list[Path], bool]:
    """Return the journals that a `--prior` names, and whether they are many; JournalError if there are none."""
    from raybo.common.errors import JournalError
    from raybo.searcher.priors import AUTO, journals_named

    paths, are_many = journals_named(prior, here)
    if not paths and prior != AUTO:
        raise JournalError(f"--prior {prior}: no journal there")
    return paths, are_many


def _facts(job: Job) -> dict[str, Any]:
    """Return a job as JSON shows it."""
    return {**asdict(job), "began": job.began or None}


def _has_run(job: Job) -> bool:
    """Return True if a job has a journal, also a killed one; not after wrong use, nor if it may never have begun."""
    return job.state == "STOPPED" or job.exit_code not in (None, BAD_USAGE)


def _arrived(arrival: Arrival, name: str) -> str:
    """Say what a fetched journal now holds."""
    if arrival.ahead:
        return f"{arrival.path} is unchanged: it is up to date with {name}, and has {arrival.ahead} more events"
    return f"{arrival.path} is up to date with {name}: {counted(arrival.added, 'new event')}"


@contextlib.contextmanager
def _without_address(address: str | None) -> Iterator[None]:
    """Say how a job is reached where no address was given and no cluster is found."""
    from raybo.common.errors import RayError

    try:
        yield
    except RayError as error:
        if address is None and "cannot join" in str(error):
            raise RayError(f"{error}; for a job, give --address {TUNNELLED}") from error
        raise


def _is_dashboard(ctx: click.Context, address: str) -> bool:
    """Return True if an address is that of a dashboard, which has jobs, and not that of a cluster's own Ray."""
    is_of_variable = ctx.get_parameter_source("address") is ParameterSource.ENVIRONMENT
    return is_of_variable or address.startswith(("http://", "https://"))


def _spelled(search: dict[str, Any]) -> list[str]:
    """Return the options of a search as they are typed."""
    parameters = {p.name: p.opts[-1] for p in submit.params if isinstance(p, click.Option)}
    typed = []
    for name, value in search.items():
        for one in value if isinstance(value, tuple) else (value,):
            if one is True:
                typed.append(parameters[name])
            elif one is not None and one is not False:
                typed += [parameters[name], str(one)]
    return typed
