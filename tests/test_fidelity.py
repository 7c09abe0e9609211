"""Cheap versions of a job: who runs at which fidelity, what a journal keeps of it, and what is never the best."""

from __future__ import annotations

import math

import pytest

import raybo
from raybo.common.errors import MethodError, ObjectiveError, RayboError, SpaceError, TrialError
from raybo.record.events import Planned
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.study.replay import replay

SPACE = {"x": raybo.Float(0, 1), "kind": raybo.Categorical(["a", "b"])}
ROWS = {"rows": raybo.Fidelity(10, 1_000)}
LADDER = (10, 100, 1_000)


def loss(x, kind, rows, misleads=0.0):
    """Lower with more rows for all alike; with `misleads`, few rows also prefer the wrong x."""
    few = math.log10(1_000 / rows) / 2
    return (x - 0.3 - misleads * few) ** 2 + 0.1 * (kind == "b") + 0.3 * few


def run(searcher, trials, **how):
    while len(searcher.trials) < trials:
        trial = searcher.ask()
        searcher.tell(trial, loss(**trial.config, **trial.fidelity, **how))
    return searcher


def run_plainly(searcher, trials):
    while len(searcher.trials) < trials:
        trial = searcher.ask()
        searcher.tell(trial, loss(**trial.config, rows=1_000))
    return searcher


def at(searcher):
    return [trial.fidelity["rows"] for trial in searcher.trials]


@raybo.objective(space=SPACE, metric="loss", mode="min", fidelity=ROWS)
def job(config):
    return {"loss": loss(**config), "rows": config["rows"]}


def tune(objective=job, **arguments):
    return raybo.tune(objective, **{"in_process": True, "seed": 0, **arguments})


def test_levels_are_about_three_times_apart():
    assert raybo.Fidelity(1_000, 100_000).levels == (1_000, 3_162, 10_000, 31_623, 100_000)
    assert raybo.Fidelity(1, 2).levels == (1, 2)
    assert raybo.Fidelity(5, 6).levels == (5, 6)
    assert raybo.Fidelity(10, 1_000).place(100) == pytest.approx(0.5)


def test_cheap_trials_inform_whole_runs():
    searcher = run(Searcher(SPACE, mode="min", seed=0, fidelity=ROWS), 24)
    rows = at(searcher)
    assert rows[:10] == [1_000] + [10] * 9  # the middle of the space, and a design
    later = searcher.trials[10:]
    assert all(trial.config["kind"] == "a" for trial in later if trial.fidelity == {"rows": 1_000})
    assert searcher.best.value < 1e-3
    assert sum(rows) < 0.7 * 24 * 1_000


def test_a_cheap_trial_is_never_the_best():
    searcher = Searcher(SPACE, mode="max", seed=0, fidelity=ROWS)
    searcher.fail(searcher.ask(), "the whole run diverged")
    trial = searcher.ask()
    assert (trial.fidelity, trial.config.keys()) == ({"rows": 10}, {"x", "kind"})
    told = searcher.tell(trial, 99.0)
    assert (told.state, told.value, told.reports) == (State.PRUNED, None, [(10, 99.0)])
    assert told.reason == "value 99 at 10 of 1,000 rows"
    with pytest.raises(TrialError, match="no whole run has finished yet"):
        _ = searcher.best
    with pytest.raises(TrialError, match="no whole run has finished yet"):
        _ = searcher.recommended
    searcher.add({"x": 0.5, "kind": "a"}, 0.1)
    assert searcher.best.value == searcher.recommended.value == 0.1
    assert searcher.best.fidelity == {"rows": 1_000}


def test_the_last_planned_trial_is_a_whole_run():
    for trials in (1, 3, 7):
        searcher = run(Searcher(SPACE, mode="min", seed=0, fidelity=ROWS, trials=trials), trials)
        assert at(searcher)[-1] == 1_000
        assert searcher.best.value is not None


def test_few_rows_that_mislead_do_no_lasting_harm():
    searcher = run(Searcher(SPACE, mode="min", seed=1, fidelity=ROWS), 24, misleads=0.7)
    assert searcher.best.value < 1e-3
    assert abs(searcher.recommended.config["x"] - 0.3) < 0.1


def test_workers_get_different_configurations():
    searcher = run(Searcher(SPACE, mode="min", seed=0, fidelity=ROWS), 14)
    asked = searcher.ask(8)
    assert len({(trial.config["x"], trial.config["kind"], *trial.fidelity.values()) for trial in asked}) == 8


