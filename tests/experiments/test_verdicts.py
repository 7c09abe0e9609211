"""Claims, curves and tables are computed correctly from studies made by hand."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

import raybo
from raybo.experiments import Claim, Entry, Experiment, Problem, page, table
from raybo.experiments.compare import compare, pairwise
from raybo.experiments.curves import read_curves, write_curves
from raybo.experiments.measures import curve, measure, optimum, values
from raybo.experiments.output import runs_in_words, write
from raybo.experiments.page import as_table
from raybo.experiments.plan import HeldOut
from raybo.experiments.results import Row, measured, read_rows, write_rows
from raybo.experiments.run import Run, file_name, runs, trials_wanted
from raybo.experiments.summary import summary
from raybo.experiments.verdicts import (
    LEVEL,
    decidable,
    difference_of_shares,
    holm,
    judge,
    mcnemar,
    paired_test,
    typical,
    word_of,
)
from raybo.record.description import Description
from raybo.record.events import KINDS, Asked, Failed, Kind, Stopped, Told
from raybo.record.goals import Goals
from raybo.record.trial import Trial
from raybo.study.study import Study

SPACE = raybo.Space({"x": raybo.Float(0, 1)})
SPENT = {"suggest_seconds": 9.0, "suggest_processor_seconds": 0.25}


def study_of(outcomes, mode="max") -> Study:
    """A study whose trials ended with these values; None for a failed one."""
    events = []
    for number, value in enumerate(outcomes):
        data = {"x": [0.5], "values": [0.5], "tags": {}, "seen": 0, **SPENT}
        events.append(Asked.of(number, data))
        if value is None:
            events.append(Failed(number, reason="no"))
        else:
            events.append(Told(number, value=value))
    return Study(Description("job", Goals(("v",), (mode,)), SPACE, "random", 0), events)


def experiment(results, *, mode="max", claims=(), problem=None, curve="best_value"):
    """An experiment and its studies; results maps an entry's name to its repeats' outcomes."""
    problem = problem or Problem("p", "job.py", trials=3, optimum=10.0 if mode == "max" else 0.0)
    entries = [Entry(name, "random") for name in results]
    repeats = len(next(iter(results.values())))
    plan = Experiment("e", "title", [problem], entries, repeats, claims, curve)
    studies = {run: study_of(results[run.entry.name][run.seed], mode) for run in runs(plan, Path("out"))}
    return plan, studies


def test_failed_trials_count_as_the_worst_seen():
    np.testing.assert_array_equal(values(study_of([3.0, None, 1.0])), [3.0, 1.0, 1.0])
    np.testing.assert_array_equal(values(study_of([3.0, None, 1.0], "min")), [3.0, 3.0, 1.0])


def test_a_stopped_trial_counts_for_nothing():
    study = study_of([3.0, 1.0])
    number = len(study.trials)
    asked = {"x": [0.5], "values": [0.5], "tags": {}, "seen": 0, **SPENT}
    stopped = [Asked.of(number, asked), Stopped(number, reason="Ctrl-C")]
    study = Study(study.description, [*study.events, *stopped])
    np.testing.assert_array_equal(values(study), [3.0, 1.0])
    assert trials_wanted(study, 2) is None
    assert trials_wanted(study, 3) is not None


@pytest.mark.parametrize(("mode", "best"), [("max", [3.0, 3.0, 4.0]), ("min", [3.0, 1.0, 1.0])])
def test_curves_of_values_and_regret(mode, best):
    problem, study = Problem("p", "job.py", 3, initial=1), study_of([3.0, 1.0, 4.0], mode)
    target = 5.0 if mode == "max" else 0.0
    np.testing.assert_array_equal(curve("best_value", study, problem, target), best)
    np.testing.assert_array_equal(curve("simple_regret", study, problem, target), np.abs(target - np.array(best)))
    regret = np.abs(target - np.array([1.0, 4.0]))
    np.testing.assert_array_equal(curve("cumulative_regret", study, problem, target), np.cumsum(regret))
    assert measure("processor_seconds", study, problem, target) == 0.75


@pytest.mark.parametrize("mode", ["max", "min"])
def test_another_metric_may_be_what_is_measured(mode):
    """The lucky trial has the best value, and neither the best expectation nor that of the recommendation."""
    sign = 1.0 if mode == "max" else -1.0
    events = []
    for number, (value, expected) in enumerate([(1.0, 3.0), (9.0, 1.0), (None, None), (2.0, 2.0)]):
        asked = {"x": [0.5], "values": [0.5], "tags": {}, "seen": 0, **SPENT}
        outcome = {"reason": ""} if value is None else {"value": sign * value, "metrics": {"expected": sign * expected}}
        events += [
            Asked.of(number, asked),
            KINDS[Kind.FAILED if value is None else Kind.TOLD].of(number, outcome),
        ]
    study = Study(Description("job", Goals(("v",), (mode,)), SPACE, "random", 0), events)
    problem = Problem("p", "job.py", 4, optimum=5.0 * sign, metric="expected")
    np.testing.assert_array_equal(values(study, "expected"), sign * np.array([3.0, 1.0, 1.0, 2.0]))
    np.testing.assert_array_equal(curve("cumulative_regret", study, problem, 5.0 * sign), [2.0, 6.0, 10.0, 13.0])
    assert measure("final_regret", study, problem, 5.0 * sign) == 2.0
    assert study.best.number == 1
    assert measure("recommended_regret", study, problem, 5.0 * sign) == 4.0
    plan = Experiment("e", "title", [problem], [Entry("a", "random")], 1, curve="cumulative_regret")
    heading, (row,) = table(plan, measured(plan, {Run(problem, plan.entries[0], 0, Path("a.db")): study}))
    assert dict(zip(heading, row, strict=True))["regret of the recommendation"].startswith("4 ")


@pytest.mark.parametrize(("mode", "best"), [("max", 9.0), ("min", 1.0)])
def test_unknown_optimum_is_the_best_of_all_runs(mode, best):
    problem = Problem("p", "job.py", 2)
    plan, studies = experiment({"a": [[3.0, 9.0]], "b": [[1.0, 2.0]]}, mode=mode, problem=problem)
    assert optimum(plan.problems[0], studies) == best


@pytest.mark.parametrize("mode", ["max", "min"])
def test_claims_hold_fail_or_stay_undecided(mode):
    better = [[9.0 + 0.01 * r] for r in range(12)]
    worse = [[5.0 + 0.02 * r] for r in range(12)]
    if mode == "min":
        better, worse = worse, better
    claims = [
        Claim("a is better", "final_value", "a", "b"),
        Claim("b is better", "final_value", "b", "a"),
        Claim("a has less regret", "final_regret", "a", "b"),
        Claim("b has at most 1.1 times a's regret", "final_regret", "b", "a", factor=1.1),
        Claim("b has at most 50 times a's regret", "final_regret", "b", "a", factor=50.0),
        Claim("a is faster", "processor_seconds", "a", "b"),
    ]
    plan, studies = experiment({"a": better, "b": worse}, mode=mode, claims=claims)
    words = [verdict.word for verdict in judge(plan, measured(plan, studies))]
    assert words == ["holds", "does not hold", "holds", "does not hold", "holds", "undecided"]


def test_five_pairs_of_runs_judge_nothing():
    claims = [Claim("a is better", "final_value", "a", "b", ["p"])]
    for repeats, word in ((5, "not judged"), (6, "holds")):
        plan, studies = experiment({"a": [[9.0]] * repeats, "b": [[5.0]] * repeats}, claims=claims)
        rows = measured(plan, studies)
        (verdict,) = judge(plan, rows)
        assert (verdict.word, verdict.repeats) == (word, repeats)
        text = page(plan, rows)
        assert ("| 6 | 9 | 5 | 4 [4, 4] | 0.031 | **holds** |" in text) == (word == "holds")
        assert ("Not judged, with fewer than 6 pairs of runs: 1 of 1 claims." in text) == (word == "not judged")
        assert ("## Claims" in text) == (word == "holds")


def test_claims_page_omits_verdicts_of_few_runs(tmp_path):
    claims = [Claim("a is better", "final_value", "a", "b"), Claim("a is better than c", "final_value", "a", "c")]
    results = {"a": [[9.0]] * 6, "b": [[5.0]] * 6, "c": [[5.0]] * 6}
    plan, studies = experiment(results, claims=claims)
    rows = [row for row in measured(plan, studies) if row.method != "c" or row.seed < 5]
    for name, selected in (("six", rows), ("five", [row for row in rows if row.seed < 5])):
        (tmp_path / name).mkdir()
        write_rows(selected, tmp_path / name)
    text = summary({name: replace(plan, name=name, hours=0.3) for name in ("five", "six")}, tmp_path)
    assert "| a is better | p 4 [4, 4] |  |  |  |" in text
    assert "| a is better than c |  |  |  | p |" in text
    assert "`raybo reproduce six --repeats 6`" in text
    assert "raybo reproduce five" not in text
    assert "| [five](five/README.md) | title | 5 | 0.3 |" in text


@given(st.lists(st.integers(0, 14), min_size=1, max_size=40))
@example([6, 7, 7, 7])  # three with seven pairs each could be decided if the one with six were not
def test_only_decidable_claims_are_judged(pairs):
    """By Holm's method on the least p-values there are: those of runs that all say the same."""
    judged = decidable(pairs)
    least = np.array([2.0 ** (1 - n) for n in pairs])
    mask = np.array(judged)
    assert (holm(least[mask]) < LEVEL).all()
    for n in {n for n, is_judged in zip(pairs, judged, strict=True) if not is_judged}:
        among = mask | (np.array(pairs) == n)  # the smallest family that it could be in
        assert not (holm(least[among])[np.array(pairs)[among] == n] < LEVEL).any()


