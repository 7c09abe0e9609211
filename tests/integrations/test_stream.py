"""A writer receives each event once, everything again after a failure, and nothing that was withdrawn."""

from __future__ import annotations

import pytest

from raybo.integrations.stream import StartAgain, Stream
from raybo.integrations.trial_terms import Names
from raybo.record.events import Kind
from raybo.study.study import Study
from tests.integrations.hostile_studies import STUDIES, Written


class Notebook:
    """A writer that notes down what it is sent, by trial."""

    def __init__(self, pages):
        self.pages = pages
        pages.append([])

    def note(self, new, *numbers):
        self.pages[-1].append((new.trial.number, str(new.event.kind), *numbers))

    def started(self, new):
        self.note(new)

    def reported(self, new):
        self.note(new, new.event.report[0], new.numbers)

    changed = started

    def ended(self, new):
        self.note(new, new.numbers)

    def finish(self, study):
        self.pages[-1].append(len(study.events))


@pytest.fixture
def study(tmp_path):
    return STUDIES["outcomes"](tmp_path / "job.db")


def part(study, events):
    return Study(study.description, study.events[:events], study.path)


def test_a_writer_is_sent_each_event_once(study):
    pages = []
    export = Stream(lambda study: Notebook(pages))
    for events in (10, 10, 40, 30, len(study.events)):
        export(part(study, events))
    (page,) = pages
    items = [item for item in page if isinstance(item, tuple)]
    whole = []
    Stream(lambda study: Notebook(whole))(study)
    ends = (Kind.TOLD, Kind.FAILED, Kind.STOPPED, Kind.PRUNED)
    assert [item for item in page if isinstance(item, int)] == [10, 10, 40, len(study.events)]
    assert [item[:2] for item in items if item[1] in ends] == [
        (event.trial, str(event.kind)) for event in study.events if event.kind in ends and _stays(study, event, 40)
    ]
    assert len([item for item in items if item[1] == Kind.REPORTED]) == sum(len(t.reports) for t in study.trials)
    assert set(map(str, whole[0][:-1])) <= set(map(str, items))


def _stays(study, event, cut):
    """Return True if no look saw the trial's end together with its new start."""
    later = (e for e in study.events if e.trial == event.trial and e.number > event.number and e.kind is Kind.RETRIED)
    return all(event.number <= cut < again.number for again in later)


def test_after_a_failure_another_writer_is_sent_everything(study):
    pages, is_full = [], [True]

    class Full(Notebook):
        def finish(self, study):
            if is_full.pop():
                raise OSError("no space left")
            super().finish(study)

    export = Stream(lambda study: Full(pages))
    is_full[:] = [False, True, False]
    export(part(study, 40))
    with pytest.raises(OSError, match="no space left"):
        export(study)
    export(study)
    whole = []
    Stream(lambda study: Notebook(whole))(study)
    assert len(pages) == 2
    assert pages[1] == whole[0]


def test_a_writer_may_ask_for_everything_again(study):
    pages = []

    class Strict(Notebook):
        def changed(self, new):
            if len(self.pages) == 1:
                raise StartAgain
            super().changed(new)

    Stream(lambda study: Strict(pages))(study)
    whole = []
    Stream(lambda study: Notebook(whole))(study)
    assert pages[1] == whole[0]


def test_an_empty_study_opens_no_writer(study):
    pages = []
    export = Stream(lambda study: Notebook(pages) if study.events else None)
    export(part(study, 0))
    assert pages == []
    export(study)
    assert pages[0][-1] == len(study.events)


def test_names_are_given_in_the_order_of_events(tmp_path):
    """A retried failure is not sent, but its names count: otherwise another process would give others."""
    written = Written(tmp_path / "job.db")
    written.say(Kind.FAILED, written.ask(), reason="boom", metrics={"a#1": 1.0})
    written.say(Kind.RETRIED, 0, reason="it had failed, and is retried", attempt=2)
    written.say(Kind.TOLD, 0, value=1.0, metrics={"a@1": 1.0}, attempt=2)
    study = written.study()
    for cuts in ((5,), (2, 3, 5)):
        names = Names(lambda name: name.replace("#", "_").replace("@", "_"))
        export = Stream(lambda study: Notebook([]), names)
        for events in cuts:
            export(part(study, events))
        assert (names["a#1"], names["a@1"]) == ("a_1", "a_1_2")
