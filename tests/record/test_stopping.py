"""When a study has found enough."""

from __future__ import annotations

import pytest

from raybo.common.errors import MethodError
from raybo.record.events import Asked, Failed, Planned, Told
from raybo.record.goals import Constraint, Goals
from raybo.record.stopping import Limits, Stopping


def asked(number, **data):
    return Asked.of(number, {"tags": data.pop("tags", {}), "x": [0.5], **data})


def told(number, value, **data):
    return Told.of(number, {"value": value, **data})


def reason(limits, values, mode="max", origins=()):
    stopping = Stopping(limits, Goals(modes=(mode,)))
    for number, value in enumerate(values):
        stopping.hear(asked(number, tags={"origin": origins[number]} if number < len(origins) else {}))
        stopping.hear(Failed(number, reason="it raised") if value is None else told(number, value))
    return stopping.reason


def test_a_target_is_reached_by_an_equal_value():
    assert reason(Limits(target=0.9), [0.5, 0.89]) == ""
    assert reason(Limits(target=0.9), [0.5, 0.9, 1.0]) == "trial 1 has reached the target: value 0.9"
    assert reason(Limits(target=0.9), [0.91, 0.95], "min") == ""
    assert reason(Limits(target=0.9), [0.95, 0.9], "min").startswith("trial 1 ")
    assert reason(Limits(target=0.9), [0.95], origins=["added"]).startswith("trial 0 ")


def test_patience_counts_finished_trials_since_the_best():
    assert reason(Limits(patience=3), [0.5, 0.4, 0.4]) == ""
    assert reason(Limits(patience=3), [0.5, 0.4, 0.5, 0.4]) == "no improvement in the last 3 trials that finished"
    assert reason(Limits(patience=3), [0.5, None, None, None, 0.4, 0.3]) == ""
    assert reason(Limits(patience=3), [0.5, 0.4, 0.4, 0.6, 0.4, 0.4]) == ""
    assert reason(Limits(patience=3), [0.5, 0.4, 0.4, 0.4, 0.4]).startswith("no improvement in the last 4 ")
    assert reason(Limits(patience=2), [0.5, 0.4, 0.4], "min") == ""
    assert reason(Limits(patience=2), [0.5, 0.4, 0.3], origins=["added"] * 3) == ""


def test_a_recent_improvement_does_not_end_a_study():
    """A trial that ran on when the study ended, or trials of another command: the limit speaks of the last ones."""
    assert reason(Limits(patience=2), [0.5, 0.4, 0.4, 0.6]) == ""
    assert reason(Limits(target=0.5), [0.5, 0.4, 0.4, 0.6]).startswith("trial 0 ")


def test_with_several_metrics_patience_waits_for_the_front():
    stopping = Stopping(
        Limits(patience=2), Goals(("accuracy", "seconds"), ("max", "min"), (Constraint("gb", True, 1.0),))
    )

    def hear(number, accuracy, seconds, gb=0.5):
        stopping.hear(asked(number))
        stopping.hear(told(number, accuracy, metrics={"seconds": seconds, "gb": gb}))
        return stopping.reason

    assert hear(0, 0.5, 10.0) == ""
    assert hear(1, 0.4, 11.0) == ""  # dominated
    assert hear(2, 0.4, 9.0) == ""  # quicker than any
    assert hear(3, 0.4, 9.0) == ""  # the same again
    assert hear(4, 0.9, 1.0, gb=2.0) == "none of the last 2 trials that finished has joined the front"
    assert hear(5, 0.6, 20.0) == ""


def test_runs_that_confirm_do_not_count():
    assert (
        reason(Limits(target=0.9, patience=1), [0.5, 0.95, 0.1], origins=["enqueued", "confirmed", "confirmed"]) == ""
    )


def test_a_wider_limit_lets_a_study_continue():
    values = [0.5, *[0.4] * 10]
    assert reason(Limits(patience=10), values)
    assert not reason(Limits(patience=11), values)


def test_three_low_gains_in_a_row_end_it():
    def after(*gains):
        stopping = Stopping(Limits(stop_below_gain=0.1), Goals())
        for number, gain in enumerate(gains):
            stopping.hear(asked(number, **({} if gain is None else {"gain": gain})))
        return stopping.reason

    assert after(0.05, 0.05) == ""
    assert after(0.05, 0.2, 0.05, 0.05) == ""
    assert after(0.05, 0.05, 0.05, 0.2) == ""
    assert after(0.1, 0.1, 0.1) == ""  # no less than that
    assert after(None, 0.05, None, 0.04, 0.03) == "the last 3 proposals were expected to improve value by 0.05 at most"


def test_what_breaks_a_constraint_is_no_better():
    goals = Goals(constraints=(Constraint("memory", True, 5.0),))
    stopping = Stopping(Limits(target=0.9), goals)
    stopping.hear(asked(0))
    stopping.hear(told(0, 0.95, metrics={"memory": 6.0}))
    assert stopping.reason == ""
    stopping.hear(asked(1))
    stopping.hear(told(1, 0.95, metrics={"memory": 4.0}))
    assert stopping.reason.startswith("trial 1 ")


@pytest.mark.parametrize(
    "limits",
    [
        {"target": "0.9"},
        {"target": float("nan")},
        {"target": True},
        {"target": 10**400},
        {"patience": 0},
        {"patience": 1.5},
        {"patience": True},
        {"stop_below_gain": 0},
        {"stop_below_gain": float("inf")},
    ],
)
def test_what_is_no_limit_is_refused_by_name(limits):
    with pytest.raises(MethodError, match=f"^{next(iter(limits))} must be "):
        Limits(**limits)


