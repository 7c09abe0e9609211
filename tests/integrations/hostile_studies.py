"""Make studies that are hard to export, as raybo's journals hold them: every outcome, kind of value and name."""

from __future__ import annotations

import contextlib
import math
import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

import raybo
from raybo.journal import Journal
from raybo.journal.notes import take_note
from raybo.record.description import Description
from raybo.record.events import KINDS, Event, Kind, Planned
from raybo.record.goals import Goals
from raybo.record.origin import Origin
from raybo.searcher import Searcher
from raybo.space import Space
from raybo.study.study import Study

KEPT = Path(__file__).parents[1] / "journal" / "journals_of_0_1"
LONG = "p" * 300
BEGIN = 1_800_000_000
SPACE = {
    "model": raybo.Categorical([{"name": "svm", "C": raybo.Float(0, 1)}, {"name": "knn", "k": raybo.Integer(1, 9)}]),
    "whole": raybo.Integer(2**60, 2**60 + 8),
    "odd": raybo.Categorical([None, [1, 2], (3,), "ü\n\x07\r=1", True, 1, math.inf, "x" * 600, "-1+1"]),
    "a@1": raybo.Float(0, 1),
    "a#1": raybo.Float(0, 1),
    LONG + "1": raybo.Float(0, 1),
    LONG + "2": raybo.Float(0, 1),
    "new\nline\r": raybo.Float(0, 1, step=0.25),
    "seconds": raybo.Float(1e-5, 1e5, log=True),
    "share": raybo.Float(0.5, 0.999, scale="logit"),
    "order": raybo.Ordinal([16, 64, 256]),
}
METRICS = {
    "acc@5": 0.25,
    "acc#5": 0.75,
    "best": 3.0,
    "flag": True,
    "words": "inf\r\n",
    "many": 2**53 + 1,
    "list": [1, 2],
}
REASON = 'ValueError: "ü",\r\n\x07 <b>\u2028 diverged'


class Written:
    """A study that is being written: the events about its trials, a second apart."""

    def __init__(self, path: Path, space: object = None, begun: int = 0, **options: object) -> None:
        self.path, self.begun = path, begun
        self.space = Space({"x": raybo.Float(0, 1)} if space is None else space)
        self.options = {"mode": "min", "seed": 0, **options}
        if "metrics" in self.options:
            del self.options["mode"]
        self.searcher = Searcher(self.space, "random", **self.options)
        self.events: list[Event] = [self.searcher.apply(Planned(trials=40))]

    def ask(self, config: object = None, **tags: object) -> int:
        """Another trial, of a configuration or a random one."""
        number = len(self.searcher.trials)
        asked = (
            self.searcher.propose(self.searcher.history)
            if config is None
            else self.searcher.known(config, Origin.ENQUEUED)
        )
        asked = replace(asked, tags={**asked.tags, **tags})
        self.events.append(self.searcher.apply(asked))
        return number

    def say(self, kind: Kind, number: int, /, **data: object) -> None:
        """An event about a trial."""
        self.events.append(self.searcher.apply(KINDS[kind].of(number, data)))

    def report(self, number: int, curve: dict[int, float], **data: object) -> None:
        """Return a trial's values, by step."""
        for step, value in curve.items():
            self.say(Kind.REPORTED, number, step=step, value=value, **data)

    def study(self) -> Study:
        """It, read from its journal."""
        s, metrics = self.searcher, self.options.get("metrics")
        description = Description(
            objective="job/a b",
            goals=Goals.of(
                metrics, self.options.get("constraints"), **({} if metrics else {"metric": "loss", "mode": s.mode})
            ),
            space=self.space,
            method="random",
            seed=0,
            context=s.context,
        )
        times = [datetime.fromtimestamp(BEGIN + self.begun + i, timezone.utc) for i in range(len(self.events))]
        with contextlib.closing(Journal(self.path, description)) as journal:
            journal._insert([replace(e, at=at.isoformat()) for e, at in zip(self.events, times, strict=True)])
        return raybo.load(self.path)


