"""The report's figures of a study that runs: made beside the server, kept until something has happened, never hurried.

Figures of a long study take seconds of a processor. So they are made in a thread, one study at a time, and again only
after a pause many times as long as they took.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from raybo.record.events import Event
from raybo.reporting.figures import report_figures
from raybo.study.study import Study
from raybo.view.facts import Json, best_trial, front_of, text
from raybo.view.followed import Followed
from raybo.view.parallel import plain_lines

PAUSE_SECONDS = 2.0  # the least pause between two drawings
PAUSE_FACTOR = 5.0  # the pause is so many times as long as the last drawing took


@dataclass(frozen=True)
class Drawn:
    """The figures of one moment.

    Attributes:
        times, last: of which reading of the journal, and up to which event.
        panels: key, title and caption of each.
        figures: plotly's JSON of each, by key.
        recommended: the recommended trial, with what a model expects of it, and why it is recommended.
        front: of a study with several metrics.
        error: the reason if there are none, otherwise empty.
    """

    times: int
    last: int
    panels: list[Json]
    figures: dict[str, bytes]
    recommended: Json | None = None
    front: Sequence[Json] = ()
    error: str = ""


_one_at_a_time = threading.Lock()


class Figures:
    """The newest figures of one study.

    Args:
        followed: the study.
    """

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.drawn: Drawn | None = None
        self._rests_until = 0.0
        self._thread: threading.Thread | None = None

    def latest(self) -> Drawn | None:
        """Return the newest figures, None before the first; begin to draw anew if they are out of date."""
        with self.followed.now() as study:
            now = (self.followed.times, len(study.events))
            drawn = self.drawn
            is_stale = drawn is None or (drawn.times, drawn.last) != now
            is_resting = time.monotonic() < self._rests_until and drawn is not None and drawn.times == now[0]
            if is_stale and not is_resting and (self._thread is None or not self._thread.is_alive()):
                # a copy, since this study changes while that is drawn
                events = list(study.events)
                self._thread = threading.Thread(
                    target=self._draw, args=(study, events, now), name="raybo-figures", daemon=True
                )
                self._thread.start()
        return drawn

    def is_drawing(self) -> bool:
        """Return True while newer figures are being drawn."""
        return self._thread is not None and self._thread.is_alive()

    def _draw(self, study: Study, events: list[Event], now: tuple[int, int]) -> None:
        with _one_at_a_time:
            begun = time.monotonic()
            try:
                frozen = Study(study.description, events, study.path)
                best = None if frozen.incumbent is None else frozen.recommended
                made = [plain_lines(panel) for panel in report_figures(frozen)]
                self.drawn = Drawn(
                    *now,
                    panels=[{"key": p.key, "title": text(p.title), "caption": text(p.caption, 2_000)} for p in made],
                    figures={p.key: p.figure.to_json().encode() for p in made},
                    front=front_of(frozen),
                    recommended=None
                    if best is None
                    else {**best_trial(frozen, best, frozen.expected(best)), "why": text(frozen.recommendation)},
                )
            except Exception as error:  # noqa: BLE001  # whatever drawing raises must not end what is served
                self.drawn = Drawn(*now, [], {}, error=text(f"the figures cannot be drawn: {error}"))
            took = time.monotonic() - begun
            self._rests_until = time.monotonic() + max(PAUSE_SECONDS, PAUSE_FACTOR * took)


def as_bytes(value: Json) -> bytes:
    """Encode JSON to be sent."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