def weighing(gain, takes, results, *, values=None, least=0.1, mode="max", metrics=None, **limits):
    """A study whose trials take an hour each; the first is ahead of all others by 1."""
    found = Stopping(Limits(stop_when_not_worth=least, **limits), Goals(modes=(mode,)))
    for number in range(results):
        found.hear(asked(number))
        found.hear(told(number, values[number] if values else float(number == 0), seconds=3600.0, metrics=metrics))
    found.hear(asked(results, gain=gain, takes=takes))
    return found


def test_what_is_not_worth_its_cost_ends_a_study():
    ended = weighing(1e-3, 120.0, 40)
    assert ended.worth == pytest.approx(0.03)
    assert ended.reason == (
        "the next hour of a worker is not worth it: the last proposal was expected to improve value by 0.03 for it"
    )
    assert weighing(1e-3, 12.0, 40).reason == ""
    assert weighing(1e-3, 120.0, 40, price=0.1).reason == ""
    assert weighing(1e-3, 12.0, 40, price=10.0).reason.startswith("the next unit of money is not worth it")
    spending = weighing(1e-3, 0.02, 40, cost="tokens", metrics={"tokens": 1.0})
    assert spending.reason.startswith("the next unit of tokens is not worth it")
    spending.hear(asked(41, gain=1.0, takes=0.02))
    assert spending.reason == ""  # the next one promises more
    with pytest.raises(MethodError, match="stop_when_not_worth must be a finite number above 0, got 0"):
        Limits(stop_when_not_worth=0)


@pytest.mark.parametrize(("least", "waits"), [(10.0, 5), (0.1, 16), (0.01, 38), (1e-3, 40), (1e-9, 40)])
def test_the_dearer_trials_are_the_fewer_results_are_waited_for(least, waits):
    assert weighing(0.0, 3600.0, waits - 1, least=least).reason == ""
    assert weighing(0.0, 3600.0, waits, least=least).reason != ""


def test_what_is_at_stake_is_what_the_best_is_ahead_of_the_median():
    small = [0.0, *[0.01] * 39]
    assert weighing(0.0, 3600.0, 5, values=small, mode="min").reason != ""
    assert weighing(0.0, 3600.0, 16, values=small, least=1e-3, mode="min").reason != ""  # a tenth of what is at stake
    assert weighing(0.0, 3600.0, 15, values=small, least=1e-3, mode="min").reason == ""
    flat = [0.5] * 40
    assert weighing(0.0, 3600.0, 39, values=flat).reason == ""  # nothing is better than the usual yet
    assert weighing(0.0, 3600.0, 40, values=flat).reason != ""


@pytest.mark.parametrize(("improvement", "ends"), [(7.9, True), (8.1, False)])
def test_a_study_whose_latter_half_has_paid_four_times_its_cost_goes_on(improvement, ends):
    values = [*[0.0] * 20, *[improvement] * 20]
    assert (weighing(0.0, 3600.0, 40, values=values).reason != "") is ends  # 20 results of 0.1 each
    dear = {"values": values, "cost": "tokens", "metrics": {"tokens": 1.0}}
    assert (weighing(0.0, 1.0, 40, **dear).reason != "") is ends
    cheap = {"values": [-value for value in values], "mode": "min", "price": 0.5}
    assert weighing(0.0, 3600.0, 40, **cheap).reason == ""  # half the price, and the improvement pays twice as well
    early = [0.0, *[improvement] * 39]
    assert weighing(0.0, 3600.0, 40, values=early).reason != ""  # it was found in the first half


def hours(number, value, **data):
    return told(number, value, seconds=3600.0, **data)


def test_what_may_not_be_used_is_no_lead():
    """A trial that breaks a constraint costs, but the best is not ahead by it, nor has it paid."""
    goals = Goals(("value",), ("min",), (Constraint("gb", True, 1.0),))
    found = Stopping(Limits(stop_when_not_worth=0.1), goals)
    for number in range(40):
        found.hear(asked(number))
        found.hear(hours(number, 5.0 + 0.1 * (number % 4), metrics={"gb": 0.5}))
    found.hear(asked(40))
    found.hear(hours(40, -100.0, metrics={"gb": 2.0}))
    found.hear(asked(41, gain=0.0, takes=3600.0))
    assert found.reason != ""
    broken = Stopping(Limits(stop_when_not_worth=10.0), goals)
    for number in range(10):
        broken.hear(asked(number))
        broken.hear(hours(number, -float(number), metrics={"gb": 2.0}))
    broken.hear(asked(10, gain=0.0, takes=3600.0))
    assert broken.reason == ""  # there is no result yet


def test_runs_that_confirm_are_no_results():
    found = Stopping(Limits(stop_when_not_worth=10.0), Goals())
    for number in range(5):
        found.hear(asked(number, tags={"origin": "confirmed", "confirms": 0} if number > 3 else {}))
        found.hear(hours(number, float(number == 0)))
    found.hear(asked(5, gain=0.0, takes=3600.0))
    assert found.reason == ""


def test_an_hour_of_every_process_has_its_price():
    """The expectation counts them itself if the budget has a price."""

    def worth(*planned):
        found = Stopping(Limits(stop_when_not_worth=1e-9, price=2.0), Goals())
        for event in planned:
            found.hear(event)
        found.hear(asked(0))
        found.hear(hours(0, 1.0, processes=4))
        found.hear(asked(1, gain=1.0, takes=1800.0))
        return found.worth

    assert worth() == 0.25  # 4 processes for half an hour at 2
    assert worth(Planned(trials=9, budget=100.0)) == 0.25
    assert worth(Planned(trials=9, budget=100.0, price=2.0)) == 1.0
