"""Objectives are declared, loaded from files and given settings; unusable files are refused."""

from __future__ import annotations

import functools
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import raybo
from raybo.common.errors import ObjectiveError, SpaceError
from raybo.engine.ray.pickling import pickled
from raybo.job.loading import load_objective, study_name

SPACE = {"x": raybo.Float(0, 1)}
GOOD = """
import raybo

@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
def job(config, *, folds=5):
    "A job."
    return {"loss": config["x"] * folds}
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes job.py; modules and paths that loading it leaves behind are taken away again."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text, name="job.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("raybo_objective_"):
            del sys.modules[name]


# ---- declaring


def test_a_declared_objective_is_still_a_function():
    @raybo.objective(space=SPACE, metric="loss", mode="min", num_cpus=2, resources={"disk": 1})
    def job(config, *, folds=5):
        """Says hello."""
        return {"loss": config["x"] * folds}

    assert job({"x": 0.5}) == {"loss": 2.5}
    assert job({"x": 0.5}, folds=2) == {"loss": 1.0}
    assert (job.name, job.__doc__) == ("job", "Says hello.")
    assert job.with_settings(folds=3)({"x": 0.5}) == {"loss": 1.5}
    assert job.with_settings(folds=3)({"x": 0.5}, folds=2) == {"loss": 1.0}
    assert (job.metric, job.mode, job.num_cpus, job.resources) == ("loss", "min", 2, {"disk": 1})
    assert (job.num_gpus, job.memory, job.trial_seconds) == (0, None, None)
    assert job.space == raybo.Space(SPACE)


def test_declared_resources_are_kept():
    @raybo.objective(space=SPACE, num_cpus=2, num_gpus=0.5, memory=2**30, trial_seconds=9.5)
    def job(config):
        return config["x"]

    assert (job.num_cpus, job.num_gpus, job.memory, job.trial_seconds) == (2, 0.5, 2**30, 9.5)
    assert (job.metric, job.mode, job.resources) == ("value", "max", {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"mode": "minimise"}, "mode must be 'max' or 'min', got 'minimise'"),
        (
            {"direction": "maximize"},
            "objective has no argument 'direction': raybo calls it mode, 'max' or 'min', given to the objective or the "
            "searcher",
        ),
        ({"num_cpu": 2}, "objective has no argument 'num_cpu'; did you mean 'num_cpus'?"),
        ({"num_cpus": -1}, "num_cpus must be a finite number from 0, got -1"),
        ({"num_cpus": "2"}, "num_cpus must be a finite number from 0, got '2'"),
        ({"num_cpus": math.nan}, "num_cpus must be a finite number from 0, got nan"),
        ({"num_gpus": True}, "num_gpus must be a finite number from 0, got True"),
        ({"memory": -5}, "memory must be a finite number from 0, got -5"),
        ({"trial_seconds": 0}, "trial_seconds must be a finite number above 0, got 0"),
        ({"trial_seconds": math.nan}, "trial_seconds must be a finite number above 0, got nan"),
        ({"trial_seconds": "5"}, "trial_seconds must be a finite number above 0, got '5'"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(ObjectiveError) as caught:
        raybo.objective(space=SPACE, **arguments)
    assert str(caught.value) == words


def test_only_functions_are_objectives():
    with pytest.raises(ObjectiveError, match="an objective must be a function, got 3"):
        raybo.objective(space=SPACE)(3)


@pytest.mark.parametrize(
    "declared", [{"metric": "step"}, {"metrics": {"a": "max", "step": "min"}}, {"constraints": {"step": "<= 3"}}]
)
def test_reporting_job_cannot_name_a_metric_step(declared):
    def reporting(config):
        yield {"a": 1.0, "step": 1}

    for job, steps in ((reporting, None), (lambda config: 0.0, 5)):
        with pytest.raises(ObjectiveError, match="in a report 'step' says which step it is"):
            raybo.objective(space=SPACE, steps=steps, **declared)(job)
    with pytest.raises(ObjectiveError, match="in a report 'step' says which step it is"):
        raybo.objective(space=SPACE)(reporting).wanting({"a": "max", "step": "min"}, None)
    assert raybo.objective(space=SPACE, **declared)(lambda config: {"a": 1.0, "step": 2.0}).name == "<lambda>"


def test_a_function_without_a_name_has_its_types():
    job = raybo.objective(space=SPACE)(functools.partial(lambda config, k: config["x"] + k, k=1))
    assert job.name == "partial"
    assert job.with_settings()({"x": 1}) == 2


# ---- settings


def test_a_decorator_without_parentheses_is_explained():
    with pytest.raises(ObjectiveError, match=r"^@raybo.objective needs a space and a metric: @raybo.objective\(space="):

        @raybo.objective
        def job(config):
            return 1.0

    with pytest.raises(ObjectiveError, match="an objective needs a space"):
        raybo.objective(metric="loss")


def test_one_of_metrics_is_metric_and_mode():
    one = raybo.objective(space={"x": raybo.Float(0, 1)}, metrics={"loss": "min"})(lambda config: 1.0)
    assert (one.metric, one.mode, one.goals.metrics) == ("loss", "min", None)


def declared(space=SPACE):
    @raybo.objective(space=space)
    def job(config, *, folds: int = 5, rate=0.5, data: Path = Path("a.csv"), fast=False, note=None, limit=7):
        return folds, rate, data, fast, note, limit

    return job


def test_settings_take_the_types_of_the_parameters():
    bound = declared().with_settings(folds="10", rate="1e-3", data="b.csv", fast="yes", note="hi", limit="3")
    assert bound({}) == (10, 0.001, Path("b.csv"), True, "hi", 3)
    assert bound.with_settings(folds=2)({})[:2] == (2, 0.001)
    assert declared()({})[0] == 5  # the original is as it was


def test_default_of_none_allows_any_type():
    for value in (5, None, [1, 2], "hi"):
        assert declared().with_settings(note=value)({})[4] == value
    free = raybo.objective(space=SPACE)(lambda config, *, needed, **more: (needed, more))
    assert free.with_settings(needed=5, depth=3)({}) == (5, {"depth": 3})


def test_numbers_of_numpy_are_resources_and_limits():
    job = raybo.objective(
        space=SPACE,
        num_cpus=np.int64(2),
        num_gpus=np.float32(0.5),
        resources={"disk": np.int64(1)},
        trial_seconds=np.int64(60),
    )(lambda config: 0.0)
    numbers = (job.num_cpus, job.num_gpus, job.resources["disk"], job.trial_seconds)
    assert numbers == (2, 0.5, 1, 60)
    assert {type(number) for number in numbers} == {int, float}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fold": "3"}, "job has no parameter 'fold'; did you mean 'folds'?"),
        ({"xyz": "3"}, "job has no parameter 'xyz'; available: folds, rate, data, fast, note, limit"),
        ({"config": "3"}, "job has no parameter 'config'"),
        ({"self": "3"}, "job has no parameter 'self'"),
        ({"folds": "ten"}, "job: parameter folds must be a whole number, got 'ten'"),
        ({"folds": "2.5"}, "job: parameter folds must be a whole number, got '2.5'"),
        ({"rate": "fast"}, "job: parameter rate must be a number, got 'fast'"),
        ({"fast": "maybe"}, "job: parameter fast must be true or false, got 'maybe'"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused_with_the_nearest_name(settings, words):
    with pytest.raises(ObjectiveError) as caught:
        declared().with_settings(**settings)
    assert str(caught.value).startswith(words)


def test_a_function_with_free_keywords_takes_any_setting():
    @raybo.objective(space=SPACE)
    def job(config, **settings):
        return settings

    assert job.with_settings(depth="3")({}) == {"depth": "3"}


def test_unresolvable_annotations_do_no_harm():
    @raybo.objective(space=SPACE)
    def job(config: Unknown, *, folds=5):  # noqa: F821
        return folds

    assert job.with_settings(folds="7")({}) == 7


def test_a_space_may_depend_on_the_settings():
    def space(folds, rate=None):
        return {"x": raybo.Float(0, folds)}

    job = declared(space)
    assert job.space == raybo.Space({"x": raybo.Float(0, 5)})
    assert job.with_settings(folds=9).space == raybo.Space({"x": raybo.Float(0, 9)})


@pytest.mark.parametrize(
    ("space", "kind", "words"),
    [
        (lambda folds: 1 / 0, ObjectiveError, "job: its space cannot be made: ZeroDivisionError: division by zero"),
        (lambda missing: SPACE, ObjectiveError, "job: its space cannot be made: TypeError"),
        (lambda: {"x": raybo.Float(1, 0)}, SpaceError, "Float: low must be below high"),
        (lambda: 3, SpaceError, "a space is a dict"),
        ({"x": 1}, SpaceError, "a space needs at least one parameter"),
        ({"x": [1, 2]}, SpaceError, "x: a parameter must be"),
    ],
    ids=range(6),
)
def test_space_that_is_none_is_refused(space, kind, words):
    with pytest.raises(kind) as caught:
        _ = declared(space).space
    where = r"" if kind is ObjectiveError else r"tests/job/test_objective\.py:\d+: "  # where the function is declared
    assert re.match(where + re.escape(words), str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_function_of_no_file_has_no_place():
    made = {}
    exec("def job(config):\n    return 1.0", made)
    for function in (made["job"], Called()):
        with pytest.raises(SpaceError, match=r"^a space needs at least one parameter"):
            _ = raybo.objective(space={"x": 1})(function).space


class Called:
    def __call__(self, config):
        return 1.0


# ---- files


def test_the_one_objective_of_a_file_is_loaded(write):
    job = load_objective(write(GOOD))
    assert (job.name, job.metric, job.mode) == ("job", "loss", "min")
    assert job({"x": 1}) == {"loss": 5}


def test_one_of_several_objectives_is_chosen_by_name(write):
    path = write(GOOD + GOOD.replace("def job", "def other"))
    assert load_objective(f"{path}:other").name == "other"
    with pytest.raises(ObjectiveError, match=r"holds 2 objectives; choose one: .*job.py:job or .*job.py:other"):
        load_objective(path)
    with pytest.raises(ObjectiveError, match=r"has no objective 'othr'; did you mean 'other'\?"):
        load_objective(f"{path}:othr")


def test_file_imports_neighbours_without_shadowing_libraries(write):
    write("folds = 3\n", "helper_of_the_job.py")
    job = load_objective(write(GOOD + "import helper_of_the_job\nfrom statistics import mean\n", "statistics.py"))
    assert job.name == "job"
    import statistics

    assert statistics.mean([1, 3]) == 2


BAD_FILES = [
    ("def f(:\n", ":1: does not import: SyntaxError: invalid syntax"),
    ("\nx = '\0'\n", ": does not import: "),  # a ValueError in Python 3.10
    ("\nimport no_such_module_at_all\n", ":2: does not import: ModuleNotFoundError: No module named 'no_such_module"),
    ("\n\nraise ValueError('first\\nsecond')\n", ":3: does not import: ValueError: first"),
    ("import sys\nsys.exit('bye')\n", ":2: does not import: SystemExit: bye"),
    ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n", ":3: does not import: E"),
    (
        "import raybo\nraybo.Space({'lr': raybo.Float(1, 0)})\n",
        ":2: does not import: SpaceError: Float: low must be below",
    ),
    ("import raybo\n", " holds no objective; decorate the function to tune with @raybo.objective"),
    ("", " holds no objective"),
]


@pytest.mark.parametrize(("text", "words"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_broken_job_file_is_refused_with_its_line(write, text, words):
    path = write(text)
    with pytest.raises(ObjectiveError) as caught:
        load_objective(path)
    assert str(caught.value).startswith(path + words)
    assert "\n" not in str(caught.value)


def test_what_is_no_python_file_is_refused(write, tmp_path):
    with pytest.raises(ObjectiveError, match=r"^nowhere.py: no such file"):
        load_objective("nowhere.py")
    with pytest.raises(ObjectiveError, match=r": no such file; give the Python file"):
        load_objective(str(tmp_path))
    with pytest.raises(ObjectiveError, match=r"its name must end in \.py"):
        load_objective(write(GOOD, "job.txt"))


# ---- packages


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with an objective that imports from its neighbours, importable from here only."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("shop", "shop.jobs"):
        (tmp_path / name.replace(".", "/")).mkdir()
        (tmp_path / name.replace(".", "/") / "__init__.py").touch()
    (tmp_path / "shop" / "data.py").write_text("OFFSET = 3.0\n")
    relative = "from ..data import OFFSET\n" + GOOD.replace('config["x"]', 'OFFSET + config["x"]')
    (tmp_path / "shop" / "jobs" / "first.py").write_text(relative)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


@pytest.mark.parametrize("target", ["shop/jobs/first.py", "shop.jobs.first", "shop.jobs.first:job"])
def test_relative_imports_work_in_files_and_modules(package, target):
    assert load_objective(target)({"x": 0.5}) == {"loss": 5.5}
    assert study_name(target) == ("first-job" if ":" in target else "first")


@pytest.mark.parametrize("target", ["shop/jobs/first.py", "shop.jobs.first"])
def test_workers_find_the_package(package, target, tmp_path):
    (package / "sent").write_bytes(pickled(load_objective(target).function))
    code = (
        "import sys; from raybo.engine.ray.pickling import unpickled; "
        f"print(unpickled(open({str(package / 'sent')!r}, 'rb').read())({{'x': 0.5}}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert "5.5" in done.stdout, done.stderr


def test_module_is_loaded_despite_a_file_so_named(package):
    (package / "shop.jobs.first").write_text("no Python")
    assert load_objective("shop.jobs.first", is_module=True).name == "job"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("shop.jobs.furst", "there is no module 'shop.jobs.furst' here"),
        ("shp.jobs.first:job", "there is no module 'shp' here"),
        ("shop.broken", r"does not import: ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("shop.jobs.first:jbo", "has no objective 'jbo'; did you mean 'job'"),
        ("shop.plain:plain", "plain is not an objective; decorate it"),
        ("shop/data.pi", "no such file"),
        ("shop/jobs/furst.py", "did you mean 'shop/jobs/first.py'"),
    ],
)
def test_a_module_that_cannot_be_had_is_named(package, target, message):
    (package / "shop" / "broken.py").write_text("import nothing_like_it\n")
    (package / "shop" / "plain.py").write_text("def plain(config): return 1.0\n")
    with pytest.raises(ObjectiveError, match=message):
        load_objective(target)


def test_study_during_loading_is_refused(write):
    path = write(GOOD + "\nraybo.tune(job, trials=3)\n")
    with pytest.raises(ObjectiveError, match=r"runs a study of its own while it is loaded.*__main__"):
        load_objective(path)
    assert load_objective(write(GOOD + '\nif __name__ == "__main__":\n    raybo.tune(job)\n', "guarded.py"))


# ---- functions that no trial could call


async def asynchronous(config):
    return 1.0


async def asynchronously_generating(config):
    yield 1.0


class Job:
    async def __call__(self, config):
        return 1.0


class Plain:
    def __init__(self, config):
        self.config = config


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (asynchronous, "asynchronous is async"),
        (asynchronously_generating, "is async"),
        (functools.partial(asynchronous), "is async"),
        (Job(), "Job is async"),
        (Plain, "got the class Plain"),
        (lambda self, config: 1.0, "is a method without its object; give raybo.objective"),
        (lambda: 1.0, "a function whose first parameter is the configuration"),
        (lambda *, folds=5: 1.0, "a function whose first parameter is the configuration"),
        (lambda **settings: 1.0, "a function whose first parameter is the configuration"),
    ],
)
def test_job_that_could_never_run_is_refused(function, message):
    with pytest.raises(ObjectiveError, match=message):
        raybo.objective(space={"x": raybo.Float(0, 1)})(function)


def test_missing_parameter_is_refused_before_any_trial():
    @raybo.objective(space={"x": raybo.Float(0, 1)})
    def job(config, folds, *more, seed=0, **others):
        return 1.0

    with pytest.raises(ObjectiveError, match=r"job needs its parameter 'folds'; give --set folds="):
        raybo.tune(job, trials=1)
    job.with_settings(folds="3").require_settings()
