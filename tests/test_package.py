"""The distributed package: the wheel, the archive of sources, the types, and a core that needs none of the extras."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import raybo

ROOT = Path(__file__).parents[1]

EXTRAS = {  # what is imported: the extra that brings it; None where the package itself is asked for
    "aiohttp": "view",
    "gymnasium": "control",
    "joblib": "sklearn",
    "keras": "keras",
    "lightgbm": "lightgbm",
    "lightning": "lightning",
    "matplotlib": "plot",
    "mcp": "mcp",
    "mlflow": "mlflow",
    "mujoco": "control",
    "optuna": "optuna",
    "pandas": "pandas",
    "plotly": "plot",
    "pyarrow": "tune",
    "sklearn": "sklearn",
    "skorch": "skorch",
    "tensorboardX": "tensorboard",
    "transformers": "transformers",
    "wandb": "wandb",
    "xgboost": "xgboost",
}
WITHOUT_EXTRAS = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(EXTRAS)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run(code: str, cwd: Path) -> str:
    """Return a program's output; it must end well."""
    ended = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


# ---- the core


@pytest.mark.slow
def test_modules_import_without_extras(tmp_path):
    found = run(
        WITHOUT_EXTRAS
        + """
import importlib, pkgutil
import raybo

for module in pkgutil.walk_packages(raybo.__path__, "raybo."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except (ImportError, raybo.MissingExtra) as error:
        print(module.name, type(error).__name__, error, sep=" | ")
""",
        tmp_path,
    )
    told = dict(line.split(" | ", 1) for line in found.splitlines())
    assert set(told) == {
        "raybo.integrations.joblib_tasks",  # the next one's, which is imported first
        "raybo.integrations.keras",
        "raybo.integrations.lightgbm",
        "raybo.integrations.lightning",
        "raybo.integrations.sklearn",
        "raybo.integrations.mcp",
        "raybo.integrations.mlflow",
        "raybo.integrations.optuna",
        "raybo.integrations.optuna_spaces",
        "raybo.integrations.optuna_trials",
        "raybo.integrations.ray_train",
        "raybo.integrations.ray_tune",
        "raybo.integrations.sklearn_batches",
        "raybo.integrations.sklearn_steps",
        "raybo.integrations.skorch",
        "raybo.integrations.tensorboard",
        "raybo.integrations.transformers",
        "raybo.integrations.wandb",
        "raybo.integrations.xgboost",
        "raybo.view.connections",
        "raybo.view.guard",
        "raybo.view.server",
        "raybo.view.serving",
    }
    assert told["raybo.integrations.sklearn"].startswith("MissingExtra | ")
    assert re.search(r": pip install .*\[sklearn\]'$", told["raybo.integrations.sklearn"])
    for name in ("tune", "train"):
        assert re.search(rf"; pip install .*\[{name}\]'$", told[f"raybo.integrations.ray_{name}"])


STUDY = """
import raybo
from raybo.cli import main

space = raybo.Space({"x": raybo.Float(0, 1)})
searcher = raybo.Searcher(space, "auto", seed=0, trials=8)
for _ in range(8):
    trial = searcher.ask()
    searcher.tell(trial, -(trial.config["x"] - 0.3) ** 2)
print(searcher.best.number)
"""


def test_a_search_needs_none_of_the_extras(tmp_path):
    assert run(WITHOUT_EXTRAS + STUDY, tmp_path).strip().isdigit()


def test_package_and_cli_import_quickly(tmp_path):
    heavy = {"ray", "numpy", "scipy", "rich", "sqlite3", "asyncio", *EXTRAS}
    loaded = f"print(*{{name.partition('.')[0] for name in sys.modules}} & {heavy!r})"
    assert run(f"import sys, raybo\n{loaded}", tmp_path).split() == []
    helped = f"""
import atexit, sys
from raybo.cli import main

atexit.register(lambda: {loaded.replace("print(*", "print('loaded', *")})
sys.argv = ["raybo", "--help"]
main()
"""
    text = run(helped, tmp_path)
    assert "raybo tune job.py" in text
    assert text.splitlines()[-1].split() == ["loaded"]


def test_searching_loads_neither_ray_nor_extras(tmp_path):
    heavy = {"ray", "rich", *EXTRAS}
    text = run(f"{STUDY}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}} & {heavy!r})", tmp_path)
    assert text.splitlines()[1:] == [""]


def test_extras_are_told_of_by_names_that_exist():
    declared = set(re.findall(r"^(\w+) = \[", _optional(), re.MULTILINE))
    asked = set()
    for path in (ROOT / "raybo").rglob("*.py"):
        asked |= set(re.findall(r"raybo\[([\w,]+)\]", path.read_text(encoding="utf-8")))
    assert {name for text in asked for name in text.split(",")} <= declared
    assert {extra for extra in EXTRAS.values() if extra} <= declared


