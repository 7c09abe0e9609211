"""Checks docs/independent.md, on raybo beside other tuners: every row of its tables is read from the runs kept.

A row that fails here is to be replaced by the one in the message.
"""

from __future__ import annotations

import pytest

from benchmarks import carps
from benchmarks.default.runs import AFTER, Run, Table
from benchmarks.default.score import RANDOM, Scores, targets_reached
from benchmarks.default.sets import DEVELOPMENT, SETS, VALIDATION
from tests.kept_runs import DOCS, ENDS, found, interval, less_of, level, p_of

FOLDER, FILE = "independent", "runs.csv"
SEEDS = range(5)
NAMES = {
    "auto": "`auto`",
    "gp-ucb": "`gp-ucb`",
    "uhe": "`uhe`",
    "optuna": "Optuna's TPE",
    "optuna-gp": "Optuna's GP sampler",
    "botorch": "BoTorch",
    RANDOM: "`random`",
}
RIVALS = [variant for variant in NAMES if variant != "auto"]
BBOB = "bbob-2d", "bbob-5d", "bbob-10d"


def kept() -> list[Run]:
    return list(Table(DOCS / "evidence" / FOLDER / FILE).runs.values())


def whole(scores: dict[str, Scores], variant: str, chosen: str) -> list[str]:
    """The problems of a set, if the variant was run on all of them."""
    names = [problem.name for problem in SETS[chosen]]
    return names if variant in scores and scores[variant].problems.issuperset(names) else []


def levels(chosen: str):
    """A row per variant: runs of each problem, regrets, targets, cost."""
    scores, runs = found(FOLDER, FILE, *SEEDS), kept()
    for variant, name in NAMES.items():
        if names := whole(scores, variant, chosen):
            mine = scores[variant]
            times = {len(mine.regrets["final"][name]) for name in names}
            row = [name, "/".join(map(str, sorted(times))), level(mine, names)]
            row += [f"{targets_reached(runs, variant, names):.3f}"] if chosen in BBOB else []
            yield f"| {' | '.join(row)} | {mine.cost(names):.{0 if mine.cost(names) >= 1 else 1}f} |"


def differences(chosen: str):
    """A row per rival: `auto` less it, in pairs of equal seeds."""
    scores = found(FOLDER, FILE, *SEEDS)
    for rival in RIVALS:
        if names := whole(scores, rival, chosen):
            yield beside(scores, rival, names)


def beside(scores: dict[str, Scores], rival: str, names: list[str]) -> str:
    one, other = scores["auto"], scores[rival]
    pairs = sum(len(one.regrets["final"][name].keys() & other.regrets["final"][name].keys()) for name in names)
    less = [less_of(one, other, measure, *names) for measure in ENDS]
    told = (
        f"{interval(one, other, measure, names)}; {each.won} and {each.lost} (p {p_of(each.p)})"
        for measure, each in zip(ENDS, less, strict=True)
    )
    return f"| {NAMES[rival]} | {len(names)}, {pairs} | {' | '.join(told)} |"


def unseen():
    """The same on the functions of BBOB that `auto` was not developed on, in any number of dimensions."""
    scores = found(FOLDER, FILE, *SEEDS)
    seen = {name.split("-")[1] for name in (problem.name for problem in DEVELOPMENT) if name.startswith("bbob-f")}
    names = [p.name for chosen in BBOB for p in SETS[chosen] if p.name.split("-")[2] not in seen]
    numbers = ", ".join(sorted({name.split("-")[2].removeprefix("f") for name in names}, key=int))
    yield f"functions {numbers}"
    known = {name.split("-f")[1].split("-")[0] for name in (p.name for p in VALIDATION) if name.startswith("bbob-")}
    validated = ", ".join(n for n in numbers.split(", ") if n in known)
    yield f"Functions {validated} were in the set that it was validated on"
    for rival in RIVALS:
        whole_sets = [p.name for chosen in BBOB for p in SETS[chosen] if whole(scores, rival, chosen)]
        if mine := [name for name in names if name in whole_sets]:
            yield beside(scores, rival, mine)


def course():
    """The share of targets reached after some evaluations, in 5 dimensions."""
    runs = kept()
    names = [problem.name for problem in SETS["bbob-5d"]]
    scores = found(FOLDER, FILE, *SEEDS)
    for variant, name in NAMES.items():
        if whole(scores, variant, "bbob-5d"):
            shares = [targets_reached(runs, variant, names, f"after {n}") for n in AFTER]
            yield f"| {name} | {' | '.join(f'{share:.2f}' for share in shares)} |"


