"""Large data that every trial reads: put into Ray's object store once per study, and read there without copies."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Generic, TypeVar, cast, overload
from uuid import uuid4

import numpy as np

T = TypeVar("T")

SIZE_OF_OTHERS = 1_000  # bytes assumed for objects of unknown size


class Shared(Generic[T]):
    """Data of one process that trials in others read. Made by `raybo.shared`."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._token = ""  # by which a worker finds the data in Ray's store; empty if they are in this process
        self._made: list[T] = []

    @property
    def value(self) -> T:
        """The data. In a trial, arrays are read-only: copy what you want to change."""
        if not self._made:
            if self._token:
                self._made.append(_fetch[self._token]())
            else:
                self._made.append(self._source() if callable(self._source) else self._source)
        return self._made[0]

    @property
    def summary(self) -> str:
        """Return its entry in a journal: the function that makes it, or kind, shape and fingerprint."""
        return f"made by {_name(self._source)}" if callable(self._source) else fingerprint(self._source)

    def _bind(self, token: str) -> None:
        if self._token != token:
            self._token, self._made = token, []

    def __repr__(self) -> str:
        return f"raybo.shared({_name(self._source) if callable(self._source) else type(self._source).__name__})"

    def __reduce__(self) -> tuple[Any, ...]:
        sent = _sending.get()
        if sent is None:
            return Shared, (self._source,)
        return _received, (token_of(self, sent),)


@overload
def shared(source: Callable[[], T]) -> Shared[T]: ...
@overload
def shared(source: T) -> Shared[T]: ...
def shared(source: Callable[[], T] | T) -> Shared[T]:
    """Data for all trials: `data = raybo.shared(load)` at the top level of a module, `data.value` in the objective.

    When a study begins, its driver makes the data and puts them into Ray's object store; trials read them from there.
    Arrays are not copied, and cannot be written to. Outside a study `value` is the data themselves.

    Args:
        source: a function that makes the data, called once; or the data.
    Raises:
        ObjectiveError: not here, but when a study begins on Ray: the data cannot be made or sent, Ray has no room for
            them, or the study is detached. Elsewhere `value` raises what the function raises.
    Example:
        >>> def load():
        ...     return [1, 2, 3]
        >>> data = raybo.shared(load)
        >>> sum(data.value)
        6
    """
    return Shared(source)


# ---- in the driver

# by token, while a study is being sent, in the thread that does it
_sending: ContextVar[dict[str, Shared[Any]] | None] = ContextVar("sending", default=None)


@contextmanager
def sending() -> Iterator[dict[str, Shared[Any]]]:
    """Within the block shared data are pickled as tokens; what these stand for is added to the dict."""
    sent: dict[str, Shared[Any]] = {}
    before = _sending.set(sent)
    try:
        yield sent
    finally:
        _sending.reset(before)


def shared_by(function: Any) -> dict[tuple[str, str], Shared[Any]]:
    """Shared data in the module of a function and in those that it has imported, by module and name there."""
    home = sys.modules.get(getattr(function, "__module__", None) or "")
    modules = [] if home is None else [home, *(v for v in vars(home).values() if isinstance(v, ModuleType))]
    return {
        (module.__name__, name): value
        for module in modules
        for name, value in list(vars(module).items())
        if isinstance(value, Shared)
    }


def token_of(data: Shared[Any], sent: dict[str, Shared[Any]]) -> str:
    """Return the token of shared data among those that are sent; a new one if it has none yet."""
    for token, other in sent.items():
        if other is data:
            return token
    token = uuid4().hex
    sent[token] = data
    return token


def is_data(value: Any) -> bool:
    """True if a setting is data rather than a word or a number: an array, a table, or something that holds one."""
    if isinstance(value, (list, tuple)):
        return any(map(is_data, value))
    if isinstance(value, Mapping) and not _is_sparse(value):
        return any(map(is_data, value.values()))
    if isinstance(value, np.generic):
        return False
    return isinstance(value, Shared) or any(hasattr(value, name) for name in ("__array__", "__dataframe__", "toarray"))


def size_of(value: Any) -> int:
    """About how many bytes data take."""
    if isinstance(value, (list, tuple)):
        return sum(map(size_of, value))
    if isinstance(value, Mapping):
        return sum(map(size_of, value.values()))
    if hasattr(value, "memory_usage"):  # of pandas, whose nbytes leaves the index out
        with suppress(Exception):
            return int(np.sum(value.memory_usage(deep=True)))
    parts = [value, *(getattr(value, name, None) for name in ("data", "indices", "indptr"))]  # of sparse matrices
    return SIZE_OF_OTHERS + max(
        int(getattr(value, "nbytes", 0)), sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
    )


