"""The text of functions, modules and constants by which changes of code are told: the same in every process.

Comments, docstrings and layout are not in it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

MOST_ITEMS = 10_000  # of a constant, nested ones included; longer ones do not count


def text_of(tree: ast.AST) -> str:
    """Return a source without comments, docstrings and layout."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(ast.fix_missing_locations(tree))


def definition_of(function: FunctionType) -> ast.AST | None:
    """Return the definition of a function, without its declaration as an objective; None if it has no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except Exception:  # noqa: BLE001  # a lambda in the middle of a statement, code that was made by `exec`, a file that is gone
        return None
    definition = tree.body[0]
    if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)) or definition.name != function.__name__:
        return None
    definition.decorator_list = [each for each in definition.decorator_list if not _declares(each)]
    return definition


def codes_within(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_within(constant)


def text_of_code(code: CodeType) -> str:
    """Return the text of a function whose source is not known."""
    constants = [[text_of_constant(each) for each in one.co_consts] for one in codes_within(code)]
    return repr([[one.co_code.hex(), one.co_names] for one in codes_within(code)] + constants)


def text_of_constant(value: Any) -> str | None:
    """Return plain data as text, the same in every process; None if it is something else, or much of it."""
    left = [MOST_ITEMS]

    def text(value: Any) -> str:
        left[0] -= 1
        if left[0] < 0:
            raise ValueError("too long")
        if value is None or type(value) in (bool, int, float, complex, str, bytes):
            return repr(value)
        if type(value) in (list, tuple):
            return f"{type(value).__name__}({', '.join(map(text, value))})"
        if type(value) in (set, frozenset):
            return f"set({', '.join(sorted(map(text, value)))})"
        if type(value) is dict:
            return f"dict({', '.join(f'{text(key)}: {text(item)}' for key, item in value.items())})"
        raise TypeError("no plain data")

    with suppress(TypeError, ValueError, RecursionError):
        return text(value)
    return None


def is_main(node: ast.stmt) -> bool:
    """Return True for `if __name__ == "__main__":`, which does not run in an imported module."""
    return isinstance(node, ast.If) and "__name__" in {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}


def _declares(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(called, "attr", getattr(called, "id", "")) == "objective"