def test_a_failed_look_is_not_taken_up():
    searcher = Searcher(SPACE, mode="min", seed=0, fidelity=ROWS)
    for _ in range(24):
        trial = searcher.ask()
        if trial.config["kind"] == "a":
            searcher.fail(trial, "it diverged")
        else:
            searcher.tell(trial, loss(**trial.config, **trial.fidelity))
    assert searcher.best.config["kind"] == "b"
    failed = {trial.config["x"] for trial in searcher.trials if trial.state is State.FAILED}
    assert len(failed) == searcher.ledger.count(State.FAILED)  # each configuration once


def test_the_end_of_a_budget_is_for_whole_runs():
    searcher = Searcher(SPACE, mode="min", seed=0, fidelity=ROWS)
    searcher.apply(Planned(budget=20.0))
    for _ in range(12):
        asked = searcher.apply(searcher.propose(searcher.history, spent=0.1))
        trial = searcher.trials[asked.trial]
        rows = trial.fidelity["rows"]
        searcher.tell(trial, loss(**trial.config, rows=rows), seconds=rows / 1_000)
    assert searcher.propose(searcher.history, spent=15.0).tags["look_because"] != "end"
    last = searcher.propose(searcher.history, spent=18.5)
    assert (last.fidelity, last.tags["look_because"]) == (None, "end")


def test_the_best_looks_go_on():
    searcher = run(Searcher(SPACE, mode="min", seed=0, fidelity=ROWS), 60)
    ran = {rows: [trial for trial in searcher.trials if trial.fidelity == {"rows": rows}] for rows in LADDER}
    assert sum(map(len, ran.values())) == 60  # no other level: a rung costs a quarter of the next at most
    assert 0 < len(ran[1_000]) < len(ran[100]) < len(ran[10])
    for trial in ran[100]:
        assert any(earlier.config == trial.config for earlier in ran[10])


def test_looks_that_save_little_are_left_alone():
    plain = Searcher(SPACE, mode="min", seed=0)
    searcher = Searcher(SPACE, mode="min", seed=0, fidelity=ROWS)
    for _ in range(9):
        trial = searcher.ask()
        searcher.tell(trial, loss(**trial.config, **trial.fidelity), seconds=0.3 + 0.7 * trial.fidelity["rows"] / 1_000)
    assert at(searcher) == [1_000, 10] + [1_000] * 7
    assert searcher.trials[-1].tags.keys() == run_plainly(plain, 8).trials[-1].tags.keys()  # of whole runs alone


def test_seconds_tell_what_a_fidelity_saves():
    def looks(seconds):
        searcher = Searcher(SPACE, mode="min", seed=0, fidelity=ROWS)
        while len(searcher.trials) < 24:
            trial = searcher.ask()
            told = searcher.tell(trial, loss(**trial.config, **trial.fidelity), seconds=seconds(**trial.fidelity))
            assert told.seconds == seconds(**trial.fidelity)
        return sum(rows < 1_000 for rows in at(searcher)[10:])

    assert looks(lambda rows: 1.0) == 0 < looks(lambda rows: rows / 1_000)
    searcher = Searcher(SPACE, seed=0)
    with pytest.raises(TrialError, match="trial 0: seconds"):
        searcher.tell(searcher.ask(), 0.5, seconds=-1)


def test_a_kept_searcher_continues_and_is_replayed(tmp_path):
    path = tmp_path / "kept.db"
    free = run(Searcher(SPACE, mode="min", seed=3, fidelity=ROWS), 16)
    for trials in (5, 12, 16):
        with Searcher(
            *([SPACE] if trials == 5 else []), mode="min", storage=path, seed=3, fidelity=ROWS if trials == 5 else None
        ) as kept:
            run(kept, trials)
    study = raybo.load(path)
    assert [trial.fidelity for trial in study.trials] == [trial.fidelity for trial in free.trials]
    assert not any(each.differs for each in replay(study))
    assert "at 1,000 rows" in study.explain(0)
    assert "at 10 rows" in study.explain(1)
    assert study.to_dataframe()["fidelity"].tolist() == at(free)


def test_a_job_finds_the_fidelity_in_its_configuration(tmp_path):
    study = tune(trials=14, storage=tmp_path / "job.db")
    cheap = [trial for trial in study.trials if trial.state is State.PRUNED]
    assert cheap
    for trial in cheap:
        ((rows, value),) = trial.reports
        assert trial.fidelity == {"rows": rows}
        assert value == pytest.approx(loss(**trial.config, rows=rows))
    assert study.best.fidelity == {"rows": 1_000}
    assert not any(each.differs for each in replay(study))
    more = tune(trials=18, seed=None, storage=tmp_path / "job.db")
    assert more.count(State.FINISHED, State.PRUNED) == 18