def of_carps():
    """A row per optimiser of CARP-S, then `auto` less each."""
    scores = carps.scores(carps.kept(DOCS / "evidence" / FOLDER / "carps.csv"), carps.USUAL)
    for name in carps.USUAL:
        yield f"| `{name}` | {carps.level(scores, name)} |"
    for name in carps.USUAL:
        if name != "auto":
            yield f"| `{name}` | {carps.beside(scores, name)} |"
    behind = []
    for name, called in {"RandomSearch": "random search", "Optuna-TPE": "TPE", "Nevergrad-CMA-ES": "CMA-ES"}.items():
        lost = scores.logarithmic["auto"] > scores.logarithmic[name]
        places = [task.split("_")[1:3] for task, worse in zip(carps.TASKS.split(","), lost, strict=True) if worse]
        if places:
            behind.append(f"{called} on " + ", ".join(f"f{number} in {d}" for d, number in places))
    yield f"In that, `auto` ends behind {'; behind '.join(behind)} dimensions."


def summary():
    """Yield the sentences above the tables."""
    scores, runs = found(FOLDER, FILE, *SEEDS), kept()
    sets = {**dict.fromkeys(BBOB), "hpobench": None}
    met = {(chosen, rival): names for chosen in sets for rival in RIVALS if (names := whole(scores, rival, chosen))}
    for (chosen, rival), names in met.items():
        mean, final = (less_of(scores["auto"], scores[rival], measure, *names) for measure in ("mean", "final"))
        assert mean.high < 0.0
        assert mean.p < 0.05
        assert final.won > final.lost
        if chosen in BBOB:
            assert targets_reached(runs, "auto", names) > targets_reached(runs, rival, names)
    yield (
        "Averaged over the run, `auto` has less regret than each rival on all four sets, with intervals below 0. At "
        "the end it has won more problems than it has lost against each, and on BBOB it has reached the most targets."
    )
    ends = {key: less_of(scores["auto"], scores[key[1]], "final", *names) for key, names in met.items()}
    level: dict[str, list[str]] = {}
    for (chosen, rival), less in ends.items():
        if less.high >= 0.0:
            level.setdefault(chosen, []).append(NAMES[rival])
    told = [f"in {chosen[5:-1]} dimensions {', '.join(names)}" for chosen, names in level.items()]
    yield f"The interval of the final difference contains 0 only against some rivals on BBOB: {'; '.join(told)}."
    assert set(level) <= set(BBOB)
    undecided: dict[str, list[str]] = {}
    for (chosen, rival), less in ends.items():
        if not less.p < 0.05:
            undecided.setdefault(chosen, []).append(f"{NAMES[rival]} (p {p_of(less.p)})")
    ((chosen, names_of_two),) = undecided.items()
    assert (chosen, len(names_of_two)) == ("bbob-5d", 2)
    yield (
        f"The test of the final difference is not significant against two: in 5 dimensions {', '.join(names_of_two)}."
    )
    for ours in ("gp-ucb", "uhe"):
        for chosen in sets:
            less = less_of(scores[ours], scores[RANDOM], "final", *whole(scores, ours, chosen))
            assert less.high < 0.0
    yield "`gp-ucb` and `uhe` end with less regret than random search on all four."


HEADINGS = {
    "BBOB in 2 dimensions": [(levels, "bbob-2d"), (differences, "bbob-2d")],
    "BBOB in 5 dimensions": [(levels, "bbob-5d"), (differences, "bbob-5d")],
    "BBOB in 10 dimensions": [(levels, "bbob-10d"), (differences, "bbob-10d")],
    "HPOBench's networks": [(levels, "hpobench"), (differences, "hpobench")],
    "CARP-S's subsets": [(of_carps,)],
    "Functions that were not developed on": [(unseen,)],
    "The course of a search": [(course,)],
}


@pytest.mark.slow
@pytest.mark.parametrize("heading", HEADINGS)
def test_tables_under_headings_match_the_runs(heading):
    text = (DOCS / "independent.md").read_text(encoding="utf-8")
    (section,) = [part for part in text.split("\n## ") if part.startswith(heading)]
    told = [line for line in section.splitlines() if line.startswith(("| `", "| Optuna", "| BoTorch"))]
    rows = [row for make, *chosen in HEADINGS[heading] for row in make(*chosen)]
    rows, sentences = [row for row in rows if row.startswith("|")], [row for row in rows if not row.startswith("|")]
    assert [line for line in told if not line.startswith("| `auto` minus")] == rows
    assert all(sentence in " ".join(section.split()) for sentence in sentences)


def test_every_section_of_the_page_is_checked():
    headings = (DOCS / "independent.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert len(headings) == len(HEADINGS)


@pytest.mark.slow
def test_what_is_said_above_the_tables_is_so():
    text = " ".join((DOCS / "independent.md").read_text(encoding="utf-8").split("\n## ")[0].split())
    missing = [sentence for sentence in summary() if sentence not in text]
    assert not missing, "\n".join(missing)
