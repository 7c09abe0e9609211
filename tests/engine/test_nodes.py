"""Whose trials can be waited for no longer, by what Ray says of the nodes."""

from __future__ import annotations

from raybo.engine.ray.nodes import LOOK_SECONDS, NodeLosses


def nodes(**alive):
    return [{"NodeID": name, "Alive": is_alive} for name, is_alive in alive.items()]


def test_nodes_lost_before_the_study_are_no_news():
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


def test_only_trials_of_a_lost_node_are_lost():
    losses = NodeLosses()
    losses.update(nodes(a=True, b=True), 0.0)
    assert not losses.affect("b", 0.0, 0.0)
    losses.update(nodes(a=True, b=False), 2.0)
    assert losses.affect("b", 0.0, 2.0)
    assert not losses.affect("a", 0.0, 2.0)


def test_unstarted_trial_may_be_lost_with_a_node():
    losses = NodeLosses()
    losses.update(nodes(a=True, b=True), 0.0)
    assert not losses.affect(None, 0.0, 100.0)  # nothing was lost: it waits its turn
    losses.update(nodes(a=True, b=False), 100.0)
    assert losses.affect(None, 99.0, 102.0)
    assert losses.affect(None, 100.0 + 0.9 * LOOK_SECONDS, 200.0)  # Ray may not have noticed when it was sent
    assert not losses.affect(None, 100.0 + 1.1 * LOOK_SECONDS, 200.0)
    assert not losses.affect(None, 99.0, 99.0 + 0.9 * LOOK_SECONDS)  # it may yet begin
