"""Checks docs/default.md and its evidence, on `auto` beside others: rows are read from the runs that are kept.

A row that fails here is to be replaced by the one in the message.
"""

from __future__ import annotations

import csv
from functools import partial

import numpy as np
import pytest

from benchmarks.default.score import ELSEWHERE, Scores, group, ranks
from benchmarks.default.sets import PROBLEMS, SETS
from tests import kept_runs
from tests.kept_runs import DOCS, ENDS, interval, less_of, level, p_of, problems, signed, won_and_lost

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
        yield f"| problems won and lost, {measure} | " + " | ".join(told) + " |"
    final, mean = (less_of(new, old, measure, *every) for measure in ENDS)
    assert mean.high < 0.0 < final.high
    yield (
        f"Of the {len(every)} problems `auto` wins {mean.won} and loses {mean.lost} in the mean over the trials (p "
        f"{p_of(mean.p)}), with an interval below 0; at the end it wins {final.won} and loses {final.lost} (p "
        f"{p_of(final.p)}), and whether it is ahead there is undecided."
    )
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
        yield f"| {name} | {' | '.join(less)} | {won_and_lost(runs['auto'], runs[variant], every)} |"


def together(runs: dict[str, Scores], chosen: str, named: dict[str, str]):
    """A row per rival on the problems that it was run on, functions and jobs as one: regrets, `auto` less it, pairs."""
    for name, variant in named.items():
        one, other = runs["auto"], runs[variant]
        every = problems(chosen, one, other)
        less = " | ".join(interval(one, other, measure, every) for measure in ENDS)
        row = f"{len(every)} | {level(one, every)} | {level(other, every)} | {less} | {won_and_lost(one, other, every)}"
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
CHOICES = [
    "architectures5",
    "architectures7",
    "cut15",
    "hpobench-blood-choices",
    "hpolib-slice-choices",
    "hpolib-naval_propulsion",
    "kinds7",
    "nested",
]
OF_CHOICES = "nasbench-cifar10,kinds9,kinds6-noisy,hpolib-protein_structure,ridge,cancer-svm,deep,layers".split(",")
NOISE = {
    "development, jobs with trees": "trees",
    "development, others": "development",
    "validation, jobs with trees": "validation-trees",
    "validation, others": "validation",
}
ALL_TREES = {
    "development, jobs with trees": "trees",
    "validation, jobs with trees": "validation-trees",
    "fresh, jobs with trees": "test-trees",
}
AFTER = "after 20", "after 40", "after 60", "after 100", "final"


HISTORY = {  # a row of what was tried for the development set, and of what it is less
    "`auto` less `auto-ten`, {} problems": ("auto", "auto-ten"),
    "`auto-ten` without ranks less `auto-ten`, {} problems": ("auto-ten-without-ranked", "auto-ten"),
    "the plain model alone: three first points less ten, {} functions": ("auto-plain", "auto-ten-plain"),
    "the same: one more point than axes, less ten, {} functions": ("auto-axes-plain", "auto-ten-plain"),
    "the same: three, then model and design in turn until ten, less ten, {} functions": (
        "auto-turns-plain",
        "auto-ten-plain",
    ),
    "`auto` with the plain model alone less `auto`, {} functions": ("auto-plain", "auto"),
    "`auto` by expected improvement alone less `auto`, {} problems": ("auto-improvement", "auto"),
}


def both_ran(one: Scores, other: Scores) -> list[str]:
    """The problems on which two variants share a seed."""
    return [
        name
        for name in PROBLEMS
        if one.regrets["final"].get(name, {}).keys() & other.regrets["final"].get(name, {}).keys()
    ]


def history():
    runs = found("development.csv", *range(30, 54))
    for words, (one, other) in HISTORY.items():
        every = both_ran(runs[one], runs[other])
        less = [less_of(runs[one], runs[other], measure, *every) for measure in ("after 10", "mean", "final")]
        cells = (f"{signed(each.mean)} ({signed(each.low)} to {signed(each.high)})" for each in less)
        counts = ", ".join(f"{each.won} and {each.lost}" for each in less)
        yield f"| {words.format(len(every))} | {' | '.join(cells)} | {counts} |"
    runs = found("validation.csv", 20)
    new, ten = runs["auto"], runs["auto-ten"]
    every = problems("validation", new, ten)
    final, mean = (less_of(new, ten, measure, *every) for measure in ENDS)
    yield (
        f"`auto` less `auto-ten` is {interval(new, ten, 'final', every)} at the end, with {final.won} of "
        f"{len(every)} problems won and {final.lost} lost, and {interval(new, ten, 'mean', every)} in the mean, with "
        f"{mean.won} won and {mean.lost} lost."
    )


