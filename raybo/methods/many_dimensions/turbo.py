"""turbo: Thompson sampling in a trust region that grows with success and shrinks with failure.

Eriksson, Pearce, Gardner, Turner, Poloczek (2019), "Scalable Global Optimization via Local Bayesian Optimization",
NeurIPS: TuRBO-1. Written from the paper's description. A run begins with a Latin hypercube; its region is a box around
the best point, shaped by the length-scales; a region that has become too small ends the run, and a fresh one begins;
so does one, unless restart=false, if all values of the design are equal, which leaves nothing to model.
Departures: one proposal is one draw, for whichever worker asks; the counters move for every `batch` results that have
come in. At most 2,000 candidates, since a joint draw costs their cube. Categorical axes are redrawn among all
categories. Failed trials count as the worst value of the run; those in flight are believed at their posterior mean,
so that workers keep apart. Results added by the user join the first run.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybo.common.options import option
from raybo.methods.many_dimensions.iterations import is_flat
from raybo.methods.method import Method
from raybo.methods.parts.initial_design import design_size, uniform
from raybo.methods.parts.refit_schedule import REFIT_SHARE
from raybo.methods.story import OverTrials, Scale, Series, Story
from raybo.record.events import Tags
from raybo.record.history import History, Proposal
from raybo.record.states import FAILURES, State
from raybo.record.trial import Record, Trial
from raybo.space import Array, scrambled_sobol
from raybo.surrogate import GP, Observations, Standardised, fit_map, joint_draws, turbo_model

FIRST_LENGTH = 0.8  # the region's side at the start of a run
LEAST_LENGTH = 2.0**-7  # a region with a shorter side ends the run
LARGEST_LENGTH = 1.6  # the region's side never exceeds it
SUCCESSES = 3  # so many successes in a row double the region's side
GAIN = 1e-3  # a success gains more than this share of the best value's size
PERTURBED = 20  # a candidate differs from the centre in so many axes on average


@dataclass(frozen=True)
class Region:
    """The trust region that the tag `region` of every trial stores.

    Attributes:
        run: from 1. design: points of its Latin hypercube. seed: of the hypercube.
        length: its side, before length-scales shape it.
        successes, failures: batches in a row. counted: results in these counts. best: the best of them, or None.
    """

    run: int
    design: int
    seed: int
    length: float = FIRST_LENGTH
    successes: int = 0
    failures: int = 0
    counted: int = 0
    best: float | None = None


@dataclass(frozen=True, kw_only=True)
class Turbo(Method):
    """Thompson sampling within a trust region around the best point, which grows with success and shrinks with failure.

    Eriksson et al. (2019), "Scalable Global Optimization via Local Bayesian Optimization", NeurIPS (TuRBO-1).
    """

    batch: int = option(1, "results per update of the region's counters: the paper's batch size", at_least=1)
    initial: int | None = option(
        None, "points of a run's design; none: 2 per axis, at most a quarter of the trials", at_least=1
    )
    candidates: int | None = option(
        None, "points among which a draw is maximised; none: 100 per axis, at most 2,000", at_least=1, at_most=2_000
    )
    restart: bool = option(True, "restart elsewhere once a run's design has seen no difference at all")

    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the next point of the run's design, or the maximiser of a draw within the region."""
        tag = history.last_tag("region")
        region = self._fresh(history, rng, 1) if tag is None else Region(**tag)
        own = run_of(history, region.run)
        asked = sum("region" in record.tags for record in own)
        if asked >= region.design:
            region = self._counted(region, own, history.d)
            if region.length < LEAST_LENGTH or self._is_stuck(history, region, own):
                region, own, asked = self._fresh(history, rng, region.run + 1), [], 0
        tags: Tags = {"region": dataclasses.asdict(region)}
        if asked == 0 and self.restart and (tag is None or history.last_tag("run") is not None):
            tags["run"] = region.run
        if asked < region.design:
            stream = np.random.default_rng(region.seed)
            design = history.cube.within(latin_hypercube(region.design, history.d, stream), stream)
            return Proposal(design[asked], tags, in_design=True)
        if not any(record.state is State.FINISHED for record in own):
            return Proposal(uniform(history, rng), tags, in_design=True)  # the design has failed or is still running
        gp, fit = self._model(history, own)
        tags |= fit
        return Proposal(self._draw(history, gp, region.length, rng), tags)

    def _fresh(self, history: History, rng: np.random.Generator, run: int) -> Region:
        return Region(run, design_size(history, 2 * history.d, self.initial), int(rng.integers(2**31)))

    def _is_stuck(self, history: History, region: Region, own: list[Record]) -> bool:
        """Return True if all values of the ended design are equal; False in a study of raybo 0.1, without runs."""
        ended = sum(record.has_ended for record in own)
        return self.restart and history.last_tag("run") is not None and ended >= region.design and is_flat(own)

    def _counted(self, region: Region, own: list[Record], d: int) -> Region:
        """Return the region after the new results, in batches."""
        finished = [record.y for record in own if record.y is not None and record.has_ended]
        ended = sum(record.has_ended for record in own if "region" in record.tags)
        batches = (ended - region.design - region.counted) // self.batch
        if not finished or (region.best is not None and batches < 1):
            return region
        best = max(finished)
        if region.best is None:  # the design's own best is no success
            return dataclasses.replace(region, best=best, counted=max(ended - region.design, 0))
        success = best > region.best + GAIN * abs(region.best)
        successes, failures = (region.successes + 1, 0) if success else (0, region.failures + batches)
        length = region.length
        if successes == SUCCESSES:
            length, successes = min(2.0 * length, LARGEST_LENGTH), 0
        elif failures >= math.ceil(max(4.0, d) / self.batch):
            length, failures = 0.5 * length, 0
        counted = region.counted + batches * self.batch
        return dataclasses.replace(
            region, length=length, successes=successes, failures=failures, counted=counted, best=max(best, region.best)
        )

    def _model(self, history: History, own: list[Record]) -> tuple[GP, Tags]:
        """Return the posterior given the run's finished trials, and the tags of the fit if it is a new one."""
        finished = np.array([record.y for record in own if record.y is not None])
        known = [record for record in own if record.y is not None or record.has_failed]
        y = np.array([finished.min() if record.y is None else record.y for record in known])
        outputs = dataclasses.replace(Standardised.of(finished), mean=2.0 * float(np.median(0.5 * finished)))
        X = np.array([record.x for record in known])
        added = outputs.variances(np.array([record.error for record in known]))
        observations = Observations.of(X, outputs.apply(y), history.cube.categorical, added)
        model = turbo_model()
        last = next((r.tags["fit"] for r in reversed(own) if "fit" in r.tags), None)
        tags: Tags = {}
        if last is not None and len(y) < last["n"] + max(self.batch, len(y) // REFIT_SHARE):
            theta = np.array(last["theta"])
        else:
            theta = fit_map(observations, model, [model.start(history.d) if last is None else np.array(last["theta"])])
            tags = {"fit": {"n": len(y), "theta": theta.tolist()}}
        return GP.of(observations, model, theta), tags

    def _draw(self, history: History, gp: GP, length: float, rng: np.random.Generator) -> Array:  # (d,)
        """Return the unproposed candidate at which a joint draw is highest."""
        centre = gp.X[int(np.argmax(gp.posterior(gp.X)[0]))]
        size = min(100 * history.d, 2_000) if self.candidates is None else self.candidates
        numeric = ~np.array(history.cube.categorical)
        side = np.ones(history.d)
        if numeric.any():
            scale = gp.lengthscale[numeric]
            side[numeric] = length * scale / math.exp(np.log(scale).mean())
        low, high = np.clip(centre - 0.5 * side, 0.0, 1.0), np.clip(centre + 0.5 * side, 0.0, 1.0)
        low[~numeric], high[~numeric] = 0.0, 1.0
        X = history.cube.snap(low + (high - low) * scrambled_sobol(size, history.d, rng))
        X = np.where(perturbed(size, history.d, rng), X, centre)
        if (
            history.cube.is_ruled or history.cube.is_conditional
        ):  # a candidate that mixes two valid points may be invalid
            X = history.cube.snap(X)
        proposed = history.points(State.PENDING, State.FINISHED, *FAILURES)
        known = {
            row.tobytes() for row in proposed + 0.0
        }  # + 0.0 turns -0 into 0; comparing all pairs would fill the memory
        new = X[[row.tobytes() not in known for row in X + 0.0]]
        X = new if len(new) else X
        draw = joint_draws(gp.believing(history.X_pending), X, rng)[0]
        return np.asarray(X[int(np.argmax(draw))])

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a story of the region's side over time."""
        return region_story(trials)

    def explain(self, tags: Tags) -> str:
        """Explain a point of the design, or the region's side."""
        if "region" not in tags:
            return "a trial outside any run"
        region = tags["region"]
        if region["best"] is None:
            return f"run {region['run']}: design (Latin hypercube)"
        return f"run {region['run']}: best of a draw in a region of side {region['length']:.3g}"


def run_of(history: History, run: int) -> list[Record]:
    """Return the trials of a run; those added by the user belong to the first."""
    return [
        r
        for r in history.records
        if ("region" in r.tags and r.tags["region"]["run"] == run) or ("region" not in r.tags and run == 1)
    ]


def latin_hypercube(n: int, d: int, rng: np.random.Generator) -> Array:  # (n, d)
    """Return points with one in each of n equal parts of each axis."""
    parts = np.stack([rng.permutation(n) for _ in range(d)], axis=1)
    return np.asarray((parts + rng.random((n, d))) / n)


def perturbed(size: int, d: int, rng: np.random.Generator) -> NDArray[np.bool_]:  # (size, d)
    """Draw a mask of the coordinates that differ from the centre's: 20 on average, at least one per candidate."""
    mask = rng.random((size, d)) < min(1.0, PERTURBED / d)
    none = np.flatnonzero(~mask.any(axis=1))
    mask[none, rng.integers(d, size=len(none))] = True
    return mask


def region_story(trials: Sequence[Trial]) -> Story | None:
    """Return a story of the region's side, run by run; None without a region."""
    tagged = [(trial.number, trial.tags["region"]) for trial in trials if isinstance(trial.tags.get("region"), dict)]
    if not tagged:
        return None
    series = []
    for run in sorted({tag["run"] for _, tag in tagged}):
        own = [(number, tag["length"]) for number, tag in tagged if tag["run"] == run]
        numbers, lengths = zip(*own, strict=True)
        series.append(Series(numbers, lengths, f"run {run}", "stands"))
    halves = tuple((2.0**k, f"1/{2**-k}" if k < 0 else str(2**k)) for k in range(-8, 2))
    caption = (
        "The side of the trust region, in sides of the unit cube: it doubles after successes and halves after "
        "failures, and a new run begins where it has become too small."
    )
    plot = OverTrials(tuple(series), Scale("side of the region", ticks=halves, is_log=True))
    return Story("region", "The trust region", caption, (plot,), 320)
