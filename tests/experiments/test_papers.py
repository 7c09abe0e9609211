"""The papers' experiments are data that can be run, and their pages agree with the runs that are stored."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from functools import wraps
from pathlib import Path

import numpy as np
import pytest

import raybo
from raybo import methods
from raybo.context import context_model
from raybo.experiments import Experiment, Figure
from raybo.experiments.in_process import tune_here
from raybo.experiments.output import draw, write_page
from raybo.experiments.page import page
from raybo.experiments.papers import find_experiments
from raybo.experiments.results import KEYS, columns, read_reasons, read_rows
from raybo.experiments.run import bound_objective, runs
from raybo.experiments.summary import summary
from raybo.experiments.verdicts import judge, pairs_needed
from raybo.searcher import Searcher
from raybo.surrogate import Gamma, Likelihood, random_grid_model, uhe_model
from trials.synthetic import PROBLEMS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "reproduction"
_, FOUND = find_experiments(ROOT)
EXPERIMENTS = {name: experiment for name, experiment in FOUND.items() if isinstance(experiment, Experiment)}
KEPT = [name for name in EXPERIMENTS if (RESULTS / name).is_dir()]


def test_every_experiment_can_be_constructed():
    assert {"inexact-fig1", "inexact-fig3", "inexact-fig4", "inexact-fig6", "local-fig2", "local-fig3"} <= set(FOUND)
    for experiment in EXPERIMENTS.values():
        for problem in experiment.problems:
            assert bound_objective(problem, ROOT).space.d >= 1
            for entry in experiment.entries:
                methods.make(entry.method, **entry.options_for(problem))


def test_optima_and_raw_units_match_the_functions():
    checked = 0
    for experiment in EXPERIMENTS.values():
        for problem in experiment.problems:
            file, _, name = problem.target.partition(":")
            if file != "trials/synthetic.py":
                continue
            known = PROBLEMS[name]
            assert problem.optimum == pytest.approx(known.optimum, abs=1e-9)
            sign = 1 if known.mode == "max" else -1
            parameter = next(iter(bound_objective(problem, ROOT).space.parameters.values()))
            for entry in experiment.entries:
                options = entry.options_for(problem)
                if "prior_mean" in options:  # of what is maximised
                    assert options["prior_mean"] == pytest.approx(sign * known.optimum, abs=1e-9)
                if "lengthscale_start" in options:  # 1 in raw units, in sides of the box
                    assert options["lengthscale_start"] * (parameter.high - parameter.low) == pytest.approx(1.0)
                    lows = [p.low for p in bound_objective(problem, ROOT).space.parameters.values()]
                    assert list(options["origin"]) == lows
                    checked += 1
    assert checked >= 48


def test_noisy_problems_are_judged_by_noiseless_values():
    """Of noisy values the best is too good: regret would fall below zero."""
    checked = 0
    for experiment in EXPERIMENTS.values():
        for problem in experiment.problems:
            if not problem.settings.get("noise"):
                continue
            assert problem.metric is not None, problem.name
            objective = bound_objective(problem, ROOT)
            config = objective.space.decode(np.full((1, objective.space.d), 0.3))[0]
            quiet = objective(config, **{**objective.settings, "noise": 0.0})
            assert objective(config, **objective.settings)[problem.metric] == quiet[objective.metric]
            checked += 1
    assert checked >= 2


@pytest.mark.parametrize("path", sorted((ROOT / "trials" / "papers").glob("*.py")), ids=lambda path: path.stem)
def test_each_paper_uses_one_preset_per_method(path):
    """A figure without the preset that its neighbours have is another model's, under the same name."""
    presets_of: dict[str, set[object]] = {}
    names = [name for name, experiment in EXPERIMENTS.items() if _file(name) == path]
    for experiment in (EXPERIMENTS[name] for name in names):
        for problem in experiment.problems:
            for entry in experiment.entries:
                presets_of.setdefault(entry.method, set()).add(entry.options_for(problem).get("preset"))
    assert all(len(presets) == 1 for presets in presets_of.values()), presets_of


class Built(Exception):
    """A model was about to be fitted."""


def declared_model(experiment, problem, entry):
    """The model that the paper's file says its methods have; None where it says nothing of it."""
    name = experiment.name
    if name.startswith("context-"):
        return context_model()
    if name.startswith("inexact-"):
        return random_grid_model(entry.options_for(problem).get("lengthscale_start", 1.0))
    if name.startswith("uhe-") and entry.method != "random":
        prior = entry.options_for(problem).get("gamma_prior")
        return uhe_model() if prior is None else uhe_model(Gamma(*prior))
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_declared_models_are_those_in_the_journals(name, tmp_path, monkeypatch):
    """Each method after its design, made again from the journal of a run, about to fit its first model."""
    experiment = EXPERIMENTS[name]
    problem = experiment.problems[-1]
    objective = bound_objective(problem, ROOT)
    if problem.seeded is not None:
        objective = objective.with_settings(**{problem.seeded: experiment.first_seed})
    rng = np.random.default_rng(0)
    names = [] if objective.context is None else objective.context.names

    @wraps(objective.function)
    def chance(config, **settings):
        return {returned: rng.random() for returned in (objective.metric, *names)}

    cheap = replace(objective, function=chance)
    for run in runs(replace(experiment, problems=[problem], repeats=1, claims=[]), tmp_path):
        declared = declared_model(experiment, problem, run.entry)
        if declared is None:
            continue
        options = run.entry.options_for(problem)
        run.path.parent.mkdir(parents=True, exist_ok=True)
        design = int(options.get("initial", 3 * objective.space.d))
        tune_here(
            cheap,
            trials=design,
            method=run.entry.method,
            seed=run.seed,
            storage=run.path,
            options=options,
            between=lambda: None,
        )
        journal = raybo.load(run.path)
        described = (journal.description.method, dict(journal.description.options))
        assert described == (methods.name_of(run.entry.method), json.loads(json.dumps(options)))
        searcher = Searcher.of(journal.description)
        for event in journal.events:
            searcher.apply(event)
        searcher.plan(problem.trials)
        fitted = []

        def note(self, observations, model, *rest, fitted=fitted, **named):
            fitted.append(model)
            raise Built

        with monkeypatch.context() as patched:
            patched.setattr(Likelihood, "__init__", note)
            for _ in range(20):  # a bandit may ask for some random points first
                try:
                    trial = searcher.ask()
                except Built:
                    break
                searcher.tell(trial, rng.random(), **({"context": {n: 0.5 for n in names}} if names else {}))
        assert fitted[:1] == [declared], f"{run.entry.name} on {problem.name}"


