"""Finds the priors that a user gives: studies, journals, directories and patterns of them."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from raybo.common.errors import JournalError, SpaceError
from raybo.common.messages import first_line, shown
from raybo.journal import as_path, read
from raybo.record.description import Description
from raybo.record.events import EarlierStudy, Event
from raybo.searcher.wanted import Wanted, identity_of

if TYPE_CHECKING:
    from raybo.searcher.earlier_study import Studied
    from raybo.searcher.journaled import Kept

Given: TypeAlias = "Studied | Path | str | Sequence[Studied | Path | str]"

STUDIES = 100  # at most; of more those with the most parameters in common and the most results
AUTO = "auto"  # the journals that fit, in the directory of the study's own


def new_priors(given: object, wanted: Wanted, known: Sequence[EarlierStudy] = ()) -> list[EarlierStudy]:
    """Read the priors that a user gives, without those that a study has already.

    Args:
        given: a study or a journal, or several; a directory or a pattern for all journals there that fit, "auto" for
            those in the directory of the study's own journal.
        wanted: the study that they are for.
        known: what it has. A study that is given again stays as it was when it was given first, and its journal may be
            gone; once it has begun, directories and patterns give nothing more.
    Raises:
        JournalError: a journal cannot be read, knows nothing of this study, or none of a directory does.
        SpaceError: one has no parameter in common.
    """
    there = {prior.identity for prior in known}
    found: list[EarlierStudy] = []
    named: set[str] = set()  # identities of those that were not found in a directory, say
    is_expected = False  # that one can be modelled
    for each in _listed(given):
        priors, are_many = _source(each, wanted, known)
        is_expected |= not are_many or str(each) != AUTO
        for prior in priors:
            if not are_many:
                named.add(prior.identity)
            if prior.identity not in there:
                there.add(prior.identity)
                found.append(prior)
    if not found:
        return []
    from raybo.searcher.earlier_study import modelled  # brings the surrogate, and scipy

    if len(found) > STUDIES:
        best = sorted(found, key=lambda prior: (-len(prior.axes), -len(prior.scores)))[:STUDIES]
        found = [prior for prior in found if prior in best]
    models: list[EarlierStudy] = []
    for prior in found:
        try:
            models.append(modelled(prior, wanted.space))
        except JournalError:
            if prior.identity in named or (is_expected and prior is found[-1] and not models):
                raise
    return models


def priors_of(given: Given, description: Description, kept: Kept | None) -> list[EarlierStudy]:
    """Return what the earlier studies know of a study that is not in its journal yet."""
    known = [event for event in ([] if kept is None else kept.events) if isinstance(event, EarlierStudy)]
    path, identity = (None, "") if kept is None else (kept.path, identity_of(kept.description, kept.events))
    return new_priors(given, Wanted.by(description, path, identity), known)


def journals_in(directory: Path) -> list[Path]:
    """Return the journals in a directory, by name."""
    return [path for path in sorted(directory.iterdir()) if path.is_file() and path.suffix == ".db"]


def fitting(paths: Iterable[Path], wanted: Wanted) -> list[tuple[Path, EarlierStudy | None, str]]:
    """Return for each journal what it knows, as yet without a model, or in words why that is nothing."""
    found: list[tuple[Path, EarlierStudy | None, str]] = []
    for path in paths:
        try:
            found.append((path, _read(path, wanted), ""))
        except (JournalError, SpaceError) as error:
            found.append((path, None, first_line(error).removeprefix(f"{path}: ").removeprefix(f"{path.name}: ")))
    return found


def _listed(given: object) -> list[Any]:
    if isinstance(given, (str, os.PathLike)) or _is_study(given):
        return [given]
    if isinstance(given, (list, tuple)):
        with contextlib.suppress(Exception):  # whatever a user's object raises
            return list(given)
    raise JournalError(f"prior must be a study, a journal, or a list of them, got {shown(given)}")


def _source(given: Any, wanted: Wanted, known: Sequence[EarlierStudy]) -> tuple[list[EarlierStudy], bool]:
    """Return the priors of one thing that a user gives, and whether it stands for many, of which some may not fit."""
    if _is_study(given):
        return [_known(given, wanted, _name(given))], False
    paths, are_many = journals_named(given, wanted.path)
    if are_many:
        return [] if known or wanted.identity else _those_that_fit(paths, wanted, str(given)), True
    if (
        known
        and not paths[0].exists()
        and (paths[0].suffix != ".db" or any(prior.study == paths[0].name for prior in known))
    ):  # a directory, or a journal, that has given what it knows and is gone
        return [], False
    return [_read(paths[0], wanted)], False


def journals_named(given: Any, own: Path | None) -> tuple[list[Path], bool]:
    """Return the journals that a user names, and whether they are many, of which only those that fit count.

    Args:
        given: a journal; or a directory or a pattern of them, or "auto" for those beside the study's own.
        own: the study's own journal, which is never one of many; None if it is not kept.
    """
    if not isinstance(given, (str, os.PathLike)):
        raise JournalError(f"prior must be a study, a journal, or a list of them, got {shown(given)}")
    if not os.fspath(given):
        raise JournalError("prior is empty; name a journal or a directory of journals")
    path = as_path(Path(given), "prior").expanduser()
    if str(path) == AUTO and not path.exists():
        if own is None:
            raise JournalError('prior "auto" takes the journals next to the study\'s own; give storage, or name them')
        found = journals_in(own.absolute().parent)
    elif path.is_dir():
        found = journals_in(path)
    elif not path.exists() and any(mark in str(path) for mark in "*?["):
        found = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
    else:
        return [path], False
    return [each for each in found if own is None or os.path.realpath(each) != os.path.realpath(own)], True


def _is_study(given: object) -> bool:
    try:
        return hasattr(given, "events") and hasattr(given, "description")
    except Exception:  # noqa: BLE001  # whatever a user's object raises
        return False


def _those_that_fit(paths: Sequence[Path], wanted: Wanted, where: str) -> list[EarlierStudy]:
    """Return the priors of those journals that fit; JournalError if none does, unless nobody expects that of them."""
    found = fitting(paths, wanted)
    if where != AUTO and not any(prior for _, prior, _ in found):
        why = "; ".join(f"{path.name}: {problem}" for path, _, problem in found[:3])
        raise JournalError(f"{where}: no journal there can serve as a prior for this study{f' ({why})' if why else ''}")
    return [prior for _, prior, _ in found if prior is not None]


def _read(path: Path, wanted: Wanted) -> EarlierStudy:
    if wanted.path is not None and os.path.realpath(path) == os.path.realpath(wanted.path):
        raise JournalError(f"{path}: it is this study's own journal, which cannot be its prior; name an earlier one")
    if not path.exists():
        raise JournalError(f"prior {path}: no such file")
    description, events = read(path)
    return _known(_Read(description, events, path), wanted, path.name)


def _known(study: Studied, wanted: Wanted, name: str) -> EarlierStudy:
    from raybo.searcher.earlier_study import what_it_knows  # likewise

    return what_it_knows(study, wanted, name)


@dataclass(frozen=True)
class _Read:
    description: Description
    events: Sequence[Event]
    path: Path | None


def _name(study: Studied) -> str:
    return study.description.objective or "a study" if study.path is None else Path(study.path).name