def test_mcnemar_p_values_and_intervals_are_calibrated():
    """Against all signs that the discordant pairs could have; the interval covers the truth as often as it says."""
    differences = np.array([1.0] * 9 + [-1.0] * 2 + [0.0] * 29)
    ups = np.array([sum(signs) for signs in itertools.product((0, 1), repeat=11)])
    assert mcnemar(differences) == pytest.approx(2 * np.mean(ups >= 9))
    assert mcnemar(np.zeros(7)) == 1.0
    estimate, low, high = difference_of_shares(differences)
    assert estimate == pytest.approx(7 / 40)
    assert low < estimate < high
    rng = np.random.default_rng(0)
    drawn = rng.choice([1.0, 0.0, -1.0], p=[0.3, 0.6, 0.1], size=(2000, 40))
    covered = [low <= 0.2 <= high for _, low, high in map(difference_of_shares, drawn)]
    assert 0.93 < np.mean(covered) < 0.98


def test_cost_verdicts_need_a_clear_difference():
    """Those of a run depend on what else the machine does; 1.3 times is not enough, 2 times is."""
    for cost, words in ((1.3, ["undecided", "undecided"]), (2.0, ["holds", "does not hold"])):
        claims = [Claim("", "processor_seconds", "a", "b"), Claim("", "processor_seconds", "b", "a")]
        plan, _ = experiment({"a": [[1.0]], "b": [[1.0]]}, claims=claims)
        rows = [
            Row("p", name, seed, "max", {"processor_seconds": spent * (1 + 0.01 * seed)})
            for name, spent in (("a", 1.0), ("b", cost))
            for seed in range(8)
        ]
        assert [verdict.word for verdict in judge(plan, rows)] == words


