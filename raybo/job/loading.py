"""Objectives by what a user types: FILE, FILE:NAME or package.module:NAME, imported as Python itself would."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raybo.common.errors import ObjectiveError
from raybo.common.messages import in_words, near, nearest
from raybo.job.objective import Objective

LOADED_BY_PATH = "raybo_objective_"  # begins the names of modules that no worker can import by name


def load_objective(target: str, *, is_module: bool = False) -> Objective:
    """Load the objective of FILE, FILE:NAME or package.module:NAME.

    A file's directory is importable while it is loaded, as for a script, and so is its package if it lies in one. The
    modules that are found are those that `python -m` finds.

    Args:
        target: of the objective.
        is_module: whether it names a module, even if there is a file of that name.
    Raises:
        ObjectiveError: the file or module is missing or does not import, or holds no such objective, none, or several.
    """
    text, _, name = target.partition(":")
    if not is_module and Path(text).is_file():
        module = _load_module(Path(text))
    elif is_module or _is_module_name(text):
        module = _import(text)
    else:
        beside = [str(path) for path in Path(text).parent.glob("*.py")]
        likely = near(str(Path(text)), beside)
        meant = f"; did you mean {likely!r}?" if likely else ""
        raise ObjectiveError(f"{text}: no such file; give the Python file that holds the objective{meant}")
    found = {key: value for key, value in vars(module).items() if isinstance(value, Objective)}
    if name:
        if name in found:
            return found[name]
        if callable(vars(module).get(name)):
            raise ObjectiveError(f"{text}: {name} is not an objective; decorate it with @raybo.objective(...)")
        raise ObjectiveError(f"{text} has no objective {name!r}{nearest(name, list(found))}")
    if not found:
        raise ObjectiveError(f"{text} holds no objective; decorate the function to tune with @raybo.objective(...)")
    if len(found) > 1:
        raise ObjectiveError(f"{text} holds {len(found)} objectives; choose one: {text}:{f' or {text}:'.join(found)}")
    return next(iter(found.values()))


def study_name(target: str) -> str:
    """Return the default name of the study of an objective FILE, FILE:NAME or package.module:NAME."""
    text, _, name = target.partition(":")
    is_module = not Path(text).is_file() and _is_module_name(text)
    stem = text.rpartition(".")[2] if is_module else Path(text).stem
    return f"{stem}-{name}" if name else stem


def is_loaded_by_path(module: Any) -> bool:
    """True if no worker can import the module by its name."""
    return bool(module.__name__.rpartition(".")[2].startswith(LOADED_BY_PATH))


def directories_of(module: Any) -> list[Path]:
    """Return where a worker finds what a user's module imports: the place of its package, and of a file itself."""
    if getattr(module, "__file__", None) is None:
        return []
    directory = Path(module.__file__).resolve().parent
    above = module.__name__.count(".") + (Path(module.__file__).name == "__init__.py")
    root = [directory, *directory.parents][above]
    return list(dict.fromkeys([directory, root] if is_loaded_by_path(module) else [root]))


def _is_module_name(text: str) -> bool:
    return not text.endswith(".py") and all(part.isidentifier() for part in text.split("."))


_loading: list[str] = []  # what is being loaded


def require_not_loading() -> None:
    """Raise ObjectiveError if an objective's file runs a study of its own while it is loaded."""
    if _loading:
        raise ObjectiveError(
            f"{_loading[-1]} runs a study of its own while it is loaded; put that under "
            '`if __name__ == "__main__":`, or run the file with python'
        )


@contextmanager
def _is_loading(what: str) -> Iterator[None]:
    _loading.append(what)
    try:
        yield
    finally:
        _loading.pop()


def _import(text: str) -> Any:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m`
    try:
        with _is_loading(text):
            return importlib.import_module(text)
    except ObjectiveError:
        raise
    except (Exception, SystemExit) as error:  # whatever the user's module raises
        if isinstance(error, ModuleNotFoundError) and error.name and f"{text}.".startswith(f"{error.name}."):
            raise ObjectiveError(f"{text}: there is no module {error.name!r} here, and no such file") from None
        raise ObjectiveError(f"{text}: does not import: {in_words(error)}") from error


def _package_of(directory: Path) -> tuple[str, Path]:
    """Return the dotted name of the package that a directory is, empty if it is none, and what holds the package."""
    names = []
    while (directory / "__init__.py").is_file() and directory.name.isidentifier():
        names.append(directory.name)
        directory = directory.parent
    return ".".join(reversed(names)), directory


def _load_module(path: Path) -> Any:
    directory = path.resolve().parent
    package, root = _package_of(directory)
    # a unique name, so that a user's random.py or ray.py never replaces the real one
    name = f"{package}.{LOADED_BY_PATH}{path.stem}".removeprefix(".")
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ObjectiveError(f"{path}: not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    for place in (str(directory), str(root)):
        if place not in sys.path:
            sys.path.append(place)
    try:
        with _is_loading(str(path)):
            spec.loader.exec_module(module)
    except ObjectiveError as error:
        if str(error).startswith(f"{path} runs a study"):
            raise
        raise ObjectiveError(f"{path}{_line_in(error, path)}: does not import: {in_words(error)}") from error
    except (Exception, SystemExit) as error:  # whatever the user's file raises
        reason = in_words(error)
        remedy = (
            "; is it in a package? then give the package an __init__.py" if "no known parent package" in reason else ""
        )
        raise ObjectiveError(f"{path}{_line_in(error, path)}: does not import: {reason}{remedy}") from error
    return module


def _line_in(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f":{error.lineno}"
    line, trace = "", error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path.resolve():
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line
