"""Whose trials can be waited for no longer, by what Ray says of the nodes."""

from __future__ import annotations

from raybo.engine.ray.nodes import LOOK_SECONDS, NodeLosses


def nodes(**alive):
    return [{"NodeID": name, "Alive": is_alive} for name, is_alive in alive.items()]


def test_what_was_lost_before_the_study_is_no_news_but_runs_nothing():
    losses = NodeLosses()
    assert not losses.update(nodes(a=True, old=False), 0.0)
    assert not losses.update(nodes(a=True, old=False), 2.0)
    assert losses.affect("old", 1.0, 2.0)
    assert not losses.affect("a", 1.0, 2.0)


def test_a_node_is_news_once():
    losses = NodeLosses()
    assert not losses.update(nodes(a=True, b=True), 0.0)
    assert losses.update(nodes(a=True, b=False), 2.0)
    assert not losses.update(nodes(a=True, b=False), 4.0)
    assert losses.update(nodes(a=False, b=False), 6.0)


def test_trials_of_a_lost_node_are_lost_and_no_others():
    losses = NodeLosses()
    losses.update(nodes(a=True, b=True), 0.0)
    assert not losses.affect("b", 0.0, 0.0)
    losses.update(nodes(a=True, b=False), 2.0)
    assert losses.affect("b", 0.0, 2.0)
    assert not losses.affect("a", 0.0, 2.0)


def test_a_trial_that_left_around_a_loss_and_has_not_begun_may_be_on_its_way_there():
    losses = NodeLosses()
    losses.update(nodes(a=True, b=True), 0.0)
    assert not losses.affect(None, 0.0, 100.0)  # nothing was lost: it waits its turn
    losses.update(nodes(a=True, b=False), 100.0)
    assert losses.affect(None, 99.0, 102.0)
    assert losses.affect(None, 100.0 + 0.9 * LOOK_SECONDS, 200.0)  # Ray may not have noticed when it was sent
    assert not losses.affect(None, 100.0 + 1.1 * LOOK_SECONDS, 200.0)
    assert not losses.affect(None, 99.0, 99.0 + 0.9 * LOOK_SECONDS)  # it may yet begin