def test_verdicts_count_only_common_seeds():
    plan, studies = experiment({"a": [[9.0]] * 7, "b": [[5.0]] * 7}, claims=[Claim("", "final_value", "a", "b")])
    rows = [row for row in measured(plan, studies) if (row.method, row.seed) not in (("a", 3), ("b", 5))]
    (verdict,) = judge(plan, rows)
    assert (verdict.word, verdict.repeats) == ("not judged", 5)
    (nothing,) = judge(plan, [row for row in rows if row.method == "a"])
    assert (nothing.word, nothing.repeats) == ("not judged", 0)


def test_more_claims_need_stronger_evidence_each():
    """One claim of six pairs is decided at p = 0.03; two such, at 0.06, could not be; seven pairs do for both."""
    claim = Claim("a is better", "final_value", "a", "b")
    for n, claims, word, p in ((6, 1, "holds", 0.03125), (6, 2, "not judged", 0.03125), (7, 2, "holds", 0.03125)):
        plan, studies = experiment({"a": [[9.0]] * n, "b": [[5.0]] * n}, claims=[claim] * claims)
        verdict, *_ = judge(plan, measured(plan, studies))
        assert verdict.word == word
        assert verdict.corrected == pytest.approx(p)
    plan, studies = experiment(
        {"a": [[9.0]] * 7, "b": [[5.0]] * 7}, claims=[claim, Claim("", "processor_seconds", "a", "b")]
    )
    assert [v.corrected for v in judge(plan, measured(plan, studies))] == pytest.approx([0.03125, 1.0])


