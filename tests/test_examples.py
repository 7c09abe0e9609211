"""The examples in the docstrings of public names: every name has one, and it runs as it stands."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import shutil
from pathlib import Path

import pytest

import raybo

ROOT = Path(__file__).parents[1]
JOURNAL = ROOT / "tests" / "journal" / "journals_of_0_1" / "gp-ucb.sqlite"  # any will do: examples call it job.db
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.ray if name == "tune" else ()) for name in raybo.__all__]
)
def test_the_example_of_a_public_name_runs(name, tmp_path, monkeypatch, request):
    if name == "tune":
        request.getfixturevalue("ray_session")
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(JOURNAL, "job.db")
    run_example(name, getattr(raybo, name))


INTEGRATIONS = {
    "agents": ["AgentFolder", "Limits"],
    "keras": ["Report"],
    "launch": ["LaunchError", "launch"],
    "lightgbm": ["Report", "going_on"],
    "lightning": ["Report", "going_on"],
    "optuna": ["RayboSampler"],
    "ray_train": ["TrainError", "report_to_trial"],
    "ray_tune": ["RayboSearch"],
    "sklearn": ["RayboSearchCV"],
    "sklearn_steps": ["fit_in_steps"],
    "skorch": ["Report"],
    "transformers": ["Report", "going_on"],
    "xgboost": ["Report", "going_on"],
}

NEEDED = {
    "agents": [],
    "keras": ["torch", "keras"],
    "launch": [],
    "ray_train": ["pyarrow"],
    "ray_tune": ["sklearn"],
}  # the others need their namesake
IMPORT_TORCH = ("keras", "lightning", "skorch", "transformers")  # which takes seconds


@pytest.mark.filterwarnings("ignore")  # of the libraries, as they are imported
@pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param(module, name, marks=pytest.mark.slow if module in IMPORT_TORCH else ())
        for module in INTEGRATIONS
        for name in INTEGRATIONS[module]
    ],
)
def test_the_example_of_an_integration_runs(module, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    for package in NEEDED.get(module, [module.partition("_")[0]]):
        pytest.importorskip(package, reason=f"{package} is not installed")
    run_example(name, getattr(importlib.import_module(f"raybo.integrations.{module}"), name))


MEMBERS = [  # with an example of their own
    (kind.__name__, name)
    for kind in (raybo.Space, raybo.Searcher, raybo.Study, raybo.Trial, raybo.Objective, raybo.CurrentTrial)
    for name, _ in inspect.getmembers(kind, lambda member: ">>>" in (inspect.getdoc(member) or ""))
    if not name.startswith("_")
]


@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_the_example_of_a_member_runs(kind, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(JOURNAL, "job.db")
    run_example(f"{kind}.{name}", inspect.getattr_static(getattr(raybo, kind), name))


EXTENDING = {
    "raybo.engine.status": ["Status"],
    "raybo.experiments": ["Experiment"],
    "raybo.methods": ["History", "Method", "Proposal", "option"],
    "raybo.schedulers": ["Scheduler", "Verdict"],
    "raybo.testing": ["MethodContract", "SchedulerContract"],
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in EXTENDING for name in EXTENDING[module]])
def test_the_example_of_what_extends_raybo_runs(module, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_example(name, getattr(importlib.import_module(module), name))


def run_example(name, value):
    told = inspect.getdoc(value) or ""
    example = doctest.DocTestParser().get_doctest(told, {"raybo": raybo, "__name__": "__main__"}, name, None, 0)
    assert example.examples, f"{name} has no example"
    said: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(example, out=said.append)
    assert outcome.failed == 0, "".join(said)


def test_every_public_name_is_in_the_reference():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    described = set(re.findall(r"^\.\. auto\w+:: (\w+)$", pages, re.MULTILINE))
    assert described == set(raybo.__all__)
    added = set(re.findall(r"^\.\. auto\w+:: raybo\.integrations\.(\w+\.\w+)$", pages, re.MULTILINE))
    assert added == {f"{module}.{name}" for module, names in INTEGRATIONS.items() for name in names}


def test_what_extends_raybo_is_in_the_reference():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    described = set(re.findall(r"^\.\. auto\w+:: (raybo\.[\w.]+)$", pages, re.MULTILINE))
    assert described >= {f"{module}.{name}" for module, names in EXTENDING.items() for name in names}
    for module in ("raybo.experiments", "raybo.testing"):
        assert described >= {f"{module}.{name}" for name in importlib.import_module(module).__all__}