def _optional() -> str:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]


# ---- what is built


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A directory with the wheel and the archive of sources."""
    pytest.importorskip("hatchling", reason="hatchling builds the package")
    directory = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", directory], cwd=ROOT, check=True, timeout=120)
    return directory


def test_the_wheel_holds_the_package_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    own = {name for name in names if not re.match(r"raybo-[^/]+\.dist-info/", name)}
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "raybo").rglob("*") if path.is_file()}
    assert own == {name for name in there if "__pycache__" not in name}
    assert "raybo/py.typed" in own
    assert all(name.endswith((".py", "py.typed")) or name.startswith("raybo/view/page/") for name in own)
    assert wheel.name.split("-")[1] == raybo.__version__
    said = {name.partition("/")[2] for name in names} - {name.partition("/")[2] for name in own}
    assert said == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def test_the_archive_holds_what_a_clone_does_but_the_evidence(built):
    (archive,) = built.glob("*.tar.gz")
    assert all(path.stat().st_size < 3e6 for path in built.iterdir())
    with tarfile.open(archive) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    for needed in ("README.md", "LICENSE", "pyproject.toml", "raybo/py.typed", "benchmarks/__main__.py"):
        assert needed in names
    for room in ("raybo", "trials", "trials/data", "tests", "benchmarks", "docs", "docs/images"):
        there = {str(path.relative_to(ROOT)) for path in (ROOT / room).iterdir() if path.is_file()}
        assert there - names == {name for name in there if name.endswith((".pyc", ".db", ".db-lock"))}
    assert not {name for name in names if "__pycache__" in name or name.endswith(".db")}
    assert not {name for name in names if re.match(r"docs/(evidence|reproduction)/.*(csv|jsonl|gz)$", name)}
    assert {"docs/evidence/default.md", "docs/reproduction/README.md"} <= names


TYPED = """
from typing import Any

import raybo

space = raybo.Space({"rate": raybo.Float(1e-3, 1.0, log=True), "depth": raybo.Integer(1, 10)})
searcher = raybo.Searcher(space, method="gp-ucb", mode="min", seed=0, trials=60)
trial: raybo.Trial = searcher.ask()
config: dict[str, Any] = trial.config
searcher.tell(trial, 0.42)
best: float | None = searcher.best.value
state: raybo.State = trial.state


@raybo.objective(space=space, metric="accuracy", mode="max", num_cpus=1)
def job(config: dict[str, Any], *, folds: int = 5) -> dict[str, float]:
    return {"accuracy": config["rate"] * folds}


def run(objective: raybo.Objective) -> raybo.Study:
    try:
        return raybo.tune(objective, trials=6, method="gp-ucb", seed=0, storage="gb.db", workers=2)
    except raybo.RayboError:
        return raybo.load("gb.db")


numbers: list[int] = [each.number for each in run(job).trials]


def load() -> list[float]:
    return [1.0]


table: list[float] = raybo.shared(load).value + raybo.shared(lambda: [2.0]).value + raybo.shared([3.0]).value
"""
WRONG = """
import raybo

raybo.Float("low")
value: int = raybo.load("gb.db").best.value
"""


@pytest.mark.slow
def test_an_installed_wheel_is_typed(built, tmp_path):
    pytest.importorskip("mypy", reason="mypy reads the types")
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "venv")
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)

    def checked(code: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(code, encoding="utf-8")
        python = tmp_path / "venv" / "bin" / "python"
        line = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py"]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=170, check=False)

    right = checked(TYPED)
    assert right.returncode == 0, right.stdout
    wrong = checked(WRONG)
    assert set(re.findall(r"error: .*\[(.+)\]$", wrong.stdout, re.MULTILINE)) == {"call-arg", "arg-type", "assignment"}


@pytest.mark.slow
def test_an_installed_wheel_tunes_its_job(built, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    elsewhere = [path for path in map(Path, sys.path) if path.name == "site-packages"]  # with what raybo depends on
    (site / "dependencies.pth").write_text("\n".join(map(str, elsewhere)), encoding="utf-8")
    commands = tmp_path / "venv" / "bin"
    (wheel,) = built.glob("*.whl")
    install = [commands / "python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(install, cwd=tmp_path, check=True, timeout=120)
    where = [commands / "python", "-c", "import raybo; print(raybo.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True).stdout
    assert Path(found.strip()).is_relative_to(site)
    tune = [commands / "raybo", "tune", "-m", "raybo.examples.first", "--trials", "4"]
    said = subprocess.run(tune, cwd=tmp_path, check=True, timeout=200, capture_output=True, text=True).stdout
    assert "4 trials, saved in first.db" in said
    assert (tmp_path / "first.db").is_file()