def fingerprint(value: Any) -> str:
    """Kind, shape and a hash of data, by which a continued study tells whether they have changed.

    Of sparse matrices the hash covers the values' positions; of tables the names and types of columns, and the index.
    What cannot be hashed at little cost (objects in arrays, whatever is neither array nor table) is known by its shape.
    """
    if isinstance(value, Shared):
        return value.summary
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of " + ", ".join(fingerprint(item) for item in value)
    if isinstance(value, Mapping) and not _is_sparse(value):
        return "dict of " + ", ".join(f"{key}: {fingerprint(item)}" for key, item in value.items())
    words = [type(value).__name__]
    if (shape := getattr(value, "shape", None)) is not None:
        words.append(" x ".join(map(str, shape)) if isinstance(shape, tuple) else str(shape))
    parts: list[Any] = []
    with suppress(Exception):  # another library's object
        parts = _parts(value)
    if parts and not any(part.dtype.hasobject for part in parts):
        words += [f"of {parts[0].dtype}", _hash(parts)]
    elif not is_data(value):
        return repr(value)[:100]
    return " ".join(words)


def _hash(parts: Sequence[Any]) -> str:
    """Of arrays; that of a single one is that of its bytes."""
    made = hashlib.blake2b(digest_size=8)
    for place, part in enumerate(parts):
        if place:
            made.update(f"{part.dtype} {part.shape}".encode())
        made.update(cast(Any, np.ascontiguousarray(part).view(np.uint8).reshape(-1)))
    return made.hexdigest()


def _parts(value: Any) -> list[Any]:
    """The arrays that data consist of."""
    if isinstance(value, np.ma.MaskedArray):
        return [value.filled(), np.ma.getmaskarray(value)]
    if isinstance(value, np.ndarray):
        return [value]
    if _is_sparse(value):
        return _parts_of_sparse(value)
    pd = sys.modules.get("pandas")
    if pd is not None and isinstance(value, pd.api.extensions.ExtensionArray):
        value = pd.Series(value)
    if pd is not None and isinstance(value, (pd.DataFrame, pd.Series, pd.Index)):
        columns = value.dtypes.items() if isinstance(value, pd.DataFrame) else [(value.name, value.dtype)]
        names = repr([(name, repr(dtype)) for name, dtype in columns])
        return [np.asarray(pd.util.hash_pandas_object(value)), np.frombuffer(names.encode(), dtype=np.uint8)]
    if isinstance(getattr(value, "data", None), np.ndarray):
        return [value.data]
    if hasattr(value, "to_pandas") and is_data(value):  # another library's table: as an array it has lost its names
        with suppress(Exception):  # without pandas
            return _parts(value.to_pandas())
    return [np.asarray(value)]


def _is_sparse(value: Any) -> bool:
    return hasattr(value, "toarray")


def _parts_of_sparse(value: Any) -> list[Any]:
    """Return a matrix's values and their positions, sorted if the matrix is not marked as sorted."""
    if not isinstance(getattr(value, "data", None), np.ndarray) or value.data.dtype.hasobject:  # dok, lil
        value = value.tocsr()
    if not getattr(value, "has_sorted_indices", True):  # libraries sort them in place
        value = value.sorted_indices()
    places = getattr(value, "coords", None)
    if not isinstance(places, tuple):
        found = (getattr(value, name, None) for name in ("indices", "indptr", "offsets", "row", "col"))
        places = tuple(part for part in found if isinstance(part, np.ndarray))
    return [value.data, *places]


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


# ---- in a worker

_fetch: dict[str, Callable[[], Any]] = {}  # by token


def receive(fetch: Mapping[str, Callable[[], Any]], named: Sequence[tuple[str, str, str]]) -> None:
    """Let this process find the shared data of a study.

    Args:
        fetch: gets each, by its token.
        named: module, name and token of those that are pickled by name.
    """
    _fetch.clear()
    _fetch.update(fetch)
    for module, name, token in named:
        with suppress(Exception):  # a module that only the driver can import is of no use here
            getattr(importlib.import_module(module), name)._bind(token)


def _received(token: str) -> Shared[Any]:
    data: Shared[Any] = Shared(None)
    data._bind(token)
    return data
