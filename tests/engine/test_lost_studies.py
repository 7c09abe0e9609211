"""A study's process is lost when it is silent for too long, and given up when it keeps dying alike."""

from __future__ import annotations

from raybo.engine.lost_studies import ALIKE, LOOK_SECONDS, SILENT_SECONDS, Deaths, Silence


def test_silence_lasts_until_something_is_heard():
    silence = Silence()
    for now in range(100, 110):
        silence.look(now, heard=False)
    assert silence.seconds == 9
    silence.look(110, heard=True)
    assert silence.seconds == 0


def test_time_while_the_follower_was_stopped_hardly_counts():
    silence = Silence()
    silence.look(0, heard=True)
    silence.look(3_600, heard=False)
    assert silence.seconds == LOOK_SECONDS < SILENT_SECONDS


def test_equal_deaths_without_progress_are_hopeless():
    deaths = Deaths(100)
    for _ in range(ALIKE):
        assert not deaths.is_hopeless
        deaths.add("ActorDiedError", achieved=7)
    assert deaths.is_hopeless
    assert deaths.left == 100 - ALIKE


def test_deaths_with_progress_or_other_reasons_are_not():
    deaths = Deaths(100)
    for number in range(2 * ALIKE):
        deaths.add("ActorDiedError", achieved=number)
    for number in range(2 * ALIKE):
        deaths.add(("StudySilent", "ActorDiedError")[number % 2], achieved=0)
    assert not deaths.is_hopeless


def test_patience_grows_while_processes_die_alike():
    deaths, waited = Deaths(100), []
    while not deaths.is_hopeless:
        waited.append(deaths.timeout)
        deaths.add("StudySilent", achieved=1)
    assert waited == [SILENT_SECONDS, SILENT_SECONDS, 2 * SILENT_SECONDS, 4 * SILENT_SECONDS, 8 * SILENT_SECONDS]