def test_undecidable_claims_are_excluded_from_the_correction():
    claims = [Claim("a is better", "final_value", "a", "b"), Claim("c is better", "final_value", "c", "b")]
    plan, studies = experiment({"a": [[9.0]] * 6, "b": [[5.0]] * 6, "c": [[9.0]] * 6}, claims=claims)
    rows = [row for row in measured(plan, studies) if row.method != "c" or row.seed < 4]
    assert [verdict.word for verdict in judge(plan, rows)] == ["holds", "not judged"]


def test_holms_correction_is_that_of_the_textbook():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])
    assert len(holm(np.array([]))) == 0


def test_the_typical_difference_and_its_interval():
    """The interval leaves 0 out just where the test is significant, and its ends are pairwise means."""
    estimate, low, high = typical(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    assert (estimate, low, high) == (3.5, 1.0, 6.0)
    rng = np.random.default_rng(0)
    for shift in np.linspace(0.0, 1.0, 40):
        differences = rng.standard_normal(20) + shift
        _, low, high = typical(differences)
        p, _ = paired_test(differences)
        assert (low > 0.0 or high < 0.0) == (p < 0.05) or 0.045 < p < 0.055


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-4, 4).filter(bool), min_size=1, max_size=10))
def test_the_paired_test_goes_through_every_assignment_of_signs(differences):
    """Also where some are equal: the share of assignments whose sum is as far from its mean."""
    ranks = rankdata(np.abs(differences))
    sums = np.array(list(itertools.product([0.0, 1.0], repeat=len(ranks)))) @ ranks
    found = ranks[np.array(differences) > 0].sum()
    as_far = np.abs(sums - ranks.sum() / 2.0) >= abs(found - ranks.sum() / 2.0)
    assert paired_test(np.array(differences, dtype=float))[0] == pytest.approx(as_far.mean(), rel=1e-12)


@pytest.mark.parametrize("n", [14, 50, 51, 80])
def test_the_paired_test_is_exact_for_many_pairs(n):
    rng = np.random.default_rng(n)
    for shift in (0.0, 0.3, 1.0):
        differences = rng.standard_normal(n) + shift
        assert paired_test(differences)[0] == pytest.approx(wilcoxon(differences, method="exact").pvalue, rel=1e-9)


