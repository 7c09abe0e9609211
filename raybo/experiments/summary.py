"""All claims of all experiments in one page: a line each, with what was found on its problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from raybo.common.files import write_file
from raybo.experiments.output import PAGE as README
from raybo.experiments.page import FEWEST, as_table, effect_in_words
from raybo.experiments.plan import Claim, Experiment, Figure
from raybo.experiments.results import FILE, read_reasons, read_rows
from raybo.experiments.verdicts import Verdict, judge

PAGE = "claims.md"
INTRODUCTION = """# Every claim, and what was found

One row per claim. Each verdict lists the problems that it applies to, with the effect: the typical paired difference in
the claim's measure, positive where it favours the claim, with a 95 % interval that is not corrected for the number of
claims. Where a claim says "at most c times" the other, the difference is taken from c times the other. The page
of each folder has the tests and the number of pairs behind every verdict. A claim is not judged if, with so few pairs
and so many claims, no result could have been significant; with fewer than {fewest} pairs no effect is given either.
Where claims do not hold, the reasons follow the table. The claims of figures that are computed without runs stand as on
their own pages. `raybo reproduce` writes this page.
"""


def write_summary(experiments: Mapping[str, Experiment | Figure], directory: Path) -> Path:
    """Write the page of the directory in which the experiments' folders are."""
    write_file(directory / PAGE, summary(experiments, directory))
    return directory / PAGE


def summary(experiments: Mapping[str, Experiment | Figure], directory: Path) -> str:
    """The page as Markdown, of the experiments that have results in the directory."""
    parts, open_ones = [INTRODUCTION.format(fewest=FEWEST)], []
    for name, experiment in experiments.items():
        if isinstance(experiment, Figure):
            if lines := _claims_of(directory / name / README):
                parts += [f"## [{experiment.title}]({name}/README.md)\n", f"`raybo reproduce {name}`\n", lines + "\n"]
            continue
        if not experiment.claims or not (directory / name / FILE).exists():
            continue
        rows = read_rows(directory / name)
        found: dict[tuple[str, str, str, str], list[Verdict]] = {}  # claims of one text may speak of several problems
        repeats = len({row.seed for row in rows})
        verdicts = judge(experiment, rows)
        if all(verdict.repeats < FEWEST for verdict in verdicts):
            open_ones.append([f"[{name}]({name}/README.md)", experiment.title, str(repeats), f"{experiment.hours:g}"])
            continue
        for verdict in verdicts:
            found.setdefault(_key(verdict.claim), []).append(verdict)
        parts += [f"## [{experiment.title}]({name}/README.md)\n", f"`raybo reproduce {name} --repeats {repeats}`\n"]
        heading = ["claim", "holds", "does not hold", "undecided", "not judged"]
        parts += ["\n".join(as_table(heading, [_line(verdicts) for verdicts in found.values()])) + "\n"]
        if reasons := read_reasons(directory / name):
            parts.append(reasons.replace("](../", "](") + "\n")  # links from the folder to its neighbours
    if open_ones:
        heading = ["folder", "title", "runs", "processor hours, in total"]
        parts += ["## Not judged: too few runs\n", "\n".join(as_table(heading, open_ones)) + "\n"]
    return "\n".join(parts)


def _claims_of(page: Path) -> str:
    """Return the table of claims of a figure's page; empty if it has none."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    return text.partition("\n## Claims\n\n")[2].partition("\n\n")[0].strip()


def _key(claim: Claim) -> tuple[str, str, str, str]:
    return claim.text, claim.source, claim.measure, claim.better


def _line(verdicts: list[Verdict]) -> list[str]:
    claim = verdicts[0].claim
    cells: dict[str, list[str]] = {"holds": [], "does not hold": [], "undecided": [], "other": []}
    for verdict in verdicts:
        cells[verdict.word if verdict.word in cells else "other"].append(_found(verdict))
    return [claim.text + (f" ({claim.source})" if claim.source else ""), *("; ".join(cell) for cell in cells.values())]


def _found(verdict: Verdict) -> str:
    if verdict.repeats < FEWEST:
        return verdict.problem
    return f"{verdict.problem} {effect_in_words(verdict.effect)}"