@pytest.mark.parametrize("changes", ["takes it out", "changes it"])
def test_a_job_may_change_its_configuration(tmp_path, changes):
    @raybo.objective(space=SPACE, metric="loss", mode="min", fidelity={"rows": raybo.Fidelity(10, 1_000)})
    def careless(config):
        rows = config.pop("rows")
        if changes == "changes it":
            config["rows"] = rows - 1
        return loss(**{**config, "rows": rows})

    study = raybo.tune(careless, trials=6, seed=0, in_process=True)
    assert {trial.state for trial in study.trials} == {State.FINISHED, State.PRUNED}
    assert {step for trial in study.trials for step, _ in trial.reports} <= {10, 30, 100, 300}


@pytest.mark.ray
def test_workers_run_cheap_versions(ray_session):
    study = tune(trials=4, in_process=False, workers=1)
    whole, cheap = study.trials[:2]
    assert [trial.fidelity["rows"] for trial in study.trials][::3] == [1_000, 1_000]
    assert whole.value == pytest.approx(loss(**whole.config, rows=1_000))
    assert whole.details["metrics"]["rows"] == 1_000
    assert (cheap.state, cheap.value) == (State.PRUNED, None)
    assert cheap.reports == [(10, pytest.approx(loss(**cheap.config, rows=10)))]


def test_confirming_runs_are_whole_runs():
    study = tune(trials=14, confirm=(2, 2))
    again = [trial for trial in study.trials if "confirms" in trial.tags]
    assert [trial.fidelity["rows"] for trial in again] == [1_000] * 4


@raybo.objective(space=SPACE, metric="loss", mode="min", fidelity=ROWS)
def bad(config, *, how="nan"):
    if how == "yields":
        return iter_steps()
    return {"nan": math.nan, "missing": {}, "text": "much"}[how]


def iter_steps():
    yield 1.0


@pytest.mark.parametrize("how", ["nan", "missing", "text", "yields"])
def test_a_cheap_version_without_a_value_fails(how):
    study = tune(bad, trials=3, settings={"how": how}, keep_going=True)
    assert study.count(State.FAILED) == 3


def test_a_text_is_read_as_on_the_command_line():
    plain = raybo.objective(space=SPACE, metric="loss", mode="min")(job.function)
    study = tune(plain, trials=2, fidelity="rows=10:1000")
    assert study.description.fidelity == ROWS


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": raybo.Fidelity(1, 3)}, "'x' is a parameter of the space too"),
        ({"rows": 3}, "rows must be a raybo.Fidelity"),
        ({"rows": raybo.Fidelity(1, 3), "folds": raybo.Fidelity(1, 3)}, "takes one name, got 2"),
        ("rows", "takes NAME=LOW:HIGH, such as rows=1000:100000, got 'rows'"),
        ("rows=9:3", "low must be below high, got 9 and 3"),
        (7, "fidelity must be a dict"),
    ],
)
def test_a_wrong_fidelity_is_refused(given, message):
    with pytest.raises(MethodError, match=message):
        Searcher(SPACE, fidelity=given)
    with pytest.raises(ObjectiveError, match=message):
        tune(trials=1, fidelity=given)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"method": "random"}, "random does not choose a fidelity"),
        ({"metrics": {"a": "max", "b": "min"}}, "does not go with several metrics"),
        ({"context": {"c": raybo.Float(0, 1)}}, "does not go with a context"),
        ({"steps": 3}, "does not go with steps"),
    ],
)
def test_what_does_not_go_with_it_is_refused(others, message):
    with pytest.raises(RayboError, match=message):
        Searcher(SPACE, fidelity=ROWS, **others)


def test_a_range_without_sense_is_refused():
    for low, high in ((0, 5), (5, 5), (1.5, 5)):
        with pytest.raises(SpaceError, match="Fidelity: "):
            raybo.Fidelity(low, high)


def test_reports_are_refused():
    searcher = Searcher({"x": raybo.Float(0, 1)}, seed=0, fidelity={"epochs": raybo.Fidelity(3, 81)})
    trial = searcher.ask()
    with pytest.raises(TrialError, match="a study with a fidelity has no steps to report"):
        searcher.report(trial, 1.0)
    assert searcher.tell(trial, 1.0).value == 1.0