def test_equal_differences_among_many_are_not_tested_by_a_normal_distribution():
    """Its p is 0.0498, which would decide this claim; of all 16,384 assignments of signs, 880 are as extreme."""
    differences = np.array([-3.0, -2, 4, 4, 4, -1, 5, 5, 4, 4, -2, -2, -2, 3])
    assert paired_test(differences) == (880 / 2**14, 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_the_paired_test_is_symmetric(differences):
    (p, sign), (opposite, other) = paired_test(np.array(differences)), paired_test(-np.array(differences))
    assert p == pytest.approx(opposite, rel=1e-9)
    assert sign == -other


def test_equal_runs_say_nothing_for_either_side():
    """Many of them make no five runs enough, and no claim that seven bear out refuted, though the median is 0."""
    assert paired_test(np.array([0.0] * 9 + [1.0, 2.0, 3.0, 4.0, 5.0])) == (0.0625, 1)
    assert paired_test(np.zeros(9)) == (1.0, 0)
    claims = [Claim("", "final_value", "a", "b"), Claim("", "final_value", "b", "a")]
    plan, studies = experiment({"a": [[9.0]] * 8 + [[5.0]] * 22, "b": [[5.0]] * 30}, claims=claims)
    verdicts = judge(plan, measured(plan, studies))
    assert [verdict.effect[0] for verdict in verdicts] == [0.0, 0.0]
    assert [verdict.word for verdict in verdicts] == ["holds", "does not hold"]


def test_pipes_in_names_are_escaped_in_tables():
    assert as_table(["a"], [["p|q"]])[-1] == r"| p\|q |"


def test_what_was_missed_is_told_as_a_share():
    problem = Problem("p", "job.py", trials=1, optimum=10.0, found_within=2.0)
    plan, studies = experiment(
        {"a": [[9.0], [5.0], [9.0], [9.0]], "b": [[1.0]] * 4},
        problem=problem,
        claims=[Claim("a misses less often", "missed", "a", "b")],
    )
    (verdict,) = judge(plan, measured(plan, studies))
    assert (verdict.better, verdict.worse) == (0.25, 1.0)


@pytest.mark.parametrize(("better", "word"), [("a", "holds"), ("b", "does not hold")])
def test_missed_claims_hold_for_the_better_side(better, word):
    problem = Problem("p", "job.py", trials=1, optimum=10.0, found_within=2.0)
    claims = [Claim("it misses less often", "missed", better, "ab".replace(better, ""))]
    plan, studies = experiment({"a": [[9.0]] * 7, "b": [[1.0]] * 7}, problem=problem, claims=claims)
    assert [verdict.word for verdict in judge(plan, measured(plan, studies))] == [word]


def test_what_is_at_the_level_is_undecided():
    assert [word_of(p, 1) for p in (0.049, LEVEL, math.nan)] == ["holds", "undecided", "undecided"]


def test_costs_are_unknown_in_journals_of_0_1():
    plan, studies = experiment({"a": [[9.0]] * 6, "b": [[5.0]] * 6}, claims=[Claim("", "processor_seconds", "a", "b")])
    for study in studies.values():
        for i, trial in enumerate(study.trials):
            asked = replace(trial._record.asked, suggest_processor_seconds=None)
            study.ledger.trials[i] = Trial(i, replace(trial._record, asked=asked), trial._declared)
    rows = measured(plan, studies)
    assert [verdict.word for verdict in judge(plan, rows)] == ["not judged"]
    assert "processor s" not in page(plan, rows)
    assert "was not measured in these runs" in page(plan, rows)


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = [Row("p", "a", 3, "min", {"final_value": 0.1, "missed": 1.0}), Row("p", "b", 3, "min", {"final_value": 2.0})]
    write_rows(rows, tmp_path)
    assert read_rows(tmp_path) == rows
    with pytest.raises(raybo.JournalError, match="cannot be read"):
        read_rows(tmp_path / "elsewhere")


def test_equal_curves_are_equal_files(tmp_path):
    plan, studies = experiment({"a": [[1.0, 9.0]] * 2, "b": [[1.0, 5.0]] * 2}, curve="best_value")
    first, second = (write_curves(plan, studies, directory) for directory in _directories(tmp_path))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[3:9] == bytes([0, 0, 0, 0, 0, 2])  # no name, no time, smallest
    assert read_curves(tmp_path / "1")["p", "a", "best_value"].tolist() == [
        [1.0, 2.0],
        *[[1.0, 9.0]] * 4,
        [0.0, 0.0],
    ]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"problem", lambda data: gzip.compress(b"a,b\n1,2")]
)
def test_damaged_curves_are_refused(damage, tmp_path):
    plan, studies = experiment({"a": [[1.0, 9.0]] * 2}, curve="best_value")
    file = write_curves(plan, studies, tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(raybo.JournalError, match="it cannot be read as the curves of runs"):
        read_curves(tmp_path)


def _directories(parent):
    for name in "12":
        (parent / name).mkdir()
        yield parent / name


def test_everything_is_written_and_read(tmp_path):
    claims = [Claim("a is better", "final_regret", "a", "b", source="figure 9")]
    plan, studies = experiment(
        {"a": [[1.0, 9.0, 9.5]] * 6, "b": [[1.0, 5.0, 2.0]] * 6}, claims=claims, curve="simple_regret"
    )
    files = write(plan, studies, tmp_path)
    assert [file.name for file in files] == ["runs.csv", "curves.csv.gz", "figure.png", "README.md"]
    assert files[2].read_bytes().startswith(b"\x89PNG")
    assert len(files[0].read_text().splitlines()) == 1 + 12
    assert len(gzip.decompress(files[1].read_bytes()).splitlines()) == 1 + 2 * 3
    rows = read_rows(tmp_path)
    text = files[3].read_text(encoding="utf-8")
    assert text == page(plan, rows)
    assert "a is better (figure 9)" in text
    assert "**holds**" in text
    heading, lines = table(plan, rows)
    assert lines[0][:3] == ["p", "a", "6"]
    assert len(lines[0]) == len(heading)


def test_the_files_hold_what_was_measured(tmp_path):
    problem = Problem("p", "job.py", trials=3, initial=1, optimum=10.0)
    claims = [Claim("a has less regret", "cumulative_regret", "a", "b")]
    results = {"a": [[1.0, 9.0 - r, 10.0] for r in range(7)], "b": [[1.0, 2.0, 3.0]] * 7}
    plan, studies = experiment(results, claims=claims, problem=problem, curve="cumulative_regret")
    runs_csv, curves_csv, _, readme = write(plan, studies, tmp_path)
    with runs_csv.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "a"]
    assert [int(row["seed"]) for row in rows] == [0, 1, 2, 3, 4, 5, 6]
    assert [float(row["cumulative_regret"]) for row in rows] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert {(row["final_value"], row["final_regret"], row["processor_seconds"]) for row in rows} == {
        ("10.0", "0.0", "0.75")
    }
    with gzip.open(curves_csv, "rt", encoding="utf-8", newline="") as file:
        row, *_ = csv.DictReader(file)
    assert row == {
        "problem": "p",
        "method": "a",
        "curve": "cumulative_regret",
        "evaluation": "2",  # the first after the initial design
        "median": "4",
        "lower quartile": "2.5",
        "upper quartile": "5.5",
        "mean": "4",
        "sd": "2",
    }
    heading, (row, _) = table(plan, measured(plan, studies))
    assert dict(zip(heading, row, strict=True))["cumulative regret"] == "4 [2.5, 5.5]"
    assert "| a has less regret | p | 7 | 4 | 15 | 11 [9, 13] | 0.016 | **holds** |" in readme.read_text(
        encoding="utf-8"
    )


