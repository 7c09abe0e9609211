"""The workers' time: the spans of the trials, and the fewest lanes that hold them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from raybo.record.events import Event, Kind
from raybo.record.origin import Origin
from raybo.record.states import State
from raybo.study.study import Study

CLOCK_SECONDS = 2e-3  # beginnings are told in milliseconds
UNSEEN = 1.0 / 2_000  # of the whole width
LEAST_PAUSE = 30.0  # seconds that a command may take to begin, or a trial to be lost


@dataclass(frozen=True)
class Span:
    """One attempt at a trial.

    Attributes:
        trial: its number.
        begin, end: seconds since the study began.
        lane: which worker of its host, from 0.
        host: where it ran; of one that did not say (it is running, was pruned or was lost) the only host there is,
            or one that had room at the time; empty if there was none.
        state: how the trial ended; lost also for an attempt that another one followed, pending while it runs.
    """

    trial: int
    begin: float
    end: float
    lane: int
    host: str
    state: State


def spans(study: Study) -> list[Span]:
    """Every attempt of which times are known, by its beginning.

    A trial says itself when it began and how long it took. Of one that was lost only the journal's times are known. One
    that the user has enqueued, and that has yet to begin, has none.
    """
    timed = [event for event in study.events if event.at]
    if not timed:
        return []
    clock = seconds_of(study.events)
    last = clock[timed[-1].number]
    asked: dict[int, float] = {}
    waiting: set[int] = set()  # enqueued, and no more than that
    found: list[tuple[float, float, int, str, State]] = []
    for event in timed:
        number, at = event.trial, clock[event.number]
        if number is None:
            continue
        waiting.discard(number)
        if event.kind is Kind.ASKED:
            if study.trials[number].origin is Origin.ENQUEUED:
                waiting.add(number)
            if study.trials[number].origin is not Origin.ADDED:
                asked[number] = at
        elif number in asked and event.kind not in (Kind.BEGUN, Kind.CONTEXT_OBSERVED, Kind.REPORTED):
            begin, end = _ran(event, asked.pop(number), at)
            state = State.LOST if event.kind is Kind.RETRIED else event.state
            found.append((begin, end, number, str(event.data.get("host", "")), state))
        if event.kind in (Kind.BEGUN, Kind.RETRIED, Kind.RESUMED):  # also of a trial that had failed
            asked[number] = at
    found += [(at, max(at, last), number, "", State.PENDING) for number, at in asked.items() if number not in waiting]
    return _in_lanes(found)


def joined(found: list[Span]) -> list[Span]:
    """Fewer spans that look the same: those of a lane and a state that follow each other by less than an eye sees."""
    unseen = UNSEEN * (max(span.end for span in found) - min(span.begin for span in found))
    kept: list[Span] = []
    last: dict[tuple[str, int], int] = {}  # where a lane's last one is kept
    for span in found:
        at = last.get((span.host, span.lane))
        if at is not None and kept[at].state is span.state and span.begin - kept[at].end < unseen:
            kept[at] = replace(kept[at], end=max(kept[at].end, span.end))
        else:
            last[span.host, span.lane] = len(kept)
            kept.append(span)
    return kept


def busy_share(study: Study, found: list[Span]) -> float:
    """Return the utilisation of the workers, from the first beginning to the last end, while the study ran."""
    if not found:
        return 0.0
    lanes = len({(span.host, span.lane) for span in found})
    first, last = min(span.begin for span in found), max(span.end for span in found)
    pauses = [(max(begin, first), min(end, last)) for begin, end in pauses_of(study)]
    away = sum(max(0.0, end - begin) for begin, end in pauses)
    elapsed = last - first - away
    # what was in flight when a command was killed says nothing of the pause that followed
    filled = sum(s.end - s.begin - sum(max(0.0, min(s.end, b) - max(s.begin, a)) for a, b in pauses) for s in found)
    return min(1.0, filled / (lanes * elapsed)) if elapsed > 0.0 else 1.0


def pauses_of(study: Study) -> list[tuple[float, float]]:
    """When no command ran the study, in seconds since it began.

    It is a time in which nothing was written and no trial ran to its end, longer than anything in it has taken.
    """
    timed = [event for event in study.events if event.at]
    if not timed:
        return []
    clock, until = seconds_of(study.events), 0.0
    least = 2.0 * max([LEAST_PAUSE, *(max(t.seconds or 0.0, t.suggest_seconds) for t in study.trials)])
    active = [_ran(event, at := clock[event.number], at) for event in timed]
    found = []
    for begin, end in sorted(active):
        if begin - until > least:
            found.append((until, begin))
        until = max(until, end)
    return found


def seconds_of(events: Sequence[Event]) -> dict[int, float]:
    """Return when each event was, by its number, in seconds since the first of them.

    Where the computer's clock was set back, no time passes.
    """
    found, before, elapsed = dict[int, float](), None, 0.0
    for event in events:
        if (at := event.timestamp) is not None:
            elapsed += 0.0 if before is None else max(0.0, at - before)
            found[event.number], before = elapsed, at
    return found


def _ran(event: Event, asked: float, ended: float) -> tuple[float, float]:
    written = event.timestamp
    if "started" not in event.data or event.data.get("seconds") is None or written is None:
        return asked, ended
    seconds = float(event.data["seconds"])
    started = datetime.fromisoformat(str(event.data["started"])).timestamp()  # by the clock of its host
    began = ended + (started - written)
    begin = max(0.0, min(began, ended - seconds))
    return begin, begin + seconds


def _in_lanes(rows: Iterable[tuple[float, float, int, str, State]]) -> list[Span]:
    """Each in the first lane of its host that is free, a new one where all are taken.

    Where the host is unknown, it is one of those that are known: a lane of its own would be a worker too many.
    """
    rows = sorted(rows, key=lambda row: (row[0], row[2]))
    hosts = {host for _, _, _, host, _ in rows if host}
    only = next(iter(hosts)) if len(hosts) == 1 else ""
    lanes: dict[str, list[list[tuple[float, float]]]] = {}  # of each host: for each lane what is in it, in order
    placed = []
    for known in (True, False):
        for begin, end, number, host, state in rows:
            host = host or only
            if bool(host) is known:
                host, lane = _lane(lanes, [host] if host else [*sorted(hosts), ""], begin, end)
                placed.append(Span(number, begin, end, lane, host, state))
    return sorted(placed, key=lambda span: (span.begin, span.trial))


def _lane(
    lanes: dict[str, list[list[tuple[float, float]]]], hosts: Sequence[str], begin: float, end: float
) -> tuple[str, int]:
    """The first lane of these hosts that has room for a span, or else a new one of the last host; it holds it now."""
    for host in hosts:
        for lane, held in enumerate(lanes.get(host, [])):
            at = bisect_right(held, (begin, end))
            after_last = at == 0 or held[at - 1][1] <= begin + CLOCK_SECONDS
            if after_last and (at == len(held) or end <= held[at][0] + CLOCK_SECONDS):
                held.insert(at, (begin, end))
                return host, lane
    lanes.setdefault(hosts[-1], []).append([(begin, end)])
    return hosts[-1], len(lanes[hosts[-1]]) - 1
