"""Every verdict of docs/reproduction, recomputed from its csv file by other code: numpy and csv, nothing of raybo.

What a claim compares is read from its words; the tests are those of tests/by_definition.py. claims.md must say the same
of every claim, and leave none out.
"""

from __future__ import annotations

import csv
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.by_definition import binomial, corrected, decidable, pairwise_means, shares, signed_rank

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "reproduction"
FOLDERS = sorted(path.parent.name for path in RESULTS.glob("*/runs.csv"))
CUMULATIVE = "inexact-", "context-"  # folders whose "regret" is the sum of the regrets
LAST = "local-fig3"  # folders whose methods end at their last recommendation; elsewhere at their best one
REGRET = "cumulative_regret", "final_regret"
LOWER = {*REGRET, "processor_seconds", "missed", "final_model_error", "final_inexactness"}
SLOWER = 1.5
CLAIMS = {  # a claim's words, with its first side, its second side and its multiple; and what is measured
    r"(?P<a>.+)'s regret is below (?P<b>.+)'s": "regret",
    r"(?P<a>.+)'s regret is at most (?P<c>[\d.]+) times (?P<b>.+)'s": "regret",
    r"(?P<a>auto) ends with less regret than (?P<b>.+)": "regret",
    r"(?P<a>a growing grid) is better than (?P<b>one of 100 points)": "regret",
    r"(?P<a>.+) is cheaper than (?P<b>.+)": "processor_seconds",
    r"(?P<a>.+) takes at most (?P<c>[\d.]+) times as long as (?P<b>.+)": "processor_seconds",
    r"(?P<a>.+) is less inexact than (?P<b>.+)": "final_inexactness",
    r"(?P<a>.+)'s model ends nearer to the objective than (?P<b>.+)'s": "final_model_error",
    r"(?P<a>.+) misses the peak less often than (?P<b>.+)": "missed",
    r"(?P<a>LA-MinUCB) is fastest: better than (?P<b>.+) on average": "mean_held_out",
    r"(?P<b>GIBO) is slow: (?P<a>MinUCB) is better on average": "mean_held_out",
    r"(?P<a>MPD as released) rises fastest: better than (?P<b>.+) after a fifth": "early_held_out",
    r"(?P<b>MPD as released) stalls: (?P<a>GIBO) ends better": "end",
    r"(?P<a>.+) ends best: better than (?P<b>.+)": "end",
    r"(?P<a>.+) ends (?:slightly )?better than (?P<b>.+)": "end",
}
NAMES = {  # of a claim's words, where the csv file has another
    "the random grid": "random grid",
    "a growing grid": "growing grid",
    "one of 100 points": "fixed grid",
}


