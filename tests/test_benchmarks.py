"""Benchmarks: what a figure says, the table and the command lines, and searches; the smallest of them are run."""

from __future__ import annotations

import importlib
import inspect
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import carps
from benchmarks.__main__ import NAMES
from benchmarks.apart import measured
from benchmarks.faults import recoveries
from benchmarks.figures import Figure, at_least, at_most, missing, table, timed
from benchmarks.searches import parse_method, published, search, simple_regret
from raybo.methods import METHODS
from tests.faults.__main__ import table as faults_table
from tests.faults.harness import Report
from tests.faults.plan import Kind, studies
from trials.context import ackley
from trials.papers.unknown_hyperparameters import ALGORITHM_1, TRAP
from trials.synthetic import branin

ROOT = Path(__file__).parents[1]


def shown(*rows: tuple[str, Figure, float]) -> str:
    text = io.StringIO()
    Console(file=text, width=160).print(table("a title", rows))
    return text.getvalue()


def test_a_target_is_met_or_not():
    assert at_least(5, 5.0, "speed").met is True
    assert at_least(5, 4.9, "speed") == Figure("speed", "4.90 times", "at least 5 times", False)
    assert at_most(10, 3.0, "memory", "kB", "of two") == Figure("memory", "3.00 kB (of two)", "at most 10 kB", True)
    assert at_most(10, 31_234.5, "regret", "") == Figure("regret", "31,234", "at most 10", False)
    assert at_most(1.0, np.float64(2.0), "regret").met is False  # not numpy's
    assert missing("speed", "botorch", "at least 5").met is None


def test_the_table_tells_every_figure():
    rows = [
        ("one", Figure("speed", "4.9 times", "at least 5 times", False), 12.2),
        ("one", Figure("memory", "3 kB", "at most 10 kB", True), 0.1),
        ("two", missing("time", "botorch"), 0.0),
    ]
    text = shown(*rows)
    assert [text.count(name) for name in ("one", "two", "speed", "left out: botorch is not installed")] == [1, 1, 1, 1]
    (speed,) = (line for line in text.splitlines() if "speed" in line)
    assert [cell.strip() for cell in speed.split("│")[2:-1]] == ["speed", "4.9 times", "at least 5 times", "no", "12"]
    (memory,) = (line for line in text.splitlines() if "memory" in line)
    assert [cell.strip() for cell in memory.split("│")[-3:-1]] == ["yes", ""]


def test_what_is_measured_is_timed_figure_by_figure():
    found = list(timed(iter([Figure("a", "1"), Figure("b", "2")])))
    assert [figure.what for figure, _ in found] == ["a", "b"]
    assert all(seconds >= 0.0 for _, seconds in found)


def test_every_benchmark_is_in_the_table():
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    parts = {
        "apart",
        "budget_problems",
        "classification",
        "clockwork",
        "early_problems",
        "early_runs",
        "figures",
        "goal_rivals",
        "lcbench",
        "next_guesses",
        "rows",
        "rows_jobs",
        "searches",
        "stops",
    }
    assert set(NAMES) == modules - {"__init__", "__main__"} - parts


@pytest.mark.parametrize("name", NAMES)
def test_benchmarks_depend_only_on_their_arguments(name):
    module = importlib.import_module(f"benchmarks.{name}")
    parameters = inspect.signature(module.figures, eval_str=True).parameters
    for parameter in parameters.values():
        assert parameter.annotation in (int, float, str)
        assert type(parameter.default) is parameter.annotation
    for key, value in (*module.QUICK.items(), *getattr(module, "IN_BRIEF", {}).items()):
        assert type(value) is parameters[key].annotation
        assert value != parameters[key].default
    assert module.__doc__


def test_methods_named_by_benchmarks_exist():
    from benchmarks import early, goals, local_defaults
    from benchmarks.goal_rivals import RIVALS

    assert set(goals.IN_BRIEF["methods"].split(",")) <= {*METHODS, *RIVALS}
    assert set(local_defaults.IN_BRIEF["methods"].split(",")) <= {*METHODS}
    assert set(early.IN_BRIEF["entries"].split(",")) <= set(early.ENTRIES.split(","))


@pytest.mark.slow
def test_benchmarks_run_in_their_own_processes():
    """The least of them, to its end."""
    line = [sys.executable, "-m", "benchmarks", "--quick", "--only", "startup"]
    text = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=250, check=True).stdout
    assert "quick: fewer seeds" in text
    for what in ("import raybo", "raybo --help", "at most 0.3 s", "targets are met"):
        assert what in text


def test_one_that_fails_is_told_of():
    ((figure, _),) = measured("no_such_benchmark", quick=True)
    assert figure.met is False
    assert "failed" in figure.measured


def test_carps_is_left_out_where_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "carps", None)
    (figure,) = carps.figures()
    assert figure.measured == "left out: carps is not installed"


@pytest.mark.slow
def test_a_command_line_takes_the_parameters(tmp_path):
    line = [sys.executable, "-m", "benchmarks.suggestion", "--sizes", "12", "--asks", "2", "--dimensions", "2"]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=250, check=True)
    assert "an ask of gp-ucb, n = 12, d = 2" in ended.stdout
    assert "an ask of gp-ucb, n = 12, d = 2" in ended.stderr  # as it is measured
    helped = subprocess.run([*line[:3], "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "--dimensions INT" in helped.stdout
    assert "scikit-learn" in helped.stdout


def test_recovery_times_are_parsed_from_the_fault_harness():
    planned = next(studies(1, hosts=False, disk=False))
    reports = [Report(planned, recoveries=[(Kind.ACTOR, seconds) for seconds in (1.0, 2.5, 2.0)]), Report(planned)]
    said = faults_table(reports, set(Kind), None, 0, 60.0)
    found = "2.0 s median, 2.5 s longest, of 3"
    assert recoveries(said) == [(f"{Kind.ACTOR}, {planned.place}", found)]


# ---- searches


def test_a_search_is_told_what_it_asks_for():
    found = search(branin, "random", seed=1, trials=12)
    values = found.metric(branin.metric)
    assert len(found.seconds) == len(values) == 12
    assert values[found.best] == values.min()
    assert simple_regret("branin", "random", 12, {}, 1) == pytest.approx(values.min() - 0.397887, abs=1e-5)


def test_blind_searches_get_no_context():
    assert len(search(ackley, "sbo-kde", 0, 4, {"initial": 3}).results) == 4
    with pytest.raises(Exception, match="sbo-kde needs a context"):
        search(ackley, "sbo-kde", 0, 4, {"initial": 3}, context=False)


def test_an_experiment_is_run_as_published():
    found = published(TRAP, ALGORITHM_1, seed=3, trials=6)
    again = published(TRAP, ALGORITHM_1, seed=3, trials=6)
    assert len(found.results) == 6
    assert found.results == again.results


def test_methods_have_options_after_a_colon():
    assert parse_method("gp-ucb:solver=lbfgsb:initial=3") == ("gp-ucb", {"solver": "lbfgsb", "initial": "3"})
    assert parse_method("auto") == ("auto", {})
