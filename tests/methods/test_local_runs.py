"""The local methods begin by a design and its best point, and afresh elsewhere once nothing differs."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.methods import make
from raybo.record.events import Asked, Told
from raybo.record.history import History
from raybo.searcher import Searcher, Stream, random_stream
from tests.methods.studies import coordinates, floats, hill, run, run_workers
from trials.papers.local import EXPERIMENTS

FAST = {"lengthscale": 0.4, "outputscale": 1.0, "batch": 2}
LA = {"samples": 4, "restarts": 2}
METHODS = {"gibo": FAST, "mpd": FAST, "min-ucb": FAST, "la-min-ucb": {**FAST, **LA}, "ars": {"directions": 1}}
EVERY = pytest.mark.parametrize("method", METHODS)


def step(x):
    """A plateau, and a hill on a quarter of the square."""
    return hill(x) + 1.0 if np.max(x) < 0.5 else 0.0


def parts(searcher):
    """Per trial, the run whose design it belongs to, or "." where it belongs to an iteration."""
    return "".join(str(trial.tags.get("design", ".")) for trial in searcher.trials)


@EVERY
def test_the_first_centre_is_the_designs_best(method):
    searcher = run(method, 2, 12, initial=8, **METHODS[method])
    assert parts(searcher) == "11111111...."
    values = [hill(coordinates(trial)) for trial in searcher.trials[:8]]
    best = searcher.trials[int(np.argmax(values))]
    assert searcher.trials[8].tags["centre"] == pytest.approx(coordinates(best))
    assert searcher.explain(searcher.trials[0]) == "a design point (Sobol)"


@EVERY
def test_design_sizes_of_short_and_long_studies(method):
    for planned, size in {None: 25, 24: 6, 400: 25, 19: 9}.items():  # 19 are fewer than 10 per axis
        searcher = Searcher(floats(2), method, "max", 0, planned, **METHODS[method])
        for _ in range(size + 1):
            searcher.tell(searcher.ask(), 0.0)
        assert parts(searcher) == "1" * size + "."


@pytest.mark.slow
@EVERY
def test_stagnant_runs_end(method):
    """A slope that the noise of a generator hides, and no value above the design's best, which is found first."""
    options = {**METHODS[method], "initial": 2}
    values = iter([9.0, *np.random.default_rng(0).random(79)])
    found = run(method, 2, 80, lambda x: next(values), planned=True, **options)
    begun = next(i for i, trial in enumerate(found.trials) if trial.tags.get("design") == 2)
    assert 2 + 80 // 4 <= begun <= 2 + 80 // 4 + 8
    values = iter([9.0, *np.random.default_rng(0).random(79)])
    assert "2" not in parts(run(method, 2, 80, lambda x: next(values), planned=True, restart=False, **options))
    rising = iter(range(80))
    assert "2" not in parts(run(method, 2, 80, lambda x: float(next(rising)), planned=True, **options))


@EVERY
def test_known_results_count_for_the_design(method):
    assert parts(run(method, 2, 3, start="centre", **METHODS[method])) == "..."
    assert parts(run(method, 2, 3, start="sobol", **METHODS[method])) == "..."
    searcher = Searcher(floats(2), method, "max", 0, None, initial=3, **METHODS[method])
    for i in range(2):
        searcher.add({"x0": 0.1 * i, "x1": 0.5}, float(i))
    for _ in range(2):
        searcher.tell(searcher.ask(), 0.0)
    assert parts(searcher) == "..1."
    assert searcher.trials[3].tags["centre"] == pytest.approx([0.1, 0.5])


@EVERY
def test_an_iteration_without_a_difference_restarts_elsewhere(method):
    """On a plateau one design follows the other, until one finds the hill."""
    searcher = run(method, 2, 40, lambda x: 7.0, initial=4, **METHODS[method])
    assert searcher.history.last_tag("run") >= 3
    fresh = next(trial for trial in searcher.trials if trial.tags.get("design") == 2)
    assert searcher.explain(fresh) == "restarted elsewhere, as nothing differed: a design point (Sobol)"
    design = [tuple(coordinates(trial)) for trial in searcher.trials if "design" in trial.tags]
    assert len(set(design)) == len(design)
    found = run(method, 2, 60, step, seed=3, initial=2, **METHODS[method])
    runs = found.history.last_tag("run")
    assert found.best.value > 0.9
    design = [trial for trial in found.trials if trial.tags.get("design") == runs]
    first = next(trial for trial in found.trials if trial.tags.get("run") == runs)
    best = max(design, key=lambda trial: trial.value)
    assert first.tags["centre"] == pytest.approx(coordinates(best))