# ---- the stored results


@pytest.mark.parametrize("name", KEPT)
def test_a_page_says_what_its_runs_show(name, tmp_path):
    folder, experiment = RESULTS / name, EXPERIMENTS[name]
    rows = read_rows(folder)
    assert (folder / "README.md").read_text() == page(experiment, rows, read_reasons(folder))
    assert {row.problem for row in rows} <= {problem.name for problem in experiment.problems}
    assert {row.method for row in rows} <= {entry.name for entry in experiment.entries}
    known = {*columns(experiment), *KEYS}
    assert {kind for row in rows for kind in row.numbers} <= known  # no cost but processor seconds
    judged = [verdict for verdict in judge(experiment, rows) if verdict.is_judged]
    assert page(experiment, rows).count("| **") == len(judged)  # a verdict for each of them, and for no other claim


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_a_figure_shows_the_curves_beside_it(name, tmp_path):
    """It can be drawn of them, and every method that has runs is in it."""
    for file in ("runs.csv", "curves.csv.gz", "reasons.md"):
        if (RESULTS / name / file).exists():
            (tmp_path / file).write_bytes((RESULTS / name / file).read_bytes())
    drawn, written = draw(EXPERIMENTS[name], tmp_path), write_page(EXPERIMENTS[name], tmp_path)
    assert drawn.stat().st_size > 10_000
    assert written.read_text() == (RESULTS / name / "README.md").read_text()
    lines = gzip.decompress((RESULTS / name / "curves.csv.gz").read_bytes()).decode().splitlines()
    for row in read_rows(tmp_path):
        assert any(line.startswith(start) for line in lines for start in _starts(row)), row


def _starts(row):
    problem = f'"{row.problem}"' if "," in row.problem else row.problem
    method = f'"{row.method}"' if "," in row.method else row.method
    return [f"{problem},{method},"]


@pytest.mark.parametrize("name", KEPT)
def test_failed_claims_are_explained(name):
    """By the names of the problem and of both sides."""
    text = " ".join(read_reasons(RESULTS / name).split())
    lost = [v for v in judge(EXPERIMENTS[name], read_rows(RESULTS / name)) if v.word == "does not hold"]
    names = {part for v in lost for part in (v.problem, v.claim.better, v.claim.worse)}
    assert [part for part in sorted(names) if not re.search(rf"(?<![\w-]){re.escape(part)}(?![\w-])", text)] == []
    assert bool(text) == bool(lost)


def test_claims_page_matches_the_result_folders():
    assert (RESULTS / "claims.md").read_text() == summary(FOUND, RESULTS)


def test_index_lists_each_folder_with_its_command():
    """And with as many repeats as there are runs."""
    text = (RESULTS / "README.md").read_text()
    for name in KEPT:
        repeats = len({row.seed for row in read_rows(RESULTS / name)})
        (line,) = [line for line in text.splitlines() if f"({name}/README.md)" in line and line.startswith("|")]
        assert f"`raybo reproduce {name} --repeats {repeats}`" in line


def test_index_says_how_many_runs_unjudged_claims_need():
    text = " ".join((RESULTS / "README.md").read_text().split())
    tuning, long = (len(judge(EXPERIMENTS[name], [])) for name in ("uhe-fig2-tuning", "context-fig1-350"))
    assert (pairs_needed(tuning), pairs_needed(long)) == (11, 10)
    assert "fewer than eleven runs of uhe-fig2-tuning, and ten of context-fig1-350" in text


def test_index_lists_missing_experiments_with_their_cost():
    text = (RESULTS / "README.md").read_text().split("## What is not here")[1]
    for name, experiment in EXPERIMENTS.items():
        rows = [line for line in text.splitlines() if f"`raybo reproduce {name}`" in line]
        assert len(rows) == (name not in KEPT), name
        assert all(line.endswith(f"| {experiment.hours:g} |") for line in rows), rows


def test_every_results_folder_is_reproducible():
    assert {folder.name for folder in RESULTS.iterdir() if folder.is_dir()} <= set(FOUND)
    assert all(isinstance(experiment, (Experiment, Figure)) for experiment in FOUND.values())


def _file(name):
    """The file that an experiment is in."""
    return next(path for path in (ROOT / "trials" / "papers").glob("*.py") if f'"{name}"' in path.read_text())
