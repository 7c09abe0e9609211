"""Studies as Ray jobs: submitted over HTTP to the dashboard of a cluster's head, followed, stopped, and fetched back.

A job is `raybo tune` on the head, in a copy of the working directory and with a copy of this raybo, so that both ends
have the same version. Its journal is a file on the head, outside that copy, because Ray removes the copy in the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import secrets
import shlex
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import raybo
from raybo import journal
from raybo.common.errors import JournalError, JournalInUse, MethodError, ObjectiveError, RayError
from raybo.integrations.package import zipped
from raybo.integrations.ray_dashboard import job_client, translated
from raybo.integrations.transfer import Arrival, load_up, text_of, unpack
from raybo.job.loading import study_name

PYTHON = "python3"  # the head's: the first on the PATH of the shell that ran `ray start`
POLL_SECONDS = 0.2
SETTLE_SECONDS = 15.0  # for a job's state to follow the end of its log
FETCH_SECONDS = 300.0
AGENT_SECONDS = 60.0  # for the agent of a head that has just been started, which begins its jobs
STOP_SECONDS = 30  # for a study to record what it stops, after which Ray kills it; its journal is whole all the same

NO_AGENT = "No available agent"  # what Ray's head says meanwhile

_TARGET, _STORAGE = "raybo_target", "raybo_storage"  # keys of a job's metadata
_BEGINS = "Running entrypoint for job "  # Ray's line in the log before the job's own
_ENDED = ("SUCCEEDED", "FAILED", "STOPPED")


@dataclass(frozen=True)
class Job:
    """A study that was submitted.

    Attributes:
        name: what it is called on its cluster.
        state: PENDING, RUNNING, SUCCEEDED, FAILED or STOPPED.
        target: FILE[:NAME] that it tunes.
        storage: its journal on the head.
        began: when it began, UTC in ISO 8601; empty before.
        exit_code: that of `raybo tune`; None until it ends, and if it was stopped or could not begin.
        message: what Ray says about its state.
    """

    name: str
    state: str
    target: str
    storage: str
    began: str
    exit_code: int | None
    message: str

    @property
    def has_ended(self) -> bool:
        """True if it has ended."""
        return self.state in _ENDED


class Cluster:
    """A cluster's jobs, by the address of its dashboard.

    Args:
        address: http://HOST:8265.
    Raises:
        RayError: nothing answers there, it is not a Ray dashboard, it refuses the token, or it runs another version of
            Ray; every method raises it if the cluster no longer answers.
        MissingExtra: Ray's job client is not installed.
    """

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self._client = job_client(self.address)

    def submit(
        self,
        target: str,
        arguments: Sequence[str],
        *,
        directory: Path,
        exclude: Sequence[str] = (),
        storage: str | None = None,
        study: Path | None = None,
        known_from: Path | None = None,
        enqueue: Path | None = None,
        priors: Sequence[tuple[Sequence[Path], bool]] = (),
    ) -> Job:
        """Begin a study on the cluster.

        Args:
            target: FILE[:NAME], below `directory`.
            arguments: those of `raybo tune`, except those that say where things are.
            directory: what to send: the job's working directory is a copy of it.
            exclude: what not to send, as patterns like those in .gitignore.
            storage: the journal on the head, absolute or from ~/; None for `storage_on_head`.
            study: a journal here that the job is to continue, if it exists.
            known_from, enqueue: files here for `--from` and `--enqueue`.
            priors: for each `--prior` the journals here that it names, as `journals_named` returns them.
        Raises:
            ObjectiveError: the file is not there, or not below the directory.
            RayError: the directory is too large to be sent, or .gitignore, .rayignore or `exclude` names the file.
            MethodError: `storage` is neither absolute nor from ~/.
            JournalInUse: a process here is writing `study`.
            JournalError: `study`, `known_from` or a prior cannot be read.
        """
        file, colon, name = target.partition(":")
        inside = _below(directory, file)
        storage = storage or storage_on_head(directory, target)
        if not storage.startswith(("/", "~/")):
            raise MethodError(f"the journal's path on the head node must be absolute or start with ~/, got {storage!r}")
        if study is not None and journal.in_use(study):
            raise JournalInUse(f"{study}: another process is writing it; wait for it to end, or name another with -o")
        command = ["job-run", storage, f"{inside}{colon}{name}", *arguments]
        with tempfile.TemporaryDirectory() as scratch:
            here = study if study is not None and journal.exists(study) else None
            luggage = load_up(Path(scratch), here, known_from, enqueue, priors)
            environment = {
                **_with_raybo(*([] if luggage is None else [luggage])),
                "working_dir": str(zipped(directory, exclude, Path(scratch, "working_dir.zip"), Path(inside))),
                # `stop` is to be like Ctrl-C, after which the study records what it stops
                "env_vars": {"RAY_JOB_STOP_SIGNAL": "SIGINT", "RAY_JOB_STOP_WAIT_TIME_S": str(STOP_SECONDS)},
            }
            with translated(self.address):
                job = self._submitted(
                    entrypoint=f"exec {PYTHON} -m raybo.cli {shlex.join(command)}",
                    submission_id=f"{Path(storage).stem}-{secrets.token_hex(3)}",
                    runtime_env=environment,
                    metadata={_TARGET: target, _STORAGE: storage},
                )
        return self.job(job)

    def jobs(self) -> list[Job]:
        """The studies that were submitted to the cluster, oldest first."""
        with translated(self.address):
            found = [_job(info) for info in self._client.list_jobs() if _STORAGE in (info.metadata or {})]
        return sorted(found, key=lambda job: (not job.began, job.began))  # one that is yet to begin is the newest

    def job(self, name: str) -> Job:
        """The job of that name; RayError if there is none."""
        known = {job.name: job for job in self.jobs()}
        if name not in known:
            there = f"available: {', '.join(known)}" if known else "no study was submitted there"
            raise RayError(f"no job {name} at {self.address}; {there}")
        return known[name]

    def follow(self, name: str, show: Callable[[str], object]) -> Job:
        """Show what a job says, from its beginning to its end, and return it then; Ctrl-C leaves it running.

        Args:
            show: called with pieces of its log.
        """
        with translated(self.address, f"; {name} goes on, `raybo attach {name} --address {self.address}` follows it"):
            shown = 0
            while True:
                shown = asyncio.run(self._tail(name, show, shown))
                if (job := self._ended_within(name, SETTLE_SECONDS)) is not None:
                    return job  # else the connection to its log has ended before it

    def stop(self, name: str) -> Job:
        """End a job; its study records what it stops. RayError if it has already ended."""
        job = self.job(name)
        if job.has_ended:
            raise RayError(f"{name} has ended already ({job.state.lower()}); its journal is {job.storage} on the head")
        with translated(self.address):
            self._client.stop_job(name)
            return self._wait(name, STOP_SECONDS + SETTLE_SECONDS)

    def fetch(self, name: str, path: Path) -> Arrival:
        """Bring a journal here up to date with that of a job, which may be running; it is created if there is none.

        Raises:
            JournalInUse: a process here is writing the journal.
            JournalError: the job has no journal, or the one here does not go with it: see `travel`.
        """
        job = self.job(name)
        with translated(self.address):
            reader = self._submitted(
                entrypoint=f"exec {PYTHON} -m raybo.cli {shlex.join(['job-send', job.storage])}",
                submission_id=f"{name}-fetch-{secrets.token_hex(3)}",
                runtime_env=_with_raybo(),
            )
            try:
                ended = self._wait(reader, FETCH_SECONDS)
                lines = self._client.get_job_logs(reader).splitlines()
            finally:
                with contextlib.suppress(RuntimeError, RayError):  # whatever is in its way: it is no part of the answer
                    if not _job(self._client.get_job_info(reader)).has_ended:
                        self._client.stop_job(reader)
                        self._wait(reader, SETTLE_SECONDS)
                    self._client.delete_job(reader)
        if (text := text_of(lines)) is None:
            reason = next((line for line in lines if line.startswith("Error: ")), "").removeprefix("Error: ")
            raise JournalError(f"the journal of {name} cannot be fetched: {reason or failure(ended)}")
        return unpack(text, path)

    def _submitted(self, **job: Any) -> str:
        """Submit a job, and wait for a head that is not ready to take one; returns its name."""
        give_up = time.monotonic() + AGENT_SECONDS
        while True:
            try:
                return str(self._client.submit_job(**job))
            except RuntimeError as error:
                if NO_AGENT not in str(error):
                    raise
                if time.monotonic() > give_up:
                    raise RayError(
                        f"the cluster at {self.address} takes no jobs: its head's job agent has not come up in "
                        f"{AGENT_SECONDS:.0f} s; is another Ray running on that machine? Both want port 52365: stop "
                        "one, or start this one with `ray start --dashboard-agent-listen-port` and another port"
                    ) from error
                time.sleep(1.0)

    def _wait(self, name: str, seconds: float) -> Job:
        """A job when it has ended."""
        if (job := self._ended_within(name, seconds)) is None:
            job = _job(self._client.get_job_info(name))
            raise RayError(f"{name} has not ended ({job.state.lower()}: {job.message}); see {self.address}")
        return job

    def _ended_within(self, name: str, seconds: float) -> Job | None:
        """A job when it has ended; None if it has not by then."""
        give_up = time.monotonic() + seconds
        while not (job := _job(self._client.get_job_info(name))).has_ended:
            if time.monotonic() > give_up:
                return None
            time.sleep(POLL_SECONDS)
        return job

    async def _tail(self, name: str, show: Callable[[str], object], shown: int) -> int:
        """Show a job's log from that character of it on, as long as the connection lasts; returns how far it got."""
        before, come = "", 0  # what Ray says of preparing the job, shown where that is all; and characters so far
        begun = False
        async for piece in self._client.tail_job_logs(name):
            new = piece[max(0, shown - come) :]
            come += len(piece)
            if begun or come - len(piece) < shown:
                begun = True
                show(new)
                continue
            before += piece
            _, found, after = before.partition(_BEGINS)
            if found and "\n" in after:
                begun = True
                show(after.partition("\n")[2])
        if not begun:
            show(before)
        return max(shown, come)


