"""What is known of a trial's end, and what a model expects of it: slow, and so computed when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

EXPECTED = ("expected", "expected_sd")


class Details(Mapping[str, Any]):
    """What is known of a trial's end; what the model expects of it is computed when asked for.

    Compared by what is known alone, so that a trial stays equal to itself.
    """

    def __init__(self, known: Mapping[str, Any], expect: Callable[[], Mapping[str, Any]]) -> None:
        self._known = known
        self._expect = expect
        self._found: Mapping[str, Any] | None = None

    @property
    def _expected(self) -> Mapping[str, Any]:
        if self._found is None:
            self._found = self._expect()
        return self._found

    def __getitem__(self, key: str) -> Any:
        return self._known[key] if key in self._known or key not in EXPECTED else self._expected[key]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._known, **self._expected})

    def __len__(self) -> int:
        return len({**self._known, **self._expected})

    def __eq__(self, other: object) -> bool:
        return (other._known if isinstance(other, Details) else other) == self._known

    def __hash__(self) -> int:
        raise TypeError("details cannot be hashed")

    def __repr__(self) -> str:
        return repr(dict(self._known))

    def __reduce__(self) -> tuple[Any, ...]:  # the model does not travel: what it expects is computed before
        return dict, (dict(self),)