def test_runs_are_paired_by_seed_in_any_order():
    claims = [Claim("a is better", "final_value", "a", "b")]
    plan, studies = experiment(
        {"a": [[10.0 * r + 1.0] for r in range(6)], "b": [[10.0 * r] for r in range(6)]}, claims=claims
    )
    mixed = sorted(studies, key=lambda run: run.seed if run.entry.name == "a" else -run.seed)
    (verdict,) = judge(plan, measured(plan, {run: studies[run] for run in mixed}))
    assert verdict.word == "holds"


def test_a_page_says_what_was_run():
    """Objectives with their settings, and methods with their options, by problem where these differ."""
    held_out = HeldOut({"noise": 0.0}, last={"episodes": 100})
    problems = [
        Problem("p", "job.py", 3, settings={"noise": 0.1}, seeded="index", held_out=held_out),
        Problem("q", "job.py:other", 9, initial=4, held_out=HeldOut({"noise": 0.1})),
        Problem("r", "job.py:not_run", 9, held_out=HeldOut({"noise": 0.1})),
    ]
    entries = [
        Entry("a", "gp-ucb", {"kappa": 2.0, "lengthscale": (0.1,) * 9}, per_problem={"q": {"kappa": 3.0}}),
        Entry("b", "random", scheduler="asha", scheduler_options={"eta": 3}),
        Entry("c", "sobol"),
    ]
    rows = [Row(problem, name, 0, "max", {"final_held_out": 1.0}) for problem in "pq" for name in "ab"]
    text = page(Experiment("e", "t", problems, entries, 1), rows)
    assert "| p | `job.py`, noise=0.1, index=the seed; held out: noise=0.0; at last episodes=100 | 3 |  |" in text
    assert "| q | `job.py:other`; held out: noise=0.1 | 9 | 4 |" in text
    assert "| a | `gp-ucb`, kappa=2.0/3.0, lengthscale=(9 values) |" in text
    assert "| b | `random`, with asha, eta=3 |" in text
    assert "sobol" not in text
    assert "not_run" not in text


