"""The fingerprint of the code that trials run: by it a continued study tells that the job has changed.

It covers the source of the function, of what it uses in its own module (functions, classes, constants) and of the
modules beside it that these import, and the versions of the packages. Comments, docstrings and layout do not count, nor
does the rest of the function's own module, such as the call of `raybo.tune`. Settings are in the study's description.

Whatever cannot be read is left out: a fingerprint never fails a study.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

from raybo.job.objective import Objective
from raybo.job.shared_data import Shared
from raybo.job.source_text import codes_within, definition_of, is_main, text_of, text_of_code, text_of_constant
from raybo.record.event_fields import Code

MOST_FILES = 500  # modules that are read
MOST_VALUES = 100_000  # functions, classes and constants that are looked at
HASH_CHARACTERS = 16
OURS = "raybo"


def code_of(objective: Objective) -> Code | None:
    """Return the fingerprint of the code that an objective's trials run; None if nothing of it can be read.

    Returns:
        under "sources", a hash for each file by its name (for the function by its own name if it is in no file); under
        "packages", the version of each package that they import.
    """
    reading = _Reading(objective.function)
    with suppress(Exception):  # whatever a user's objects raise when they are looked at
        reading.read()
    if not reading.sources:
        return None
    sources = {name: _hash("\n".join(sorted(texts))) for name, texts in sorted(reading.sources.items())}
    return {"sources": sources, "packages": dict(sorted(reading.packages.items()))}


class _Reading:
    """Reads a function and all that it uses, each thing once.

    Attributes:
        sources: the texts that were read, by the name of their file.
        packages: the versions of what was imported.
    """

    def __init__(self, function: Any) -> None:
        self.sources: dict[str, list[str]] = {}
        self.packages: dict[str, str] = {}
        self._function = function
        self._seen: set[Any] = set()
        self._files: set[Path | None] = set()
        self._left: list[tuple[str, Any]] = [("", function)]  # with the name under which each was found

    def read(self) -> None:
        """Read everything that can be reached from the function."""
        self._files.add(self._file)
        for _ in range(MOST_VALUES):
            if not self._left:
                break
            name, value = self._left.pop()
            with suppress(Exception):  # the next may be readable
                self._read(name, value)

    @cached_property
    def _own(self) -> FunctionType:
        """The function itself, below what wraps it."""
        function = self._function
        while not isinstance(function, FunctionType):
            if isinstance(function, partial):
                function = function.func
            elif isinstance(function, (Objective, MethodType)):
                function = function.function if isinstance(function, Objective) else function.__func__
            else:
                function = type(function).__call__
        own = inspect.unwrap(function)
        return own if isinstance(own, FunctionType) else function

    @cached_property
    def _file(self) -> Path | None:
        """The file of the function; None if it is in none, as in a notebook."""
        path = Path(self._own.__code__.co_filename).absolute()
        return path.resolve() if path.is_file() else None

    @cached_property
    def _places(self) -> list[Path]:
        """The directories in which modules beside the function are: its own, and that of its package."""
        if self._file is None:
            return [Path.cwd()]
        directory = self._file.parent
        root = directory
        while (root / "__init__.py").is_file():
            root = root.parent
        return list(dict.fromkeys([directory, root]))

    def _read(self, name: str, value: Any) -> None:
        if isinstance(value, partial):
            self._left += [(name, value.func), *((f"{name}()", each) for each in (value.args, value.keywords))]
        elif isinstance(value, Objective):
            self._left.append((name, value.function))
        elif isinstance(value, Shared):
            self._left.append((name, value._source))
        elif isinstance(value, MethodType):
            self._left += [(name, value.__func__), (name, value.__self__)]
        elif isinstance(value, ModuleType):
            self._import(value.__name__)
        elif isinstance(value, FunctionType):
            self._read_function(inspect.unwrap(value))
        elif isinstance(value, type):
            self._read_class(value)
        elif (text := text_of_constant(value)) is not None:
            self._keep(f"{name} = {text}")
        else:
            self._import(getattr(value, "__module__", None) or "builtins")
            self._read_class(type(value))

    def _read_function(self, function: FunctionType) -> None:
        if not self._is_own(function.__module__):
            self._import(function.__module__)
            return
        code = function.__code__
        if code in self._seen:
            return
        self._seen.add(code)
        tree = definition_of(function)
        self._keep(text_of(tree) if tree is not None else text_of_code(code))
        if tree is not None:
            self._import_all(tree, self._file)
        names = {name for each in codes_within(code) for name in each.co_names} & set(function.__globals__)
        self._left += [(name, function.__globals__[name]) for name in names]
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            with suppress(ValueError):  # it is empty as yet
                self._left.append((name, cell.cell_contents))

    def _read_class(self, kind: type) -> None:
        if not self._is_own(kind.__module__):
            self._import(kind.__module__)
            return
        if kind in self._seen:
            return
        self._seen.add(kind)
        for name, value in vars(kind).items():
            value = getattr(value, "__func__", None) or getattr(value, "fget", None) or value  # static ones, properties
            if isinstance(value, FunctionType) or not name.startswith("__"):
                self._left.append((f"{kind.__qualname__}.{name}", value))
        self._left += [("", base) for base in kind.__bases__]

    def _is_own(self, module: str | None) -> bool:
        """Return True if that is the function's own module."""
        return module == self._own.__module__

    def _keep(self, text: str) -> None:
        """Keep a text of the function's own module."""
        name = self._own.__name__ if self._file is None else self._name_of(self._file)
        self.sources.setdefault(name, []).append(text)

    def _name_of(self, file: Path) -> str:
        root = next((place for place in reversed(self._places) if file.is_relative_to(place)), file.parent)
        return file.relative_to(root).as_posix()

    def _import_all(self, tree: ast.AST, file: Path | None) -> None:
        """Read what a source imports, wherever in it."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    self._import(each.name)
            elif isinstance(node, ast.ImportFrom):
                above = _above(file, node.level) if node.level else None
                if node.level and above is None:
                    continue
                for each in node.names:  # which may be a module of a package
                    self._import(".".join(filter(None, [node.module, each.name])), above)

    def _import(self, name: str, above: Path | None = None) -> None:
        """Read a module beside the function, or note the version of a package.

        Args:
            name: dotted; its end may be a name within a module.
            above: the directory that a relative import begins in; None for an absolute one.
        """
        top = name.partition(".")[0]
        if above is None and (top in (OURS, "__main__") or top in sys.stdlib_module_names):
            return
        for place in self._places if above is None else [above]:
            if found := list(_modules(place, name.split("."))):
                for path in found:
                    self._read_file(path)
                return
        if above is None and top not in self.packages and (version := _version(top)):
            self.packages[top] = version

    def _read_file(self, file: Path) -> None:
        file = file.resolve()
        if file in self._files or len(self._files) == MOST_FILES or _is_installed(file, self._file):
            return
        self._files.add(file)
        with suppress(Exception):
            content = file.read_bytes()
            self.sources[self._name_of(file)] = [hashlib.sha256(content).hexdigest()]  # if it is no Python, say
            tree = ast.parse(content)
            tree.body = [node for node in tree.body if not is_main(node)]
            self.sources[self._name_of(file)] = [text_of(tree)]
            self._import_all(tree, file)


def _modules(place: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the files of a dotted module, those of its packages too, as far as they are in a directory."""
    for part in parts:
        module, place = place / f"{part}.py", place / part
        if (file := place / "__init__.py").is_file():
            yield file
        elif module.is_file():
            yield module
            return


def _above(file: Path | None, level: int) -> Path | None:
    return file.parents[level - 1] if file is not None and len(file.parents) >= level else None


def _is_installed(file: Path, own: Path | None) -> bool:
    """Return True if the file is of an installed package, and the function is not of the same one."""
    for key in ("stdlib", "purelib", "platlib"):
        place = Path(sysconfig.get_path(key)).resolve()
        if file.is_relative_to(place):
            top = file.relative_to(place).parts[0]
            return own is None or not own.is_relative_to(place / top)
    return False


def _version(package: str) -> str:
    """Return the version of an installed package by the name that it is imported by; empty if it is unknown."""
    with suppress(Exception):  # a distribution of the same name: most have one
        return importlib.metadata.version(package)
    with suppress(Exception):
        return importlib.metadata.version(importlib.metadata.packages_distributions()[package][0])
    return ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARACTERS]
