"""Which metric a scheduler looks at: an option that all schedulers have."""

from __future__ import annotations

from dataclasses import dataclass

from raybo.common.options import Options, option


@dataclass(frozen=True, kw_only=True)
class OfMetric(Options):
    """What every scheduler inherits. Its history has the reports of that metric, see `History.judged`."""

    metric: str | None = option(None, "which of several metrics is judged; none: the first")
