"""A method and a scheduler of another package, as its users give them to every front."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import raybo
from raybo import methods, schedulers
from raybo.common.errors import MethodError
from raybo.methods import Method, Proposal, option
from raybo.study.replay import replay

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = '''
from dataclasses import dataclass

import numpy as np

from raybo.methods import Method, Proposal, option
from raybo.schedulers import GO, Scheduler, Verdict


@dataclass(frozen=True, kw_only=True)
class Nearby(Method):
    """A normal step from the best point so far, or a uniform point."""

    step: float = option(0.1, "standard deviation of a step, in the unit cube", above=0)
    chance: float = option(0.2, "probability of a uniform point", at_least=0, at_most=1)

    def propose(self, history, rng):
        if not len(history.y) or rng.random() < self.chance:
            return Proposal(history.cube.uniform(rng, 1)[0], {"from": None})
        best = int(np.argmax(history.y))
        x = np.clip(history.X[best] + min(self.step, 1.0) * rng.standard_normal(history.d), 0.0, 1.0)
        if not history.cube.allows(x[None, :]).all():
            return Proposal(history.cube.uniform(rng, 1)[0], {"from": None})
        return Proposal(x, {"from": best})

    def explain(self, tags):
        return "a uniform point" if tags["from"] is None else "a step from the best"


@dataclass(frozen=True, kw_only=True)
class HalfWay(Scheduler):
    """Ends a trial that is below the median of those that were half-way before."""

    share: float = option(0.5, "of a run, after which a trial is judged", above=0, below=1)

    def decides(self, history, trial, step):
        return step < history.steps and step == max(1, int(self.share * history.steps))

    def decide(self, history, trial, step):
        others = [
            dict(record.reports).get(step)
            for number, record in enumerate(history.records)
            if number != trial and "confirms" not in record.tags
        ]
        others = [y for y in others if y is not None]
        own = history.records[trial].reports[-1][1]
        if not others or own >= np.median(others):
            return GO
        return Verdict("prune", f"below the median of {len(others)}", {"of": len(others)})
'''
TESTS = """
from raybo.testing import MethodContract, SchedulerContract


class TestNearby(MethodContract):
    method = "neighbours.parts:Nearby"


class TestHalfWay(SchedulerContract):
    scheduler = "neighbours.parts:HalfWay"
"""
JOB = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, metric="loss", mode="min", steps=4)
def job(config):
    for step in range(4):
        yield {"loss": (config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2 + 0.01 * (4 - step)}
"""
SPACE = {"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The directory that holds the package; this process can import it."""
    (tmp_path / "neighbours").mkdir()
    (tmp_path / "neighbours" / "__init__.py").write_text("")
    (tmp_path / "neighbours" / "parts.py").write_text(PACKAGE)
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "test_mine.py").write_text(TESTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "neighbours"]:
        del sys.modules[name]


