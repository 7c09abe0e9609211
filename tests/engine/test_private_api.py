"""Ray's private API is used in one folder only."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import raybo

ROOT = Path(raybo.__file__).parent
FOLDER = ROOT / "engine" / "ray"
MODULES = {"core", "dashboard", "internal", "autoscaler", "experimental"}  # without an underscore
IN_TEXT = re.compile(r"\bray\.(_[a-z]|core\b|dashboard\b)|\b_private\.|\b_raylet\b|^_(private|raylet|temp_dir)$")


def is_private(name):
    """True if a dotted name begins at `ray` and leads into what Ray does not document."""
    root, *parts = name.split(".")
    if {"_private", "_raylet"} & set(parts):  # of Ray's module, by whatever name it is known here
        return True
    return root == "ray" and any(re.match(r"_(?!_)", part) or part in MODULES for part in parts)


def dotted(node):
    """Return the dotted name of an expression; empty if it is none."""
    if isinstance(node, ast.Attribute):
        return f"{before}.{node.attr}" if (before := dotted(node.value)) else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":  # to Any
        return dotted(node.args[1])
    return node.id if isinstance(node, ast.Name) else ""


def names_in(node):
    """Yield what a node of a syntax tree may use of Ray, by dotted name."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Attribute):
        yield dotted(node) or f"?.{node.attr}"
    elif isinstance(node, ast.Call) and dotted(node.func).startswith("ray."):
        yield from (f"ray.{keyword.arg}" for keyword in node.keywords if keyword.arg)


def uses(source):
    """Return the lines of a source that use Ray's private API."""
    tree, found = ast.parse(source), set()
    documentation = {
        id(body[0].value)
        for node in ast.walk(tree)
        if (body := getattr(node, "body", None)) and isinstance(body, list) and isinstance(body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if any(is_private(name) for name in names_in(node)):
            found.add(node.lineno)
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
        if is_text and IN_TEXT.search(node.value):
            found.add(node.lineno)
    return sorted(found)


@pytest.mark.slow
def test_private_api_is_used_in_one_folder():
    found = {
        str(path.relative_to(ROOT)): lines
        for path in sorted(ROOT.rglob("*.py"))
        if not path.is_relative_to(FOLDER) and (lines := uses(path.read_text(encoding="utf-8")))
    }
    assert not found, f"move this into raybo/engine/ray/: {found}"


def test_folder_uses_private_api():
    """The search finds what is there, in every form that it has there."""
    lines = {path.name: uses(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.py")}
    assert {name for name, found in lines.items() if found} == {
        "auth_token.py",
        "connection.py",
        "draining.py",
        "job_client.py",
        "liveness.py",
        "signals.py",
        "trainers.py",
    }


@pytest.mark.parametrize(
    "source",
    [
        "import ray._private.worker as worker",
        "from ray._private import worker",
        "from ray import _raylet",
        "from ray.core.generated import gcs_pb2",
        "from ray.dashboard.modules.job import sdk",
        "def f(): import ray.experimental.internal_kv",
        "ray._private.worker._global_node",
        "module._private.services",
        "cast(Any, ray)._raylet",
        "ray.init(_temp_dir='/tmp/x')",
        "getattr(ray, '_raylet')",
        "importlib.import_module('ray._private.worker')",
        "logging.getLogger('ray._private')",
    ],
)
def test_every_form_of_use_is_found(source):
    assert uses(source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "import ray",
        "ray.__version__",
        "ray.util.list_named_actors(all_namespaces=True)",
        "from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy",
        "self._ray.get(reference)",
        '"""Says that `ray._private` is used elsewhere."""',
    ],
)
def test_public_use_is_not_found(source):
    assert uses(source) == []