def test_each_method_is_compared_with_earlier_ones():
    plan, _ = experiment({"a": [[1.0]], "b": [[2.0]], "c": [[3.0]]})
    assert [(claim.better, claim.worse) for claim in pairwise(plan)] == [("b", "a"), ("c", "a"), ("c", "b")]
    assert {claim.measure for claim in pairwise(plan)} == {"final_value"}


def test_a_plan_that_makes_no_sense_is_refused(tmp_path):
    problem = Problem("p", "job.py", 3)
    with pytest.raises(raybo.MethodError, match="named twice"):
        Experiment("e", "t", [problem], [Entry("a", "random"), Entry("a", "sobol")], 1)
    with pytest.raises(raybo.MethodError, match="no problem"):
        Experiment("e", "t", [], [Entry("a", "random")], 1)
    with pytest.raises(raybo.MethodError, match="trials must be a whole number from 1, got -1"):
        Experiment("e", "t", [Problem("p", "job.py", -1)], [Entry("a", "random")], 1)
    with pytest.raises(raybo.MethodError, match="optimum must be a finite number, got nan"):
        Experiment("e", "t", [Problem("p", "job.py", 3, optimum=math.nan)], [Entry("a", "random")], 1)
    for workers in (0, -1):
        with pytest.raises(raybo.MethodError, match=f"workers must be a whole number from 1, got {workers}"):
            compare(Experiment("e", "t", [problem], [Entry("a", "random")], 1), tmp_path, workers=workers)
    with pytest.raises(raybo.MethodError, match="'b', which is not compared"):
        Experiment("e", "t", [problem], [Entry("a", "random")], 1, [Claim("", "processor_seconds", "a", "b")])