def storage_on_head(directory: Path, target: str) -> str:
    """Return the default place of a study's journal on the head: one for each user, directory and target."""
    return f"~/raybo/{_user()}/{directory.resolve().name or 'root'}/{study_name(target)}.db"


def _user() -> str:
    """Return the user's name, or the number of one that has no name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def failure(job: Job) -> str:
    """Return the reason for which a job failed, in one line."""
    lines = [line.strip() for line in job.message.splitlines() if line.strip()]
    last = lines[-1] if lines else job.state.lower()
    if job.exit_code == 127 or last.startswith("ModuleNotFoundError"):
        return (
            f"{PYTHON} on the cluster's head cannot run raybo ({last}); install raybo's dependencies there, and start "
            "Ray from a shell whose PATH has that Python first"
        )
    return last if job.exit_code is None else f"exit code {job.exit_code}, see its output"


def _job(info: Any) -> Job:
    metadata = info.metadata or {}
    began = datetime.fromtimestamp((info.start_time or 0) / 1_000, timezone.utc).isoformat(timespec="seconds")
    return Job(
        name=info.submission_id,
        state=str(info.status),
        target=metadata.get(_TARGET, ""),
        storage=metadata.get(_STORAGE, ""),
        began=began if info.start_time else "",
        exit_code=info.driver_exit_code,
        message=info.message or "",
    )


def _below(directory: Path, file: str) -> str:
    path = Path(directory, file)
    if not path.is_file():
        raise ObjectiveError(f"{file}: no such file; give the Python file that holds the objective")
    try:
        return path.resolve().relative_to(directory.resolve()).as_posix()
    except ValueError:
        raise ObjectiveError(
            f"{file}: it is outside {directory}, which is what is sent; run this in your project's root"
        ) from None


def _with_raybo(*more: Path) -> dict[str, Any]:
    """A runtime environment with this very raybo, whatever version the nodes have, and more directories beside it."""
    return {"py_modules": [str(path) for path in (Path(raybo.__file__).parent, *more)], "excludes": ["__pycache__/"]}
