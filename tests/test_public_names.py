"""The names that users rely on, and how quickly the package is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import raybo
from raybo.common import errors

CONTRACT = {"Space", "Float", "Integer", "Categorical", "Searcher", "objective", "tune", "load", "RayboError"}


def test_every_public_name_is_there():
    assert set(raybo.__all__) >= CONTRACT
    for name in raybo.__all__:
        value = getattr(raybo, name)
        assert value.__name__ == name
        assert value.__doc__
        assert value.__module__.startswith("raybo.")
    assert [name for name in dir(raybo) if not name.startswith("_")] == sorted(raybo.__all__)
    assert len(set(raybo.__all__)) == len(raybo.__all__)
    assert raybo.__all__ == sorted(raybo.__all__)


def test_star_import_gives_exactly_the_public_names():
    names: dict[str, object] = {}
    exec("from raybo import *", names)
    assert set(names) - {"__builtins__"} == set(raybo.__all__)


def test_unknown_public_names_raise_attribute_errors():
    with pytest.raises(AttributeError, match="module 'raybo' has no attribute 'Optimizer'"):
        _ = raybo.Optimizer
    assert not hasattr(raybo, "nothing")


@pytest.mark.parametrize(
    ("name", "meant"), [("Int", "Integer"), ("suggest_float", "Float"), ("Choice", "Categorical"), ("tunes", "tune")]
)
def test_names_of_other_tuners_have_a_hint(name, meant):
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; did you mean raybo.{meant}\?$"):
        getattr(raybo, name)
    assert not hasattr(raybo, name)


def test_every_error_is_public():
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert {kind.__name__ for kind in kinds} == {name for name in raybo.__all__ if name in vars(errors)}
    assert all(issubclass(kind, raybo.RayboError) for kind in kinds)
    assert issubclass(raybo.JournalInUse, raybo.JournalError)
    drawn = errors.__doc__ or ""
    assert all(kind.__name__ in drawn for kind in kinds)


LIGHT = {
    "import raybo": {"ray", "scipy", "sqlite3", "rich", "pandas"},
    "import raybo; raybo.Space, raybo.Float": {"ray", "scipy", "sqlite3", "rich"},
    "import raybo; raybo.Searcher({'x': raybo.Float(0, 1)}, 'random').ask()": {"ray", "sqlite3", "rich", "scipy.stats"},
    "import raybo; raybo.load": {"ray", "rich", "pandas", "scipy.stats"},
    "import raybo.cli": {"ray", "scipy", "sqlite3", "pandas"},
    "import raybo.reporting.tables": {"ray"},
    "import raybo.engine.lifecycle": {"ray", "sqlite3"},
    "import raybo.engine.driver": {"scipy"},
    "import raybo.engine.actor": {"scipy.stats"},
    "import raybo.methods.default.auto": {"scipy.stats"},
}


@pytest.mark.parametrize("statement", LIGHT)
def test_slow_imports_are_lazy(statement):
    heavy = f"import sys; print(*{{*sys.modules}} & {LIGHT[statement]!r})"
    found = subprocess.run(
        [sys.executable, "-c", f"{statement}\n{heavy}"], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.split() == []
