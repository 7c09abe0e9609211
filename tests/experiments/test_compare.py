"""A comparison runs from the command line on a real Ray, and is continued and extended."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from raybo.cli.comparing import _chosen
from raybo.common.errors import MethodError, ObjectiveError
from raybo.experiments.papers import find_experiments

ROOT = Path(__file__).parents[2]
JOB = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="v", mode="min")
def job(config, *, shift=0.0):
    with open("calls", "a") as file:
        file.write("x")
    return (config["x"] - 0.3) ** 2 + shift
"""


def raybo_command(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "raybo.cli", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=170, check=False)


@pytest.mark.slow
@pytest.mark.ray
def test_compare_writes_its_results_and_continues(tmp_path):
    Path(tmp_path, "job.py").write_text(JOB)
    options = [
        "compare",
        "job.py",
        "--methods",
        "random,ei:initial=3",
        "--trials",
        "8",
        "--optimum",
        "1",
        "--set",
        "shift=1",
    ]
    first = raybo_command(tmp_path, *options, "--repeats", "1")
    assert first.returncode == 0, first.stderr
    assert "ei:initial=3 ends better than random: not judged (1 pair of runs, 6 are needed)" in first.stdout
    assert Path(tmp_path, "calls").stat().st_size == 16
    more = raybo_command(tmp_path, *options, "--repeats", "2")
    assert more.returncode == 0, more.stderr
    assert Path(tmp_path, "calls").stat().st_size == 32
    out = Path(tmp_path, "compare-job")
    assert {"runs.csv", "curves.csv.gz", "figure.png", "README.md", "runs"} == {file.name for file in out.iterdir()}
    assert len(Path(out, "runs.csv").read_text().splitlines()) == 5


def test_a_wrong_method_is_refused_at_once(tmp_path):
    Path(tmp_path, "job.py").write_text(JOB)
    ended = raybo_command(tmp_path, "compare", "job.py", "--methods", "random,gp-ucbb")
    assert ended.returncode == 2
    assert ended.stderr.strip() == "Error: there is no method 'gp-ucbb'; did you mean 'gp-ucb'?"


def test_spaces_between_methods_are_none_of_their_names(tmp_path):
    Path(tmp_path, "job.py").write_text(JOB)
    ended = raybo_command(tmp_path, "compare", "job.py", "--methods", "random, random", "--in-process")
    assert ended.stderr.strip() == "Error: compare: method 'random' is named twice; each needs a name of its own"


def test_outside_a_clone_there_is_nothing_to_reproduce(tmp_path):
    with pytest.raises(ObjectiveError, match="inside a clone"):
        find_experiments(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "mine.py: does not import: ZeroDivisionError: division by zero"),
        ("EXPERIMENTS = 3", "mine.py: EXPERIMENTS must be a list of experiments and figures, got 3"),
        ("EXPERIMENTS = ['fig1']", "mine.py: EXPERIMENTS must hold Experiment and Figure, got 'fig1'"),
    ],
)
def test_a_file_without_experiments_is_named(text, message, tmp_path):
    (tmp_path / "trials" / "papers").mkdir(parents=True)
    (tmp_path / "trials" / "papers" / "mine.py").write_text(text)
    with pytest.raises(ObjectiveError, match=re.escape(message)):
        find_experiments(tmp_path)


def test_an_experiment_of_two_patterns_is_chosen_once():
    known = dict.fromkeys(["a-one", "a-two", "b-one"])
    assert _chosen(("a-*", "*-one"), False, known) == ["a-one", "a-two", "b-one"]
    with pytest.raises(MethodError, match="no experiment 'c-"):
        _chosen(("a-*", "c-*"), False, known)
