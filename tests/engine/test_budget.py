"""A study that ends when its budget of time or money is used."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

import raybo
from raybo.common.errors import JournalError, MethodError, TrialError
from raybo.engine.lifecycle import Life, Phase
from raybo.engine.run_options import RunOptions
from raybo.engine.study.budget_clock import BudgetClock
from raybo.engine.study.dispatch import DispatchedTrial
from raybo.engine.study.gang import Gang
from raybo.engine.study.trial_runs import TrialRuns
from raybo.record.budget import Budget, used
from raybo.record.events import Asked, Ended, Planned, Told
from raybo.record.states import State
from raybo.reporting.trials_table import trials_table
from raybo.study.replay import replay
from raybo.view.facts import curve
from raybo.view.followed import Followed
from tests.processes import longest_pause
from tests.reporting.test_tables import text_of

X = {"x": raybo.Float(0, 1)}


@raybo.objective(space=X, metric="y", mode="max")
def job(config):
    time.sleep(0.02)
    return config["x"]


@raybo.objective(space=X, metric="y", mode="max")
def endless(config):
    while True:
        time.sleep(0.01)


def tune(objective, **arguments):
    return raybo.tune(objective, **{"in_process": True, "method": "random", "seed": 0, **arguments})


def test_a_budget_alone_says_how_many_trials(tmp_path):
    seen = []
    study = tune(job, budget="1.5s", storage=tmp_path / "job.db", watch=seen.append)
    assert study.count(State.FINISHED) >= 1  # more where the machine is not busy
    assert study.planned is None
    assert study.ended == "the budget of 1.5s is used"
    spent, budget = seen[-1].budget
    assert budget == Budget(1.5)
    assert spent >= 1.5
    assert "0:02 of 1.5s" in str(seen[-1])
    assert [asked.spent for asked in study.events if isinstance(asked, Asked)] == sorted(
        asked.spent for asked in study.events if isinstance(asked, Asked)
    )
    assert not any(each.differs for each in replay(study))


def test_trials_end_a_study_before_its_budget():
    study = tune(job, budget="10m", trials=3)
    assert (len(study.trials), study.planned, study.ended) == (3, 3, "all 3 trials have been run")


def test_what_runs_at_the_end_is_stopped():
    study = tune(endless, budget=1.5)  # which the first trial begins within
    assert [(trial.state, trial.reason) for trial in study.trials] == [(State.STOPPED, "the budget of 1.5s is used")]
    assert not len(study.history.y) + len(study.history.X_failed) + len(study.history.X_pending)


def test_what_runs_may_finish():
    @raybo.objective(space=X, metric="y", mode="max")
    def longer(config):
        time.sleep(1.6)
        return config["x"]

    study = tune(longer, budget=1.5, let_finish=True)
    assert [trial.state for trial in study.trials] == [State.FINISHED]
    assert study.ended == "the budget of 1.5s is used"


def test_earlier_commands_count(tmp_path):
    path = tmp_path / "job.db"
    first = tune(job, budget=0.4, storage=path)
    again = tune(job, budget=0.4, storage=path)
    assert len(again.trials) == len(first.trials)
    more = tune(job, budget=60, trials=len(first.trials) + 1, storage=path)
    last = [event.spent for event in more.events if isinstance(event, Asked)][-1]
    assert last >= 0.4
    assert [event.budget for event in more.events if isinstance(event, Planned)] == [0.4, 60.0]
    assert len(raybo.tune(job, in_process=True, trials=len(first.trials) + 2, storage=path).trials) > len(more.trials)


@pytest.mark.parametrize(("budget", "said"), [(0.001, "0.001 (at 12"), (1e-9, "1e-09 (at 1.2e-05")])
def test_money_is_used_by_trials(budget, said):
    with longest_pause() as pause:
        study = tune(job, budget=budget, price=3600 * budget / 0.3)
    assert study.ended == f"the budget of {said} an hour) is used"
    # what a busy machine takes to begin and end a trial counts too
    assert 0.1 <= sum(trial.seconds or 0.0 for trial in study.trials) <= 0.35 + pause.seconds
    assert next(event.spent for event in study.events if isinstance(event, Ended)) >= budget * (1 - 1e-9)


def test_the_clock_counts_processes_only_for_money():
    now = [100.0]
    time_clock = BudgetClock(Budget(60.0), 10.0, 95.0, lambda: now[0])
    money = BudgetClock(Budget(10.0, 3600.0), 2.0, now=lambda: now[0])
    assert (time_clock.spent, money.spent, money.seconds_left) == (15.0, 2.0, float("inf"))
    money.set_processes(2)
    time_clock.set_processes(2)
    now[0] = 103.0
    assert (time_clock.spent, money.spent) == (18.0, 8.0)
    assert (time_clock.seconds_left, money.seconds_left) == (42.0, 1.0)
    money.set_processes(0)
    now[0] = 200.0
    assert (time_clock.is_over, money.is_over, money.spent) == (True, False, 8.0)


def test_the_processes_of_earlier_commands_count():
    at = "2026-11-01T10:00:10.000+00:00"
    events = [Told(0, value=1.0, seconds=10.0, processes=4, at=at), Told(1, value=1.0, seconds=5.0, at=at)]
    assert used(events, Budget(100.0, 3600.0)) == 45.0
    assert used(events, Budget(100.0)) == 10.0


def test_processes_that_wait_for_room_cost_nothing():
    """Four that have their place, two of a gang that waits, and three of a trainer that has begun."""
    placed, waiting, nested = (
        DispatchedTrial(Life(number, Phase.RUNNING), processes=processes) for number, processes in enumerate((4, 2, 3))
    )
    placed.task, waiting.task = Mock(Gang, is_placed=True), Mock(Gang, is_placed=False)
    runs = SimpleNamespace(
        dispatched={0: placed, 1: waiting, 2: nested}, launcher=SimpleNamespace(objective=Mock(is_single=False))
    )
    assert TrialRuns._processes_running(runs) == 4
    nested.start("a node")
    assert TrialRuns._processes_running(runs) == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 60, "max_minutes": 1}, "budget and max_minutes set the same limit; leave out max_minutes"),
        ({"price": 2}, "price needs a budget; give budget too"),
        ({"let_finish": True}, "let_finish has no effect without a budget; give budget too"),
        ({"max_minutes": 1, "price": 2}, "price does not apply to max_minutes; use budget instead"),
        ({"budget": 60, "price": 2, "cost": "tokens"}, "cost and price cannot be combined; leave out"),
        ({"budget": 60, "price": 0}, "price must be a finite number above 0, got 0"),
        ({"budget": 60, "confirm": "2x2"}, "confirm runs after the last planned trial"),
        (
            {"budget": "2h", "price": 2},
            "budget with a price or a cost must be a plain number such as 50 or 2e6, got '2h'",
        ),
        ({"budget": "2M", "cost": "tokens"}, "must be a plain number such as 50 or 2e6, got '2M'"),
        ({"budget": "$50", "price": 2}, r"must be a plain number such as 50 or 2e6, got '\$50'"),
        ({"budget": "inf", "cost": "tokens"}, "must be a plain number"),
        ({"budget": 0, "cost": "tokens"}, "must be a plain number"),
        ({"budget": "50 dollars"}, "budget must be seconds, or a time"),
    ],
)
def test_budgets_that_make_no_sense_are_refused(options, message):
    with pytest.raises(MethodError, match=message):
        RunOptions(**options)


@raybo.objective(space=X, metric="y", mode="max")
def priced(config):
    return {"y": config["x"], "tokens": 10 + 90 * config["x"]}


def test_a_budget_of_what_the_job_says(tmp_path):
    path = tmp_path / "job.db"
    study = tune(priced, budget=1000, cost="tokens", storage=path)
    costs = [trial.details["metrics"]["tokens"] for trial in study.trials]
    assert sum(costs[:-1]) < 1000 <= sum(costs)
    assert study.ended == "the budget of 1,000 tokens is used"
    spent = [event.spent for event in study.events if isinstance(event, Asked)]
    assert spent == pytest.approx([sum(costs[:i]) for i in range(len(costs))])
    assert len(tune(priced, budget=1000, cost="tokens", storage=path).trials) == len(study.trials)
    more = tune(priced, budget=1500, cost="tokens", storage=path)
    assert [event.spent for event in more.events if isinstance(event, Ended)][-1] >= 1500
    assert not any(each.differs for each in replay(more))


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ({}, "it returned no 'tokens'; a trial's cost must be a number above 0"),
        ({"tokens": 0}, "its 'tokens' is 0; a trial's cost must be a number above 0"),
        ({"tokens": "many"}, "its 'tokens' is 'many'; a trial's cost must be a number above 0"),
    ],
)
def test_a_trial_without_its_cost_fails(tokens, reason):
    """Or a budget of it would never end."""

    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="y", mode="min")
    def silent(config):
        return {"y": config["x"], **tokens}

    with pytest.raises(TrialError, match=f"all failed with the same error: {re.escape(reason)}"):
        tune(silent, budget=1000, cost="tokens")


@raybo.objective(space=X, metric="y", mode="max", steps=4)
def stepwise(config):
    for step in range(1, 5):
        yield {"y": config["x"], "tokens": 10.0 * step}


def test_what_pruned_trials_reported_is_their_cost(tmp_path):
    study = tune(
        stepwise,
        budget=300,
        cost="tokens",
        scheduler="median",
        scheduler_options={"startup": 2},
        storage=tmp_path / "a",
    )
    assert study.count(State.PRUNED) >= 2
    used_by_trials = [10.0 * trial.step for trial in study.trials]
    assert sum(used_by_trials[:-1]) < 300 <= sum(used_by_trials)
    assert used(study.events, study.history.budget) == sum(used_by_trials)
    assert next(event.spent for event in study.events if isinstance(event, Ended)) == sum(used_by_trials)
    assert raybo.plots(study).best_by_cost().data[0].x[-1] == sum(used_by_trials)


ROWS = {"rows": raybo.Fidelity(100, 10_000)}


def test_cheap_versions_cost_what_they_return():
    @raybo.objective(space=X, metric="y", mode="max", fidelity=ROWS)
    def cheap(config):
        return {"y": config["x"], "tokens": config["rows"]}

    study = tune(cheap, budget=60_000, cost="tokens", method="auto")
    costs = [trial.fidelity["rows"] for trial in study.trials]
    assert min(costs) < 10_000
    assert sum(costs[:-1]) < 60_000 <= sum(costs)
    assert next(event.spent for event in study.events if isinstance(event, Ended)) == sum(costs)


def test_a_cheap_version_without_its_cost_fails():
    @raybo.objective(space=X, metric="y", mode="max", fidelity=ROWS)
    def silent(config):
        return {"y": config["x"], **({"tokens": 1} if config["rows"] == 10_000 else {})}

    study = tune(silent, trials=4, budget=60_000, cost="tokens", method="auto")
    cheap = [trial for trial in study.trials if trial.fidelity["rows"] < 10_000]
    assert {(trial.state, trial.reason) for trial in cheap} == {
        (State.FAILED, "it returned no 'tokens'; a trial's cost must be a number above 0")
    }


def test_the_cost_is_kept_of_a_result_with_many_numbers():
    @raybo.objective(space=X, metric="y", mode="max")
    def talkative(config):
        return {"y": config["x"], **{f"m{i}": i for i in range(60)}, "tokens": 400}

    assert tune(talkative, budget=1000, cost="tokens").count(State.FINISHED) == 3


def test_trials_that_bring_nothing_end_a_study_without_a_number_of_trials():
    @raybo.objective(space=X, metric="y", mode="max")
    def expires(config):
        number = raybo.current_trial().number
        if number > 2:
            raise ValueError(f"key {number} has expired" if number % 2 else f"try {number} later")
        return {"y": config["x"], "tokens": 1}

    @raybo.objective(space=X, metric="y", mode="max")
    def gives_up(config):
        raise raybo.TrialPruned("not worth it")

    for objective, ran, limit in ((expires, 53, {"budget": "1h"}), (gives_up, 50, {"budget": 9, "cost": "tokens"})):
        study = tune(objective, **limit)
        assert (len(study.trials), study.ended) == (
            ran,
            "the last 50 trials failed or had no cost; use --keep-going (keep_going=True) to continue",
        )
    assert len(tune(gives_up, trials=60, budget=9, cost="tokens").trials) == 60


def test_a_number_means_what_it_meant_in_the_journal(tmp_path):
    path = tmp_path / "job.db"
    tune(priced, budget=200, cost="tokens", storage=path)
    with pytest.raises(JournalError, match="its budget is 200 tokens; give --cost tokens too, or a time by --max-min"):
        tune(priced, budget=400, storage=path)
    more = tune(priced, trials=20, storage=path)
    assert (more.history.cost, more.history.budget) == ("tokens", None)
    assert tune(priced, max_minutes=60, trials=21, storage=path).history.budget == Budget(3600.0)


def test_nothing_is_confirmed_once_the_budget_is_used():
    def job(config):
        time.sleep(0.3)
        return config["x"]

    for let_finish in (False, True):
        seen = []
        objective = raybo.objective(space=X, metric="y", mode="max")(job)
        study = tune(objective, trials=90, budget=1.0, confirm="2x2", let_finish=let_finish, watch=seen.append)
        assert not any(trial.origin == "confirmed" for trial in study.trials)
        notes = [note for status in seen for note in status.notes]
        assert any(note.endswith("is used, so that 4 runs to confirm the best were left out") for note in notes), notes


def test_the_display_says_how_many_more_trials_a_cost_allows():
    seen = []

    def job(config):
        time.sleep(0.3)
        return {"y": config["x"], "tokens": 50}

    tune(raybo.objective(space=X, metric="y", mode="max")(job), budget=500, cost="tokens", watch=seen.append)
    told = {(status.budget[0], status.still) for status in seen if status.still is not None}
    assert told
    assert all(still == (500 - spent) / 50 for spent, still in told)


def test_a_cost_that_is_tuned_is_refused():
    with pytest.raises(MethodError, match="cost must be a number other than what is tuned, and 'y' is tuned"):
        tune(priced, budget=1000, cost="y")


def test_what_the_job_says_is_seen(tmp_path):
    study = tune(priced, budget=1000, cost="tokens", method="auto", storage=tmp_path / "job.db")
    table = text_of(trials_table(study, study.trials))
    assert "tokens" in table.splitlines()[1]
    assert f"{study.trials[0].details['metrics']['tokens']:.4g}" in table
    line = raybo.plots(study).best_by_cost().data[0]
    assert line.x[-1] == pytest.approx(sum(trial.details["metrics"]["tokens"] for trial in study.trials))
    assert line.y[-1] == study.best.value
    tags = study.trials[-1].tags
    assert tags["takes_of"] == "tokens"
    assert "tokens, " in study.explain(study.trials[-1])


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("limit", [{"budget": "20s"}, {"budget": 0.04, "price": 3.6}])  # two workers: 20 seconds too
def test_a_budget_is_kept_on_ray(limit):
    @raybo.objective(space=X, metric="y", mode="max")
    def uneven(config):
        time.sleep(0.1 + 2 * config["x"])
        return config["x"]

    tune(job, in_process=False, workers=2, trials=4)  # Ray keeps its workers, which a busy machine starts late
    with longest_pause() as pause:
        study = tune(uneven, in_process=False, workers=2, **limit)
    end = study.events[-1]
    assert isinstance(end, Ended)
    budget = study.history.budget
    late = 3 * pause.seconds / 20  # what runs is told to end, ends, and is seen to have ended
    assert 0.95 <= end.spent / budget.amount <= 1.02 + late
    assert study.count(State.STOPPED) <= 2  # none if both workers waited for a proposal
    assert study.count(State.FINISHED, State.STOPPED) == len(study.trials)
    assert len(study.trials) > 4 or pause.seconds > 0.5
    assert not any(each.differs for each in replay(study))


def test_a_trial_that_was_retried_costs_twice_and_counts_once(tmp_path):
    path, broken = tmp_path / "job.db", tmp_path / "broken"
    broken.touch()

    @raybo.objective(space=X, metric="loss", mode="min")
    def mended(config):
        if raybo.current_trial().number == 2 and broken.exists():
            raise ValueError("broken")
        return {"loss": config["x"], "cost": 5.0}

    tune(mended, trials=5, storage=path)
    broken.unlink()
    study = tune(mended, trials=6, storage=path, retry_failed=True, budget=1_000, cost="cost")
    line = raybo.plots(study).best_by_cost().data[0]
    values = [trial.value for trial in study.trials]
    in_order = [values[number] for number in (0, 1, 3, 4, 2, 5)]
    assert list(line.x) == [5, 10, 15, 20, 25, 30, 30]
    assert list(line.y[:-1]) == list(np.minimum.accumulate(in_order))
    assert curve("job", Followed(path))["steps"][-1][0] == 6
