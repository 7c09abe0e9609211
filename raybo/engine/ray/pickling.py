"""The user's function on its way to a worker, together with what Ray's pickle would leave out."""

from __future__ import annotations

import copyreg
import inspect
import logging
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from raybo.common.messages import first_line
from raybo.job.loading import directories_of, is_loaded_by_path
from raybo.job.shared_data import Shared

UNSENDABLE = (  # reasons for which an object cannot be pickled by Ray either
    r"^cannot pickle '([\w.]+\.)?(lock|RLock|generator|coroutine|async_generator|socket|_local|Connection|SSLContext)' "
)


def pickled(function: Callable[..., Any], data: Mapping[str, Shared[Any]] | None = None) -> bytes:
    """The user's function for Ray to send, with the memoised functions that it calls, and data as further parameters.

    Otherwise those are pickled by name, which a worker cannot find if the file was loaded by its path. The directory
    of that file goes along, as what lies beside it is imported by name.
    """
    from ray import cloudpickle

    memoised: Any = type(unpickled)
    reduce: Any = lambda f: (_memoised, (f.__wrapped__, f.cache_parameters()))  # noqa: E731
    dumps: Any = cloudpickle.dumps
    copyreg.pickle(memoised, reduce)
    try:
        inner = dumps(_WithData(function, data) if data else function)
        return cast(bytes, dumps((directories_for(function.__module__), _logging(), inner)))
    finally:
        copyreg.dispatch_table.pop(memoised, None)


@dataclass(frozen=True)
class _WithData:
    """A function some of whose parameters are shared data."""

    function: Callable[..., Any]
    data: Mapping[str, Shared[Any]]

    def __call__(self, config: Mapping[str, Any], **settings: Any) -> Any:
        return self.function(config, **settings, **{name: each.value for name, each in self.data.items()})


def used_by(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables that travel with a function: those around it, and its module's if a worker cannot import it.

    Empty for other callables.
    """
    try:
        found = inspect.getclosurevars(inspect.unwrap(function))
    except TypeError:
        return {}
    module = sys.modules.get(function.__module__)
    by_value = module is None or not importable(module)
    return {**(found.globals if by_value else {}), **found.nonlocals}


def culprit(variables: Mapping[str, Any], dump: Callable[[Any], object], reasons: str = "") -> str:
    """Return which variable cannot be pickled and why, in words; empty if all can.

    Args:
        dump: pickles a value, or raises.
        reasons: a pattern of the reasons that count; other errors are passed over.
    """
    for name, value in variables.items():
        try:
            dump(value)
        except Exception as error:  # noqa: BLE001  # whatever a user's object raises when it is pickled
            if re.search(reasons, str(error)):
                return f"{first_line(error)} (the variable {name!r})"
    return ""


def unsendable(variables: Mapping[str, Any]) -> str:
    """Return the `culprit` among values of types that nobody can pickle, which is found before Ray is started."""
    return culprit(variables, lambda value: value.__reduce_ex__(5), UNSENDABLE)


def importable(module: Any) -> bool:
    """Return True if a worker can import the module by name, and not only from its file."""
    return module.__name__ != "__main__" and not is_loaded_by_path(module)


def directories_for(name: str) -> list[str]:
    """Return where a worker may find a user's module and what lies beside it.

    A directory below this process's own is looked for below the worker's working directory first.
    """
    module = sys.modules.get(name)
    if module is None or module.__name__ == "__main__":
        return []
    found = []
    for directory in directories_of(module):
        found += [str(directory.relative_to(Path.cwd()))] if directory.is_relative_to(Path.cwd()) else []
        found.append(str(directory))
    return found


def make_importable(directories: Iterable[str]) -> None:
    """Add directories, as `directories_for` returned them elsewhere, to where this process imports from."""
    for directory in (str(Path.cwd() / directory) for directory in directories):
        if Path(directory).is_dir() and directory not in sys.path:
            sys.path.append(directory)


def _logging() -> tuple[int, str | None] | None:
    """Return the level and format of the user's logging, for a worker to set up; None if there is none."""
    root = logging.getLogger()
    if not root.handlers:
        return None
    return root.level, getattr(root.handlers[0].formatter, "_fmt", None)


def _memoised(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Callable[..., Any]:
    wrapped: Callable[..., Any] = lru_cache(**parameters)(function)
    return wrapped


@lru_cache(maxsize=1)
def unpickled(function: bytes) -> Callable[..., Any]:
    """The user's function from what its own driver sent over Ray; once per worker, so that what it caches stays."""
    from ray import cloudpickle

    loads: Any = cloudpickle.loads
    directories, said, inner = loads(function)
    if said is not None and not logging.getLogger().handlers:
        logging.basicConfig(level=said[0], format=said[1])
    make_importable(directories)
    return cast("Callable[..., Any]", loads(inner))


@lru_cache(maxsize=1)
def unpickled_from_store(reference: Any) -> Callable[..., Any]:
    """Return the user's function if it was so large that it was put into Ray's object store."""
    import ray

    return unpickled.__wrapped__(cast(Any, ray).get(reference))