@cache
def runs(folder):
    with (RESULTS / folder / "runs.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def printed(folder):
    """The rows of a page's table of claims."""
    text = (RESULTS / folder / "README.md").read_text(encoding="utf-8")
    if "\n## Claims\n" not in text:
        return []
    lines = text.split("\n## Claims\n")[1].split("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("| ")]
    return rows[2:]


def compared(folder, words):
    """The two sides of a claim, its multiple, and the column of the file that it is about."""
    found = [(m, of) for pattern, of in CLAIMS.items() if (m := re.fullmatch(pattern, words))]
    match, of = found[0]
    a, b = (NAMES.get(match[side], match[side]) for side in "ab")
    c = float(match["c"]) if "c" in match.re.groupindex else 1.0
    if of == "regret":
        of = REGRET[0] if folder.startswith(CUMULATIVE) else REGRET[1]
    if of == "end":
        kinds = "final_value", "final_held_out" if folder.startswith(LAST) else "best_held_out"
        of = next(kind for kind in reversed(kinds) if kind in runs(folder)[0])
    return a, b, c, of


def sides(folder, problem, a, b, of):
    """Both columns of numbers, in the order of the seeds that both have, and the mode."""
    columns = [{}, {}]
    mode = ""
    for row in runs(folder):
        if row["problem"] == problem and row.get(of):
            mode = row["mode"]
            for name, column in zip((a, b), columns, strict=True):
                if row["method"] == name:
                    column[int(row["seed"])] = float(row[of])
    seeds = sorted(set(columns[0]) & set(columns[1]))
    return (*(np.array([column[seed] for seed in seeds]) for column in columns), mode)


def recomputed(folder, words, problem):
    """A row's pairs, both sides' middles, difference with its interval, p before correction, and the side."""
    a, b, c, of = compared(folder, words)
    x, y, mode = sides(folder, problem, a, b, of)
    greater = of not in LOWER
    d = (x - y if mode == "max" else y - x) if greater else c * y - x
    if of == "missed":
        return len(x), x.mean(), y.mean(), shares(d), binomial((d > 0).sum(), (d < 0).sum()), int(np.sign(d.sum()))
    p, side = signed_rank(d)
    if of == "processor_seconds":  # the verdict must survive either side's being slower
        p, again = signed_rank(c * y - SLOWER * x if side > 0 else SLOWER * c * y - x)
        p = p if again == side else 1.0
    return len(x), np.median(x), np.median(y), pairwise_means(d), p, side


def expected_rows(folder):
    """The table of claims, made anew."""
    rows = printed(folder)
    found = [recomputed(folder, plain(row[0]), row[1]) for row in rows]
    kept = [i for i, is_decidable in enumerate(decidable([f[0] for f in found])) if is_decidable]
    ps = dict(zip(kept, corrected([found[i][4] for i in kept]), strict=True))
    for i, (row, (n, x, y, (middle, low, high), _, side)) in enumerate(zip(rows, found, strict=True)):
        middle, low, high = (round(number, 15) + 0.0 for number in (middle, low, high))
        cells = [row[0], row[1], str(n), f"{x:.4g}", f"{y:.4g}", f"{middle:.3g} [{low:.3g}, {high:.3g}]"]
        if i not in ps:
            yield [*cells, "", "not judged"]
            continue
        yield [*cells, *told(ps[i], side)]


def plain(claim):
    """A claim without its source."""
    return re.sub(r" \((figure|figures|table|ours|its plan|section)[^()]*\)$", "", claim)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_row_of_a_page_follows_from_its_runs(folder):
    assert list(expected_rows(folder)) == printed(folder)


def errors_of_table_2():
    """The errors on the whole line, by law and number of contexts."""
    found = {}
    with (RESULTS / "context-table2" / "errors.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["law"], row["contexts"]), []).append(float(row["whole line"]))
    return {key: np.array(errors) for key, errors in found.items()}


def told(p, side):
    """The cells of a p-value and its verdict."""
    word = "undecided" if p >= 0.05 or not side else "holds" if side > 0 else "does not hold"
    return ["<0.001" if p < 0.0005 else f"{p:.3f}", f"**{word}**"]


def test_verdicts_of_table_2_follow_from_its_errors():
    errors, rows = errors_of_table_2(), printed("context-table2")
    differences = []
    for claim, contexts, *_ in rows:
        if law := re.search(r"falls .*\((\w+)\)", claim):
            few, many = contexts.split(" to ")
            differences.append(errors[law[1], few] - errors[law[1], many])
        else:
            bar = float(re.search(r"at least ([\d.]+) times", claim)[1])
            differences.append(errors["complicated", contexts] - bar * errors["normal", contexts])
    tests = [signed_rank(d) for d in differences]
    for row, d, (_, side), p in zip(rows, differences, tests, corrected([p for p, _ in tests]), strict=True):
        middle, low, high = pairwise_means(d)
        assert row[2:] == [str(len(d)), f"{middle:.3g} [{low:.3g}, {high:.3g}]", *told(p, side)]


def test_the_length_scale_verdict_follows_from_estimates():
    errors = {}
    with (RESULTS / "uhe-fig1" / "estimates.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            errors.setdefault(row["results"], []).append(abs(math.log(float(row["most likely"]) / 0.1)))
    searched, uniform = np.array(errors["chosen by a search"]), np.array(errors["uniform"])
    (row,) = printed("uhe-fig1")
    middle, low, high = pairwise_means(searched - uniform)
    expected = [str(len(uniform)), f"{np.median(searched):.3g}", f"{np.median(uniform):.3g}"]
    assert row[1:] == [*expected, f"{middle:.3g} [{low:.3g}, {high:.3g}]", *told(*signed_rank(searched - uniform))]


def test_further_claims_follow_from_other_folders_runs():
    rows, differences, ps = printed("further-claims"), [], []
    for claim, folder, problem, *_ in rows:
        if match := re.match(r"(.+) takes fewer times as long as the random grid", claim):
            places = problem.split(", ")
            ends = [sides(folder, place, match[1], "random grid", "processor_seconds")[:2] for place in places]
            few, many = (np.log(theirs / grid) for theirs, grid in ends)
            d = few - many
            (p, side), (_, side_alone) = signed_rank(d - math.log(SLOWER)), signed_rank(d)
            assert side == side_alone == 1
        else:
            if match := re.match(r"the random grid's regret on Branin is below (.+)'s", claim):
                better, worse = "random grid", match[1]
            else:
                better, worse = re.search(r"more than (.+)'s", claim)[1], re.match(r"(.+) (?:explores|is) ", claim)[1]
            x, y, _ = sides(folder, problem, better, worse, "cumulative_regret")
            d = y - x
            p, side = signed_rank(d)
        differences.append((d, side))
        ps.append(p)
    for row, (d, side), p in zip(rows, differences, corrected(ps), strict=True):
        middle, low, high = pairwise_means(d)
        assert row[3:] == [str(len(d)), f"{middle:.3g} [{low:.3g}, {high:.3g}]", *told(p, side)]


def test_the_page_of_all_claims_holds_every_verdict():
    sections = (RESULTS / "claims.md").read_text(encoding="utf-8").split("\n## [")[1:]
    found = {re.search(r"\]\(([\w-]+)/README.md\)", section)[1]: section for section in sections}
    judged = {path.parent.name for path in RESULTS.glob("*/README.md") if printed(path.parent.name)}
    assert set(found) == judged
    for folder, section in found.items():
        if folder not in FOLDERS:  # a figure without runs: the same table
            assert all(f"| {' | '.join(row)} |" in section for row in printed(folder))
            continue
        of_page = {(row[0], row[1], row[-1].strip("*"), row[5]) for row in printed(folder)}
        of_claims = set()
        for line in section.splitlines():
            if line.startswith("| ") and not line.startswith(("| claim |", "| --- ")):
                claim, *cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
                for word, cell in zip(("holds", "does not hold", "undecided", "not judged"), cells, strict=True):
                    for one in filter(None, cell.split("; ")):
                        problem, _, effect = one.partition(" [")[0].rpartition(" ") if "[" in one else (one, "", "")
                        of_claims.add((claim, problem, word, f"{effect} [{one.partition(' [')[2]}" if effect else ""))
        unseen = {row for row in of_claims if not row[3]}
        assert of_claims - unseen == of_page
        for claim, problem, word, _ in unseen:
            a, b, _, of = compared(folder, plain(claim))
            assert word == "not judged"
            assert len(sides(folder, problem, a, b, of)[0]) < 6
