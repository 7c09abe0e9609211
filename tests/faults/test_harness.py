"""The harness notices damage that is done on purpose: raybo with a defect."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults import disk
from tests.faults.checks import Wrong
from tests.faults.harness import look_for_processes, run
from tests.faults.plan import Kind, Place, study_struck_by
from tests.faults.running import HERE

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1_800)]


def broken(directory: Path, file: str, edits: dict[str, str]) -> Path:
    """A clone whose raybo has a defect."""
    for name in ("raybo", "tests"):
        shutil.copytree(HERE / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = directory / "raybo" / file
    text = path.read_text(encoding="utf-8")
    for before, after in edits.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
    return directory


DEFECTS: dict[str, tuple[str, dict[str, str], list[Kind], set[Wrong]]] = {
    "a commit is left out": (
        "engine/study/event_log.py",
        {
            "self.journal.append(batch)": (
                "self.journal.append([e for e in batch if (e.trial, str(e.kind)) != (5, 'told')])"
            )
        },
        [],
        {Wrong.UNFINISHED},  # the journal itself misses the event, and is refused
    ),
    "attempts are not counted": (
        "engine/lifecycle.py",
        {"self.attempt + following.submit": "self.attempt"},
        [Kind.WORKER],
        {Wrong.ATTEMPTS},
    ),
    "no other Ray is started": ("engine/driver.py", {"RAYS = 4": "RAYS = 1"}, [Kind.RAYLET], {Wrong.UNFINISHED}),
    "no patience with a study actor": (
        "engine/follow.py",
        {"return  # it is lost, restarts,": "raise  # it is lost, restarts,"},
        [Kind.STOPPED_ACTOR],
        {Wrong.UNFINISHED},
    ),
    "a full disk ends in a traceback": (
        "journal/schema.py",
        {'raise JournalError(f"{path}: {error}; check the disk': 'raise OSError(f"{path}: {error}; check the disk'},
        [Kind.FULL],
        {Wrong.UNSAID},
    ),
    "the lock holds nobody": (
        "journal/lock.py",
        {
            "systems.lock(file.fileno())": "systems.lock(file.fileno(), shared=True)",
            "systems.lock_byte(journal, FIRST_BYTE)": "pass",
        },
        [Kind.SECOND],
        {Wrong.WRITERS},
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_noticed(tmp_path: Path, small: disk.Disk | None, defect: str) -> None:
    file, edits, kinds, wrong = DEFECTS[defect]
    if Kind.FULL in kinds and small is None:
        pytest.skip("no file system may be mounted here")
    source = broken(tmp_path / "clone", file, edits)
    report = run(study_struck_by(kinds, Place.OWN, "random"), tmp_path, disk=small, source=source)
    assert report.later is not None
    look_for_processes(report.later)
    assert {complaint.wrong for complaint in report.complaints} >= wrong