def choices():
    runs = found("development.csv", 70, 71, 72)
    base = runs["auto-as-numbers"]
    for words, variant in {
        "0.9: as many lengths apart as numbers are (`auto-choices-0.9`)": "auto-choices-0.9",
        "2 (`auto-choices-2`)": "auto-choices-2",
        "3 (`auto`)": "auto",
    }.items():
        less = [less_of(runs[variant], base, measure, *CHOICES) for measure in ENDS]
        cells = " | ".join(interval(runs[variant], base, measure, CHOICES) for measure in ENDS)
        yield f"| {words} | {cells} | {', '.join(f'{each.won} and {each.lost}' for each in less)} |"
    runs = found("validation.csv", 22, 23)
    for words, rival in {"`auto-as-numbers`": "auto-as-numbers", "0.1's": "auto-0.1"}.items():
        cells = " | ".join(interval(runs["auto"], runs[rival], measure, OF_CHOICES) for measure in ENDS)
        yield f"| `auto` less {words} | {cells} | {won_and_lost(runs['auto'], runs[rival], OF_CHOICES)} |"


def early():
    errors: dict[tuple[str, str], dict[int, list[float]]] = {}
    with (DOCS / "evidence" / "default" / "early.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            at = [float(row[f"after_{n}"]) for n in (5, 10)]
            errors.setdefault((row["problem"], row["variant"]), {})[int(row["seed"])] = at
    tasks = list(dict.fromkeys(problem for problem, _ in errors))
    logs = np.array(
        [
            [np.log(np.divide(errors[task, "auto"][seed], errors[task, "optuna"][seed])) for seed in range(20, 40)]
            for task in tasks
        ]
    )  # (tasks, seeds, 2)
    rng = np.random.default_rng(0)
    drawn = [
        np.mean([logs[task][rng.integers(20, size=20)].mean(axis=0) for task in rng.integers(len(tasks), size=5)], 0)
        for _ in range(4000)
    ]
    ratios = np.exp(logs.mean(axis=(0, 1)))
    (low5, low10), (high5, high10) = np.exp(np.quantile(drawn, [0.025, 0.975], axis=0))
    below = (np.exp(logs.mean(axis=1)) < 1.0).sum(axis=0)
    yield f"{ratios[0]:.2f} times that of Optuna's TPE after 5 trainings ({low5:.2f} to {high5:.2f}; lower on"
    yield f"lower on {below[0]} of the {len(tasks)} tasks), and {ratios[1]:.2f} times after 10 ({low10:.2f} to"
    yield f"({low10:.2f} to {high10:.2f}; lower on {below[1]} of the {len(tasks)})"


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
        yield f"| {number} | {less} | {won_and_lost(one, other, names)} |"


def tried(file, one, other, seeds, prefix="", sets=NOISE):
    """A row per set: a change to `auto` less `auto` without it, on own and on other splits."""
    runs = found(file, *seeds)
    changed, unchanged = runs[one], runs[other]
    for words, chosen in sets.items():
        every = problems(chosen, changed, unchanged)
        cells = " | ".join(interval(changed, unchanged, measure, every) for measure in ENDS)
        yield f"| {prefix}{words} | {len(every)} | {cells} | {won_and_lost(changed, unchanged, every)} |"
    for words, chosen in sets.items():
        every = problems(chosen, changed, unchanged)
        if chosen.endswith("trees"):
            worth = (f"{mine.of(m, every):.2f}" for mine in (runs["random"], unchanged, changed) for m in ELSEWHERE)
            yield f"| {prefix}{words} | {' | '.join(worth)} |"


def noise():
    yield from tried("noise.csv", "auto-with-noise", "auto", (*range(10), *range(50, 60)))


def far():
    yield from tried("far.csv", "auto-looking-far", "auto", (*range(10, 16), *range(60, 68)), "far: ")


def rough():
    sets = {words: chosen for words, chosen in NOISE.items() if chosen.endswith("trees")}
    for variant, prefix in (("auto-noise-if-rough", "rough: "), ("auto-noise-for-far", "in its place: ")):
        yield from tried("rough.csv", variant, "auto", (120, 121, 122), prefix, sets)


def ranked():
    seeds = (*range(100, 103), *range(110, 116))
    yield from tried("ranked.csv", "auto", "auto-0.2", seeds, "ranked: ", NOISE | ALL_TREES)
    runs = found("ranked.csv", *seeds)
    one, other = runs["auto"], runs["auto-0.2"]
    every = [name for chosen in ALL_TREES.values() for name in problems(chosen, one, other)]
    for measure in ("final", list(ELSEWHERE)[1]):
        less = less_of(one, other, measure, *every)
        cells = f"{interval(one, other, measure, every)} | {less.won} and {less.lost} (p {p_of(less.p)})"
        yield f"| ranked: all {len(every)} jobs with trees, {measure} | {cells} |"
    for rival, sets in {"auto-0.1": (NOISE | ALL_TREES), "optuna": NOISE}.items():
        for words, chosen in sets.items():
            if names := problems(chosen, one, runs[rival]):
                cells = " | ".join(interval(one, runs[rival], measure, names) for measure in ENDS)
                counts = won_and_lost(one, runs[rival], names)
                yield f"| less `{rival}`: {words} | {len(names)} | {cells} | {counts} |"


def row_of_the_page(words, one, other, every):
    """A row of docs/default.md, which has no p: `auto` less another."""
    less = [less_of(one, other, measure, *every) for measure in ENDS]
    cells = " | ".join(interval(one, other, measure, every) for measure in ENDS)
    counts = ", ".join(f"{each.won} and {each.lost}" for each in less)
    return f"| {words} | {len(every)} | {cells} | {counts} |"


def the_page():
    """Return the sentences of docs/default.md that follow from these runs."""
    runs = found("ranked.csv", *range(100, 103), *range(110, 116))
    for words, rival, chosen in [
        ("0.1's, functions and jobs", "auto-0.1", "validation"),
        ("0.1's, jobs with trees that nothing was chosen on", "auto-0.1", "test-trees"),
        ("Optuna's TPE", "optuna", "validation"),
    ]:
        yield row_of_the_page(words, runs["auto"], runs[rival], problems(chosen, runs["auto"], runs[rival]))
    trees = [name for chosen in ALL_TREES.values() for name in problems(chosen, runs["auto"], runs["auto-0.1"])]
    final = less_of(runs["auto"], runs["auto-0.1"], "final", *trees)
    yield f"level with 0.1's at the end: ahead on {final.won} of {len(trees)}, behind on {final.lost}."
    slow = found("validation.csv", 20)
    for words in PEERS.keys() - {"Optuna's TPE"}:
        one, other = slow["auto"], slow[PEERS[words]]
        yield row_of_the_page(words, one, other, problems("quarter", one, other))
    bbob = kept_runs.found("independent", "runs.csv", *range(5))
    for words, name in {"f21 in five dimensions": "bbob-5d-f21", "f22 in ten": "bbob-10d-f22"}.items():
        mine, tpe, parts = (bbob[variant].of("final", [name]) for variant in ("auto", "optuna", "botorch"))
        assert mine > max(tpe, parts)
        yield f"{words} with {mine:.2f} (TPE {tpe:.2f}, BoTorch {parts:.2f})"
    behind = [
        less_of(bbob["auto"], bbob[variant], "final", f"bbob-{d}d-f17").mean
        for variant in ("optuna", "optuna-gp", "botorch")
        for d in (2, 5)
    ]
    yield f"by {min(behind):.2f} to {max(behind):.2f} behind all three"


TABLES = {
    "noise": noise,
    "far": far,
    "rough": rough,
    "ranked": ranked,
    "beside 0.1": beside_0_1,
    "history": history,
    "choices": choices,
    "early": early,
    "ablation": ablation,
    "peers": peers,
    "workers": workers,
}


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_tables_match_the_runs(table):
    assert_said("evidence/default.md", TABLES[table]())


def test_the_page_says_what_the_runs_say():
    assert_said("default.md", the_page())


def assert_said(page, rows):
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    missing = [row for row in rows if row not in text]
    assert not missing, "\n" + "\n".join(missing)
