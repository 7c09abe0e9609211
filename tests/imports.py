"""Reads from the sources which room of raybo imports which, so that pictures of it can be checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

Graph = dict[str, set[str]]


def rooms(package: Path) -> Graph:
    """For each file or directory of the package those that it imports, in functions too; types alone do not count.

    Left out: the package's own files, which know every public name and the command, and what a room imports of itself.
    """
    graph: Graph = {}
    for path in sorted(package.rglob("*.py")):
        here = path.relative_to(package).parts[0].removesuffix(".py")
        if here in ("__init__", "__main__"):
            continue
        there = {name.split(".")[1] for name in imported(ast.parse(path.read_text(encoding="utf-8"))) if "." in name}
        graph.setdefault(here, set()).update(there - {here})
    return {here: there & set(graph) for here, there in graph.items()}


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of raybo that are imported, outside of what only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "raybo":
            yield from (
                [f"raybo.{alias.name}" for alias in node.names] if node.module == "raybo" else [str(node.module)]
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("raybo."))
        yield from imported(node)


def reduced(
    graph: Graph, upwards: frozenset[tuple[str, str]] = frozenset({("study", "reporting")})
) -> set[tuple[str, str]]:
    """The imports that do not follow from others; those upwards, which happen late in functions, are left out."""
    graph = {here: {there for there in known if (here, there) not in upwards} for here, known in graph.items()}
    return {
        (here, there)
        for here, known in graph.items()
        for there in known
        if not any(there in _below(graph, other) for other in known if other != there)
    }


def _below(graph: Graph, room: str) -> set[str]:
    found: set[str] = set()
    todo = [room]
    while todo:
        for there in graph[todo.pop()] - found:
            found.add(there)
            todo.append(there)
    return found
