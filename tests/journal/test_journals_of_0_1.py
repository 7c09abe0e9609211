"""Journals that release 0.1 wrote: they open, are shown, are proposed again alike, and are continued.

gp-ucb    a conditional space, settings, a trial asked for by the user, a result from elsewhere, failures; complete
uhe       two trials in flight when it was left, and one that had started again
sbo-kde   a context; complete

Where numpy, scipy or the processor are others than those that recorded them, proposals may differ by rounding: there it
is asked that they differ by no more than that.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy
from rich.console import Console
from threadpoolctl import threadpool_info

from raybo.journal import read
from raybo.record.states import State
from raybo.reporting.tables import study_view
from raybo.study.replay import replay
from raybo.study.study import load
from tests.journals import continue_with_failures

KEPT = {  # name: events, finished trials, best value
    "gp-ucb": (31, 13, 0.03485387265557887),
    "uhe": (26, 11, -0.015053163390344569),
    "sbo-kde": (21, 10, -0.08173105381545284),
}


@pytest.fixture(params=KEPT)
def journal(request, tmp_path):
    """A copy of one of them, and what is known of it."""
    path = tmp_path / f"{request.param}.db"
    shutil.copyfile(Path(__file__).with_name("journals_of_0_1") / f"{request.param}.sqlite", path)
    return path, *KEPT[request.param]


def test_journals_of_0_1_are_read_and_shown(journal):
    path, events, finished, best = journal
    study = load(path)
    assert (len(study.events), study.count(State.FINISHED)) == (events, finished)
    assert study.best.value == pytest.approx(best)
    console = Console(width=140)
    with console.capture() as shown:
        console.print(study_view(study, 40))
    assert study.description.method in shown.get()
    for trial in study.trials:
        assert study.explain(trial)


def is_as_recorded():
    """Return True if this process rounds as the one that recorded them: only then must every digit agree."""
    versions = [".".join(module.__version__.split(".")[:2]) for module in (np, scipy)]
    return (versions, {one.get("architecture") for one in threadpool_info()} - {None}) == (
        ["2.4", "1.17"],
        {"SkylakeX"},
    )


def require_alike(study):
    differing = [again for again in replay(study) if again.differs]
    assert [again for again in differing if is_as_recorded() or not again.is_rounding] == []


def test_every_proposal_is_made_again_alike(journal):
    require_alike(load(journal[0]))


def test_journals_of_0_1_are_continued_unchanged(journal):
    path, before = journal[0], read(journal[0])
    continue_with_failures(path, 2)
    description, events = read(path)
    assert (description, events[:-4]) == before
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    require_alike(load(path))
