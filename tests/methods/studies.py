"""Studies by ask and tell, for the tests of methods that work in iterations."""

from __future__ import annotations

import numpy as np

from raybo.record.events import Asked, Told
from raybo.record.history import History
from raybo.searcher import Searcher
from raybo.space import Float, Space


def floats(d):
    """d axes whose values are their coordinates."""
    return Space({f"x{i}": Float(0, 1) for i in range(d)})


def hill(x):
    """A smooth function, maximised at 0.3 on every axis."""
    return -float(np.sum((np.asarray(x) - 0.3) ** 2))


def coordinates(trial):
    """A trial's point, on a space of `floats`."""
    return np.array(list(trial.config.values()))


def run(method, d, trials, f=hill, *, mode="max", seed=0, planned=False, **options):
    """A study with one worker; its searcher."""
    searcher = Searcher(floats(d), method, mode, seed, trials if planned else None, **options)
    for _ in range(trials):
        trial = searcher.ask()
        searcher.tell(trial, f(coordinates(trial)))
    return searcher


def run_workers(method, d, trials, workers, f=hill, *, fail=(), seed=0, **options):
    """A study with several workers, of which a random one is always the next to end; `fail` are the failing trials."""
    searcher = Searcher(floats(d), method, "max", seed, None, **options)
    rng, running = np.random.default_rng(9), []
    while len(searcher.trials) < trials or running:
        while len(running) < workers and len(searcher.trials) < trials:
            running.append(searcher.ask())
        trial = running.pop(int(rng.integers(len(running))))
        if trial.number in fail:
            searcher.fail(trial, "unlucky")
        else:
            searcher.tell(trial, f(coordinates(trial)))
    return searcher


def told(history, x, tags, value):
    """Append a finished trial."""
    number = len(history)
    history.apply(Asked(number, x=list(map(float, x)), tags=tags))
    history.apply(Told(number, value=float(value)))


def history_at(centre, X, values, *, explored=0, **tags):
    """A history on floats whose last `explored` trials explored around the centre in iteration 1."""
    history = History(floats(len(centre)).cube)
    entered = {"iteration": 1, "role": "centre", "centre": list(map(float, centre))}
    for i, (x, value) in enumerate(zip(X, values, strict=True)):
        own = {"iteration": 1, "role": "explore", **tags} if i >= len(X) - explored else {}
        told(history, x, own | entered if explored and i == len(X) - explored else own, value)
    return history


def centres(searcher):
    """The trials that evaluated a centre, and the centres themselves."""
    chosen = [t for t in searcher.trials if t.tags.get("role") == "centre"]
    return chosen, np.array([t.tags["centre"] for t in chosen if "centre" in t.tags])


def roles(searcher):
    """A letter for each trial: c for a centre, e for exploration."""
    return "".join(t.tags["role"][0] for t in searcher.trials)
