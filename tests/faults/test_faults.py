"""A few dozen seeded kills, and the harness itself: it must notice what it is there to notice."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import raybo
from raybo.history import Kind
from tests.faults import harness

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("seed", [0, 3])
def test_nothing_is_lost_or_doubled_or_hangs(tmp_path, seed):
    report = harness.run(tmp_path, seed, kills=12)
    assert report.complaints == []
    assert report.kills.total() >= 6


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A study that nobody disturbed."""
    directory = tmp_path_factory.mktemp("calm")
    victims = harness.Victims(directory, {"trials": 6, "method": "random", "seed": 0, "workers": 2})
    yield victims
    victims.end()


def test_a_study_that_nobody_disturbed_gives_no_complaint(ended):
    assert ended.driver.wait(timeout=harness.HUNG_SECONDS) == 0
    assert harness.complaints(ended, 6) == []


def test_every_kind_of_damage_is_noticed(ended, tmp_path):
    ended.driver.wait(timeout=harness.HUNG_SECONDS)
    study, lines = raybo.load(ended.journal), ended.lines()
    told = next(event for event in study.events if event.kind is Kind.TOLD)

    def of(events):
        return harness._of_the_journal(raybo.Study(study.description, events), 6)

    assert of(study.events) == []
    lost = [event for event in study.events if event is not told]
    assert any("gaps" in text for text in of(lost))
    assert any("5 of 6" in text for text in of(lost))
    assert any(
        "attempt" in t
        for t in of([replace(e, data={**e.data, "attempt": 2}) if e is told else e for e in study.events])
    )

    announced = tmp_path / "announced"
    announced.write_text(json.dumps({"event": told.number, "finished": 9, "best": [0, -1.0]}) + "\n")
    assert len(harness._of_what_was_announced(study, announced)) == 2

    again = [*lines, {**lines[0], "at": lines[-1]["at"] + 60}]
    assert {text.split(" ", 2)[2] for text in harness._of_what_ran(study, again)} == {
        "began 2 times in 1 attempts",
        "ran again after it had finished",
    }
    assert any("never ran" in text for text in harness._of_what_ran(study, []))