def run(*command, package, **environment):
    path = os.pathsep.join([str(ROOT), *([] if package is None else [str(package)])])
    return subprocess.run(
        [sys.executable, "-m", *command],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.slow
def test_the_package_keeps_the_contracts(package):
    ran = run("pytest", "-q", "-p", "no:cacheprovider", "test_mine.py", package=package)
    assert ran.returncode == 0, ran.stdout[-3_000:] + ran.stderr[-1_000:]


def test_names_classes_and_objects_are_equivalent(package):
    from neighbours.parts import HalfWay, Nearby

    asked = []
    for given, options in (("neighbours.parts:Nearby", {"step": 0.3}), (Nearby, {"step": 0.3}), (Nearby(step=0.3), {})):
        searcher = raybo.Searcher(SPACE, given, seed=0, **options)
        for _ in range(6):
            trial = searcher.ask()
            searcher.tell(trial, trial.config["x"])
        asked.append([trial.config for trial in searcher.trials])
        assert repr(searcher).startswith("Searcher(neighbours.parts:Nearby, max")
        assert searcher.explain(5) in ("a uniform point", "a step from the best")
    assert asked[0] == asked[1] == asked[2]
    for given in ("neighbours.parts:HalfWay", HalfWay, HalfWay(share=0.5)):
        searcher = raybo.Searcher(SPACE, "random", seed=0, steps=4, scheduler=given)
        for value in (1.0, 0.5):
            trial = searcher.ask()
            verdicts = [searcher.report(trial, value, step) for step in (1, 2)]
        assert verdicts[-1].prune
        assert searcher.prune(trial).reason == "below the median of 1"


@pytest.mark.ray
@pytest.mark.slow
def test_the_command_line_runs_continues_replays_and_compares(package):
    """Without the package the journal is loaded, shown and exported; only proposing and replaying need it."""
    tune = ("raybo", "tune", "job.py", "--workers", "1", "--seed", "1", "-q")
    own = ("--method", "neighbours.parts:Nearby", "--option", "step=0.2", "--scheduler", "neighbours.parts:HalfWay")
    assert run(*tune, "--trials", "6", *own, package=package).returncode == 0
    (package / "elsewhere").mkdir()
    (package / "neighbours").rename(package / "elsewhere" / "neighbours")
    missing = "the method neighbours.parts:Nearby cannot be imported: there is no module neighbours here; install its"
    for command in (("show", "job.db", "--replay"), ("tune", "job.py", "--trials", "8")):
        ran = run("raybo", *command, package=None)
        assert ran.returncode == 2  # as for any method that there is not
        assert missing in ran.stderr
        assert len(ran.stderr.strip().splitlines()) == 1
    shown = run("raybo", "show", "job.db", package=None)
    assert shown.returncode == 0
    assert "unknown" in shown.stdout
    assert run("raybo", "export", "job.db", "--to", "csv", "-o", "out.csv", package=None).returncode == 0
    elsewhere = package / "elsewhere"
    assert run(*tune, "--trials", "9", package=elsewhere).returncode == 0
    study = raybo.load("job.db")
    assert study.description.method == "neighbours.parts:Nearby"
    assert study.description.options == {"step": 0.2}
    assert study.description.scheduler == "neighbours.parts:HalfWay"
    assert study.count(raybo.State.PRUNED)
    assert "recomputed" in run("raybo", "show", "job.db", "--replay", package=elsewhere).stdout
    methods_compared = "neighbours.parts:Nearby:step=0.2,random@neighbours.parts:HalfWay"
    compared = run(
        "raybo",
        "compare",
        "job.py",
        "--methods",
        methods_compared,
        "--trials",
        "4",
        "--repeats",
        "2",
        package=elsewhere,
    )
    assert compared.returncode == 0, compared.stderr


@pytest.mark.ray
def test_tune_continues_a_study_of_an_object(package, ray_session):
    from neighbours.parts import HalfWay, Nearby

    from raybo.job.loading import load_objective

    job = load_objective("job.py")
    more = {"storage": "own.db", "seed": 3, "workers": 1}
    raybo.tune(job, trials=3, method=Nearby(step=0.3), scheduler=HalfWay(), **more)
    raybo.tune(job, trials=4, **more)
    raybo.tune(job, trials=5, method=Nearby, step=0.3, scheduler=HalfWay, **more)
    study = raybo.tune(job, trials=6, method="neighbours.parts:Nearby", **more)
    assert study.description.options == {"step": 0.3}
    assert len(study.trials) == 6
    assert not [again for again in replay(study) if again.differs]
    with pytest.raises(raybo.JournalError, match=r"options is .*0.3.* in the journal"):
        raybo.tune(job, trials=7, method=Nearby(step=0.4), **more)


def test_ray_tune_and_scikit_learn_take_it(package, tmp_path):
    pytest.importorskip("ray.tune")
    from neighbours.parts import HalfWay, Nearby

    from raybo.integrations.ray_tune import RayboSearch
    from raybo.integrations.sklearn import RayboSearchCV

    for given in ("neighbours.parts:Nearby", Nearby, Nearby()):
        search = RayboSearch(SPACE, metric="loss", mode="min", method=given, seed=0)
        first = search.suggest("a")
        search.on_trial_complete("a", {"loss": 1.0})
        search.save(str(tmp_path / "state.json"))
        again = RayboSearch(SPACE, metric="loss", mode="min", method=given, seed=0)
        again.restore(str(tmp_path / "state.json"))
        assert first
        assert search.suggest("b") == again.suggest("b")
    chosen = RayboSearchCV(None, SPACE, method=Nearby(step=0.3), steps=4, scheduler=HalfWay())._new_searcher()
    assert chosen.method == Nearby(step=0.3)
    assert json.loads(json.dumps(methods.options_of(Nearby(step=0.3), Nearby(step=0.3), {}))) == {"step": 0.3}
    assert schedulers.name_of(HalfWay()) == "neighbours.parts:HalfWay"


# ---- what is refused, in one line


def kind(**parts):
    """A method of these parts beside those that it needs."""
    needed = {"propose": lambda self, history, rng: Proposal(rng.random(history.d)), "explain": lambda self, tags: "so"}
    body = {"__doc__": "One.", **needed, **parts}
    return dataclass(frozen=True, kw_only=True)(
        type("Mine", (Method,), {k: v for k, v in body.items() if v is not None})
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "nowhere.parts:Mine",
            "nowhere.parts:Mine cannot be imported: there is no module nowhere here; install",
        ),
        ("raybo.searcher:Seracher", "raybo.searcher has no class Seracher; did you mean 'Searcher'"),
        ("raybo.searcher:Searcher", "the method Searcher is not a method: derive it from raybo.methods.Method"),
        ("mine.py:Mine", "no module mine here"),
        ("methods/mine.py:Mine", "write its module and class, as package.module:Class"),
        (3, "there is no method 3; derive its class from raybo.methods.Method"),
        (dict, "the method dict is not a method: derive it"),
        (kind(need_context=True), "has 'need_context', which no method has; did you mean 'needs_context'"),
        (kind(recomendation=lambda self, tags: None), "did you mean 'recommendation'"),
        (kind(needs_context="yes"), r"must declare needs_context: ClassVar\[bool\] = True or False"),
        (kind(explain=lambda self: "so"), r"must have a function explain\(tags\)"),
        (type("Mine", (Method,), {"explain": lambda self, tags: ""}), r"has no function propose\(history, rng\)"),
        (type("Mine", (Method,), {"__annotations__": {"step": float}, "step": 1.0}), "decorate it with @dataclass"),
    ],
)
def test_what_is_no_method_is_refused_by_name(given, message):
    with pytest.raises(MethodError, match=message) as refused:
        raybo.Searcher(SPACE, given)
    assert "\n" not in str(refused.value)