@EVERY
def test_0_1_options_reproduce_0_1(method):
    """No tag of a run, and no restart on a plateau."""
    searcher = run(method, 2, 20, lambda x: 7.0, initial=0, restart=False, **METHODS[method])
    assert not any({"design", "run"} & set(trial.tags) for trial in searcher.trials)
    assert [t.tags["iteration"] for t in searcher.trials] == sorted(t.tags["iteration"] for t in searcher.trials)
    assert len({tuple(t.tags["centre"]) for t in searcher.trials if "run" in t.tags}) == 0


@EVERY
def test_0_1_studies_continue_as_begun(method):
    """It began with an iteration, and none of its trials names a run."""
    old = run(method, 2, 18, lambda x: 7.0, initial=0, restart=False, **METHODS[method])
    history = History(floats(2).cube)
    new = make(method, **METHODS[method])
    for trial in old.trials:
        rng = random_stream(old.seed, trial.number, Stream.PROPOSAL)
        if trial.number:
            proposal = new.propose(history, rng)
            np.testing.assert_array_equal(proposal.x, coordinates(trial))
            assert proposal.tags == trial.tags
        history.apply(Asked(trial.number, x=coordinates(trial).tolist(), tags=trial.tags))
        history.apply(Told(trial.number, value=7.0))


@EVERY
@pytest.mark.parametrize("workers", [3, 8])
def test_a_design_lasts_until_its_points_have_ended(method, workers):
    searcher = run_workers(method, 2, 30, workers, step, fail={1, 2}, initial=6, **METHODS[method])
    first = parts(searcher).index(".")
    assert 6 <= first < 6 + workers
    assert set(parts(searcher)[:first]) == {"1"}


def test_equal_failures_have_no_slope():
    searcher = run("gibo", 2, 4, initial=4, **FAST)
    for _ in range(3):
        searcher.fail(searcher.ask(), "unlucky")
    assert searcher.ask().tags["design"] == 2


@pytest.mark.parametrize("method", ["gibo", "mpd", "min-ucb"])
def test_pure_noise_has_no_slope(method):
    """Every length-scale is fitted as its least, and the next run begins; with a known one there is none to tell by."""

    def noise(x):
        return float(np.random.default_rng(x.view(np.uint32)).standard_normal())

    assert run(method, 2, 40, noise, initial=6, batch=4).history.last_tag("run") > 1
    assert run(method, 2, 40, noise, initial=6, **FAST).history.last_tag("run") == 1
    assert run(method, 2, 40, initial=6, batch=4).history.last_tag("run") == 1


def test_turbo_restarts_after_a_flat_design():
    searcher = run("turbo", 2, 12, lambda x: 7.0, initial=4)
    assert [trial.tags["region"]["run"] for trial in searcher.trials] == [1] * 4 + [2] * 4 + [3] * 4
    late = Searcher(floats(2), "turbo", "max", 0, initial=4)
    for trial in [late.ask() for _ in range(4)][:3]:
        late.tell(trial, 7.0)
    assert late.ask().tags["region"]["run"] == 1  # the last one may differ
    old = run("turbo", 2, 12, lambda x: 7.0, initial=4, restart=False)
    assert {trial.tags["region"]["run"] for trial in old.trials} == {1}
    assert not any("run" in trial.tags for trial in old.trials)
    going_on = make("turbo", initial=4).propose(old.history, np.random.default_rng(0))
    assert going_on.tags["region"]["run"] == 1
    assert "run" not in going_on.tags


def test_the_papers_settings_have_neither_design_nor_restarts():
    for experiment in EXPERIMENTS:
        for problem in experiment.problems:
            for entry in experiment.entries:
                options = entry.options_for(problem)
                assert (options["initial"], options["restart"]) == (0, False)
