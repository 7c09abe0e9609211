"""What docs/default.md says of `auto` beside others: every row of its tables is read from the runs that are kept.

A row that fails here is to be replaced by the one that is told.
"""

from __future__ import annotations

from functools import partial

import pytest

from benchmarks.default.score import Scores, group, ranks
from benchmarks.default.sets import SETS
from tests import kept_runs
from tests.kept_runs import DOCS, ENDS, interval, less_of, level, p_of, pairs, problems

BOTH = "synthetic", "jobs"
found = partial(kept_runs.found, "default")


def beside_0_1():
    runs = found("validation.csv", *range(30, 36))
    old, new = runs["auto-0.1"], runs["auto"]
    every = problems("validation", old, new)
    parts = [group(every, wanted) for wanted in BOTH]
    yield "| final, mean over the trials | {} functions | {} jobs |".format(*map(len, parts))
    for name, mine in (("`auto` of 0.1", old), ("`auto`", new)):
        yield f"| {name} | " + " | ".join(level(mine, part) for part in parts) + " |"
    for measure in ENDS:
        differences = (interval(new, old, measure, part) for part in parts)
        yield f"| the latter less the former, {measure} (95 % interval) | " + " | ".join(differences) + " |"
        less = [less_of(new, old, measure, *part) for part in parts]
        told = (f"{each.won} and {each.lost} (p {p_of(each.p)})" for each in less)
        yield f"| pairs won and lost, {measure} | " + " | ".join(told) + " |"
    won, lost = zip(*((each.won, each.lost) for each in (less_of(new, old, m, *every) for m in ENDS)), strict=True)
    shares = [round(100 * one / (one + other)) for one, other in zip(won, lost, strict=True)]
    p = p_of(less_of(new, old, "final", *every).p)
    yield f"it wins {shares[0]} % at the end ({won[0]} and {lost[0]}, p {p}) and {shares[1]} % in the mean"
    yield f"({won[1]} and {lost[1]})"
    costs = (f"{old.cost(part):.0f} and {new.cost(part):.0f} ms" for part in parts)
    yield "| processor time of a proposal, median run, of both | " + " | ".join(costs) + " |"


def levels(runs: dict[str, Scores], chosen: str, named: dict[str, str]):
    """A row per variant: regrets of functions and jobs, mean ranks of all of them, and the cost."""
    every = problems(chosen, *(runs[variant] for variant in named.values()))
    parts = [group(every, wanted) for wanted in BOTH]
    ranked = [ranks(runs, list(named.values()), measure, every) for measure in ENDS]
    yield "| | {} functions | {} jobs | mean rank of {} | milliseconds |".format(*map(len, parts), len(named))
    for name, variant in named.items():
        mine = runs[variant]
        row = [name, *(level(mine, part) for part in parts), ", ".join(f"{rank[variant]:.2f}" for rank in ranked)]
        yield f"| {' | '.join(row)} | {mine.cost(every):.0f} |"


def differences(runs: dict[str, Scores], chosen: str, named: dict[str, str]):
    """A row per rival: `auto` less it on functions and on jobs, and pairs of both."""
    for name, variant in named.items():
        every = problems(chosen, runs["auto"], runs[variant])
        less = (
            ", ".join(interval(runs["auto"], runs[variant], measure, group(every, wanted)) for measure in ENDS)
            for wanted in BOTH
        )
        yield f"| {name} | {' | '.join(less)} | {pairs(runs['auto'], runs[variant], every)} |"


def together(runs: dict[str, Scores], chosen: str, named: dict[str, str]):
    """A row per rival on the problems that it was run on, functions and jobs as one: regrets, `auto` less it, pairs."""
    for name, variant in named.items():
        one, other = runs["auto"], runs[variant]
        every = problems(chosen, one, other)
        less = " | ".join(interval(one, other, measure, every) for measure in ENDS)
        row = f"{len(every)} | {level(one, every)} | {level(other, every)} | {less} | {pairs(one, other, every)}"
        yield f"| {name} | {row} | {other.cost(every):.0f} |"


ABLATION = {
    "`auto`": "auto",
    "without the warped model": "auto-without-warped",
    "without the summed model": "auto-without-summed",
    "the plain model alone": "auto-plain",
}
PEERS = {
    "Optuna's TPE": "optuna",
    "Optuna's GP sampler": "optuna-gp",
    "SMAC": "smac",
    "BoTorch": "botorch",
    "HEBO": "hebo",
}
RANKED = {"`auto`": "auto", **{name: variant for name, variant in PEERS.items() if variant not in ("botorch", "hebo")}}
CREWS = {1: "", 2: "@2", 8: "@8", 64: "@64"}
AFTER = "after 20", "after 40", "after 60", "after 100", "final"


def ablation():
    runs = found("validation.csv", 20, 21)
    yield from levels(runs, "validation", ABLATION)
    yield from differences(
        runs, "validation", {name: variant for name, variant in ABLATION.items() if variant != "auto"}
    )


def peers():
    runs = found("validation.csv", *range(30, 36))
    yield from levels(runs, "validation", {"`auto`": "auto", "Optuna's TPE": "optuna"})
    yield from differences(runs, "validation", {"Optuna's TPE": "optuna"})
    runs = found("validation.csv", 20)
    yield from together(runs, "quarter", PEERS)
    every = problems("quarter", *(runs[variant] for variant in RANKED.values()))
    for measure in ENDS:
        ranked = ranks(runs, list(RANKED.values()), measure, every)
        yield ", ".join(f"{name} {ranked[variant]:.2f}" for name, variant in RANKED.items())
    all_six = {"`auto`": "auto", **PEERS}
    every = problems("quarter", *(runs[variant] for variant in all_six.values()))
    final, mean = (ranks(runs, list(all_six.values()), measure, every) for measure in ENDS)
    yield f"`auto` has {final['auto']:.2f} of 6 at the end and HEBO {final['hebo']:.2f}, the others"
    yield f"`auto` has {mean['auto']:.2f} and the next, Optuna's GP sampler, {mean['optuna-gp']:.2f}."


def workers():
    """A row per method and number of workers: the mean regret after so many trials."""
    runs = found("workers.csv", 20, 21, 22)
    names = [problem.name for problem in SETS["wide"]]
    for name, variant in (("`auto`", "auto"), ("Optuna's TPE", "optuna")):
        for number, crew in CREWS.items():
            mine = runs[variant + crew]
            yield f"| {name} | {number} | " + " | ".join(f"{mine.of(m, names):.2f}" for m in (*AFTER, "mean")) + " |"
    for number, crew in CREWS.items():
        one, other = runs["auto" + crew], runs["optuna" + crew]
        less = " | ".join(interval(one, other, measure, names) for measure in ENDS)
        yield f"| {number} | {less} | {pairs(one, other, names)} |"


TABLES = {"beside 0.1": beside_0_1, "ablation": ablation, "peers": peers, "workers": workers}


@pytest.mark.parametrize("table", TABLES)
def test_tables_match_the_runs(table):
    text = " ".join((DOCS / "default.md").read_text(encoding="utf-8").split())
    missing = [row for row in TABLES[table]() if row not in text]
    assert not missing, "\n" + "\n".join(missing)