def test_an_attribute_of_a_method_is_no_option():
    @dataclass(frozen=True, kw_only=True)
    class Mine(Method):
        takes_goals: bool = True

        def propose(self, history, rng):
            return Proposal(rng.random(history.d))

        def explain(self, tags):
            return "so"

    with pytest.raises(MethodError, match=r"must declare takes_goals: ClassVar\[bool\]"):
        raybo.Searcher(SPACE, Mine())


def test_options_beside_a_made_method_are_refused():
    mine = kind()
    raybo.Searcher(SPACE, mine())  # one that no journal could name is enough for a searcher
    with pytest.raises(MethodError, match=r"Mine is made already, with its options; leave out step"):
        raybo.Searcher(SPACE, mine(), step=0.3)


def test_unnameable_methods_are_refused_by_studies():
    @dataclass(frozen=True, kw_only=True)
    class Local(Method):
        known: ClassVar[int] = 1
        shape: object = option(None, "anything")

        def __post_init__(self):
            """Whatever it is."""

        def propose(self, history, rng):
            return Proposal(rng.random(history.d))

        def explain(self, tags):
            return "so"

    @raybo.objective(space=SPACE)
    def job(config):
        return config["x"]

    assert raybo.Searcher(SPACE, Local()).ask().config
    with pytest.raises(MethodError, match="is defined in a function, where nobody finds it again"):
        raybo.tune(job, method=Local())
    with pytest.raises(MethodError, match="a journal keeps numbers, text and lists of them, got shape="):
        methods.options_of(Local(shape=object()), Local(shape=object()), {})
    of_script = kind()
    of_script.__module__ = "__main__"
    with pytest.raises(MethodError, match="is defined in the script that runs, which no other process imports; put it"):
        methods.name_of(of_script)


@pytest.mark.parametrize(
    ("proposal", "message"),
    [
        (np.array([0.5, 0.5]), "propose must return a Proposal"),
        (Proposal(np.array([0.5])), "x must be an array of 2 floats"),
        (Proposal([0.5, 0.5]), "x must be an array of 2 floats"),
        (Proposal(np.array([0.5, 1.5])), r"x must lie in \[0, 1\]\^2"),
        (Proposal(np.array([0.5, np.nan])), r"x must lie in \[0, 1\]\^2"),
        (Proposal(np.array([0.5, 0.5]), {"seen": {1, 2}}), "tags must be JSON"),
        (Proposal(np.array([0.5, 0.5]), fidelity=5), "fidelity must be one of the levels below a whole run, or None"),
    ],
)
def test_what_is_no_proposal_is_refused(proposal, message):
    with pytest.raises(MethodError, match=message) as refused:
        raybo.Searcher(SPACE, kind(propose=lambda self, history, rng: proposal)()).ask()
    assert "\n" not in str(refused.value)
