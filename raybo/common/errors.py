"""The errors that raybo raises for wrong use; each message is one line: the rule, the offender, the remedy.

    RayboError
    ├── SpaceError           a search space, or a configuration that does not fit it
    ├── ObjectiveError       an objective that cannot be found, loaded or called as asked
    ├── MethodError          an unknown method, option or argument, or a value out of range
    ├── TrialError           a result for a trial that is unknown, already ended or not finite; or no such trial
    ├── JournalError         a journal that cannot be opened, read or continued
    │   ├── JournalInUse     another process is writing it
    │   └── PathError        an argument that cannot be a file's path
    ├── RayError             Ray cannot be reached, or cannot run the trials
    ├── MissingExtra         an optional package is needed but not installed
    └── NumericalError       a matrix could not be factorised by any of the means tried

The first four and a `PathError` are also `ValueError`s, and a `MissingExtra` is an `ImportError`, for code that expects
Python's own. A *trial's* failure is data and never one of these.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from raybo.common.terminal import one_line


class RayboError(Exception):
    """Any wrong use of raybo; the message is one line that names the culprit and the remedy.

    Example:
        >>> raybo.Searcher({"x": raybo.Float(0, 1)}, "gp-ubc")
        Traceback (most recent call last):
            ...
        raybo.common.errors.MethodError: ...gp-ucb...
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class SpaceError(RayboError, ValueError):
    """A search space, or a configuration that does not fit it.

    Example:
        >>> raybo.Float(1, 0)
        Traceback (most recent call last):
            ...
        raybo.common.errors.SpaceError: Float: low must be below high, got low=1.0, high=0.0
    """


class ObjectiveError(RayboError, ValueError):
    """An objective that cannot be found, loaded or called as asked.

    Example:
        >>> raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="up")
        Traceback (most recent call last):
            ...
        raybo.common.errors.ObjectiveError: ...mode...
    """


class MethodError(RayboError, ValueError):
    """An unknown method, option or argument, or one whose value is out of its range.

    Example:
        >>> raybo.Searcher({"x": raybo.Float(0, 1)}, "gp-ucb", kapa=2)
        Traceback (most recent call last):
            ...
        raybo.common.errors.MethodError: ...kappa...
    """


class TrialError(RayboError, ValueError):
    """A result for a trial that is unknown, already ended or not a finite number; or no such trial.

    Example:
        >>> searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, seed=0)
        >>> searcher.tell(searcher.ask(), float("nan"))
        Traceback (most recent call last):
            ...
        raybo.common.errors.TrialError: ...
    """


class JournalError(RayboError):
    """A journal that cannot be opened, read or continued.

    Example:
        >>> raybo.load("nowhere.db")
        Traceback (most recent call last):
            ...
        raybo.common.errors.JournalError: ...nowhere.db...
    """


class JournalInUse(JournalError):
    """Another process is writing the journal.

    Example:
        >>> def run(job):
        ...     try:
        ...         return raybo.tune(job, storage="job.db")
        ...     except raybo.JournalInUse:  # somebody else runs it: look at it instead
        ...         return raybo.load("job.db")
    """


class PathError(JournalError, ValueError):
    """An argument that cannot be the path of a journal, or of a place for files.

    Example:
        >>> raybo.load(3)
        Traceback (most recent call last):
            ...
        raybo.common.errors.PathError: a journal must be a path, got 3
    """


class RayError(RayboError):
    """Ray cannot be reached, or cannot run the trials.

    Example:
        >>> def run(job):
        ...     try:
        ...         return raybo.tune(job, address="auto")
        ...     except raybo.RayError:  # there is no cluster: use this machine
        ...         return raybo.tune(job)
    """


class MissingExtra(RayboError, ImportError):
    """An optional package is needed but not installed.

    Example:
        >>> def table(study):
        ...     try:
        ...         return study.to_dataframe()
        ...     except raybo.MissingExtra:  # without pandas
        ...         return [(trial.number, trial.value) for trial in study.trials]
    """


class NumericalError(RayboError):
    """A matrix could not be factorised by any of the means tried.

    Example:
        >>> issubclass(raybo.NumericalError, raybo.RayboError)
        True
    """


def install_command(extra: str) -> str:
    """Return the command that installs an extra: from a clone, an address, or a package index, as raybo was."""
    import json
    from importlib import metadata
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        origin = json.loads(metadata.distribution("raybo").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):  # travelled with a job, or a damaged installation
        origin = {}
    address = origin.get("url", "")
    if origin.get("dir_info", {}).get("editable"):
        clone = Path(url2pathname(urlsplit(address).path))
        where = "." if clone == Path.cwd() else str(clone)
        return f"pip install -e {shlex.quote(f'{where}[{extra}]')}"
    if "vcs_info" in origin:
        address = f"{origin['vcs_info']['vcs']}+{address}"
    return f"pip install {shlex.quote(f'raybo[{extra}]' + f' @ {address}' * bool(address))}"