NONSENSE = {
    "problems must be a list of Problem, got 3": {"problems": 3},
    "problems must be a list of Problem, got 'p' in it": {"problems": ["p"]},
    "entries must be a list of Entry, got 'random'": {"entries": "random"},
    "claims must be a list of Claim, got None": {"claims": None},
    "curve must be 'simple_regret', ": {"curve": "regret"},
    "the measure of 'a is better' must be 'final_regret', ": {"claims": [Claim("a is better", "regret", "a", "b")]},
    "the factor of 'a is better' must be a finite number above 0, got 0": {
        "claims": [Claim("a is better", "final_value", "a", "b", factor=0)]
    },
    "a claim speaks of 'q', which is not compared": {"claims": [Claim("", "final_value", "a", "b", ["q"])]},
    "'a misses less': missed takes no factor": {"claims": [Claim("a misses less", "missed", "a", "b", factor=2)]},
    "a claim compares 'a' with itself": {"claims": [Claim("", "final_value", "a", "a")]},
}


@pytest.mark.parametrize("message", NONSENSE)
def test_unknown_parts_of_a_plan_are_named(message):
    """A misspelt problem of a claim, too, which would never be judged."""
    parts = {"problems": [Problem("p", "job.py", 3)], "entries": [Entry("a", "random"), Entry("b", "sobol")]}
    with pytest.raises(raybo.MethodError, match=re.escape(message)):
        Experiment("e", "t", repeats=1, **{**parts, **NONSENSE[message]})


def test_parts_may_come_one_by_one():
    plan = Experiment("e", "t", (Problem(n, "job.py", 3) for n in "pq"), (Entry(n, "random") for n in "ab"), 1)
    assert [[p.name for p in plan.problems], [e.name for e in plan.entries]] == [["p", "q"], ["a", "b"]]


def test_options_vary_per_problem_and_paths_are_plain():
    problem = Problem("p", "job.py", 3)
    entry = Entry("a", "gp-ucb", {"initial": 3, "grid": "fixed"}, per_problem={"p": {"initial": 5}})
    assert entry.options_for(problem) == {"initial": 5, "grid": "fixed"}
    assert entry.options_for(Problem("q", "job.py", 3)) == {"initial": 3, "grid": "fixed"}
    assert file_name("gp-ucb:solver=cg / x") == "gp-ucb-solver=cg-x"
    order = runs(Experiment("e", "t", [problem], [entry, Entry("b", "random")], 2), Path("out"))
    assert [run.seed for run in order] == [0, 0, 1, 1]
    costly = runs(Experiment("e", "t", [problem], [replace(entry, costly=True), Entry("b", "random")], 2), Path("out"))
    assert [(run.entry.name, run.seed) for run in costly] == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]
    later = Experiment("e", "t", [problem], [entry], 2, first_seed=100)
    assert [run.seed for run in runs(later, Path("out"))] == [100, 101]
    assert len({run.path for run in order}) == 4
    assert isinstance(order[0], Run)


def test_inexactness_is_summed_over_interpolated_steps():
    """Steps 1 to 5 after a design of two; eta is 1.0 at the second and 0.8 at the fourth."""
    events = []
    for number in range(7):
        tags = {} if number < 2 else {"t": number - 1}
        if number in (3, 5):
            tags["inexactness"] = {"eta": 1.0 if number == 3 else 0.8}
        data = {"x": [0.5], "values": [0.5], "tags": tags, "seen": 0, **SPENT}
        events += [Asked.of(number, data), Told(number, value=1.0)]
    study = Study(Description("job", Goals(("v",), ("max",)), SPACE, "gp-ucb", 0), events)
    problem = Problem("p", "job.py", 7, initial=2)
    np.testing.assert_allclose(curve("inexactness", study, problem, 1.0), [0.0, 0.0, 0.1, 0.3, 0.5], atol=1e-12)
    assert measure("final_inexactness", study, problem, 1.0) == pytest.approx(0.5)
    assert np.isnan(curve("inexactness", study_of([1.0]), problem, 1.0)).all()
    assert np.isnan(measure("final_inexactness", study_of([1.0]), problem, 1.0))


def test_a_figure_gives_its_number_of_runs():
    rows = [Row("p", method, seed, "min", {}) for method in "ab" for seed in range(3)]
    assert runs_in_words(rows) == "3 runs"
    assert runs_in_words(rows[:4]) == "1 to 3 runs"