def outcomes(path: Path) -> Study:
    """Every way in which a trial ends, or does not yet."""
    written = Written(path, SPACE)
    for number in range(len(SPACE["odd"].choices)):  # each of the choices
        model = {"name": "svm", "C": 0.125} if number % 2 else {"name": "knn", "k": 3}
        row = written.space.sample(np.random.default_rng(number), 1)[0]
        config = {**row, "model": model, "odd": SPACE["odd"].choices[number], "whole": 2**60 + number % 8}
        written.ask(config)
    end = {"seconds": 0.0, "attempt": 1, "host": "node-a", "started": "2026-01-01T00:00:00+00:00"}
    written.say(Kind.BEGUN, 0, attempt=1)
    written.report(0, {1: 3.0, 2: 2.5, 5: 2.0}, metrics={"acc@5": 0.5, "acc#5": 0.5})
    written.say(Kind.TOLD, 0, value=2.0, metrics=METRICS, **end)
    written.say(Kind.FAILED, 1, reason=REASON, traceback=f"Traceback\n{REASON}", **end)
    written.say(Kind.FAILED, 2, reason="boom", metrics={"acc#5": 0.5}, **end)
    written.say(Kind.RETRIED, 2, reason="it had failed, and is retried", attempt=2)
    written.say(Kind.TOLD, 2, value=7.0, metrics={"acc#5": 0.5}, seconds=2.0, attempt=2)
    written.say(Kind.FAILED, 3, reason="its worker died", kind="lost", attempt=3)
    written.report(4, {1: 9.0, 3: 8.0})
    written.say(Kind.STOPPED, 4, reason="stopped by the user")
    written.report(5, {2: 9.0, 3: 8.5, 7: 8.25})
    written.say(
        Kind.PRUNED, 5, reason="step 6\rstep 7 is hopeless", rule="median", step=7, numbers={"cutoff": 2.5, "rank": 3}
    )
    written.report(6, {1: 4.0, 3: 3.0})
    written.say(Kind.PAUSED, 6, reason="waits", rule="asha", step=3, numbers={"cutoff": 2.0})
    written.report(7, {1: 4.0, 2: 3.5}, metrics={"acc@5": 0.5, "acc#5": 0.125})
    other = written.ask()
    written.report(other, {1: 6.0, 2: 5.0})
    written.say(Kind.RETRIED, other, reason="its worker died", attempt=2)
    written.report(other, {2: 5.0}, repeated=True)
    written.report(other, {3: 4.0})
    written.say(Kind.TOLD, other, value=4.0, seconds=1.5, attempt=2)
    written.say(Kind.TOLD, written.ask(), value=1e300, seconds=1.0)
    waiting = written.ask()
    written.report(waiting, {1: 5.0})
    written.say(Kind.PAUSED, waiting, reason="waits", rule="asha", step=1, seconds=1.0)
    written.say(Kind.RESUMED, waiting, attempt=2)
    written.report(waiting, {2: 4.5})
    written.say(Kind.PRUNED, waiting, reason="hopeless", rule="asha", step=2, seconds=0.5, attempt=2)
    written.say(Kind.PRUNED, written.ask(), reason="enough", rule="user")
    written.events.append(written.searcher.apply(written.searcher.known({**row, "model": model})))
    written.say(Kind.TOLD, len(written.searcher.trials) - 1, value=-0.0)
    written.say(Kind.STOPPED, written.ask(), reason="stopped by the user")
    written.ask(mean=math.inf, sd=math.nan)
    study = written.study()
    take_note(path, "look at \u2028 this,\nand that", 0)
    return study


def goals(path: Path) -> Study:
    """Several metrics, whose names look alike once cleaned, and a constraint."""
    written = Written(path, begun=1_000, metrics={"a@1": "max", "a#1": "min"}, constraints={"memory": "<= 2"})
    for a, b, memory in ((1.0, 2.0, 1.0), (3.0, 1.0, 5.0), (0.5, 0.25, 2.0)):
        metrics = {"a#1": b, "memory": memory, "a_1": 0.0625, "flag": False}
        written.say(Kind.TOLD, written.ask(), value=a, metrics=metrics, seconds=1.0)
    written.say(Kind.FAILED, written.ask(), reason="boom")
    return written.study()


def contexts(path: Path) -> Study:
    """A context that trials observe."""
    declared = {"load": raybo.Float(0, 1), "day": raybo.Categorical(["mon", None])}
    written = Written(path, context=declared)
    for met in ({"load": 0.25, "day": "mon"}, {"load": 0.75, "day": None}):
        number = written.ask()
        written.say(Kind.TOLD, number, value=1.0, seconds=1.0, **written.searcher._read(met, number))
    written.ask()
    return written.study()


def empty(path: Path) -> Study:
    """A study that has no trials yet."""
    return Written(path).study()


def wide(path: Path) -> Study:
    """More parameters and metrics than some programs take at once."""
    written = Written(path, {f"p{i}": raybo.Float(0, 1) for i in range(230)})
    written.say(Kind.TOLD, written.ask(), value=1.0, metrics={f"m{i}": float(i) for i in range(50)}, seconds=1.0)
    return written.study()


def of_0_1(name: str):
    """A journal that release 0.1 wrote."""

    def copied(path: Path) -> Study:
        shutil.copyfile(KEPT / f"{name}.sqlite", path)
        return raybo.load(path)

    return copied


STUDIES = {
    "outcomes": outcomes,
    "goals": goals,
    "contexts": contexts,
    "empty": empty,
    "wide": wide,
    **{name: of_0_1(name) for name in ("gp-ucb", "uhe", "sbo-kde")},
}
