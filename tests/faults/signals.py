"""Strike a study's processes with signals, cell by cell of the table in `promises`, and check what is promised.

`python -m tests.faults --signals --strikes 500 --seed 1 --record FILE` writes to FILE a line of JSON for each strike,
and continues from there when it is given again.
"""

from __future__ import annotations

import json
import math
import re
import signal
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import raybo
from raybo.engine.driver import RAYS
from raybo.record.events import Event, Kind
from raybo.record.states import COUNTED
from tests.faults import checks, given
from tests.faults.job import JUDGED, OF_A_REPORT, SAVED
from tests.faults.promises import CELLS, OF_A_RAY, SIGNALS, Cell, Phase, Process, Promise, Strike, strikes
from tests.faults.running import _kill
from tests.faults.session import ABORTED, OF_RAY, Session

A_SESSION = 16  # strikes on one study
SETTLE_SECONDS = 180.0  # within which a study continues after a strike, on a machine that is loaded many times over
START_SECONDS = 4.0  # that a Ray takes to start: strikes come within twice this time
STOPPED_SECONDS = (1.0, 3.0)
LAST_TRIALS = 3  # of a command whose end is struck
END_SECONDS = {Process.STUDY: 0.2, Process.COMMAND: 2.0, Process.VIEWER: 2.0}  # from the last trial to its end
RAY_ENDS_SECONDS = 0.8  # the same for processes of Ray's
PROGRESS = 3  # events that show that a study continues
STATUS: dict[Promise, tuple[int, ...]] = {Promise.STOPS: (130, -signal.SIGINT)}  # Python may end by the signal itself
INTERRUPTED = "the process that ran it was interrupted"
# that a study's process is given no processor for as long as it may be silent, beside enough others
SLOW = re.compile(r"the study's own process has neither answered nor written for \d+ s; a new one continues .*")


@dataclass
class Struck:
    """The outcome of a strike.

    Attributes:
        missed: why nothing was met; empty if something was.
        complaints: what was not as promised.
        known: lines of Ray's own that nothing can prevent.
        seconds: how long it took until the promise was kept.
    """

    strike: Strike
    missed: str = ""
    complaints: list[str] = field(default_factory=list)
    known: int = 0
    seconds: float = 0.0

    def to_json(self) -> str:
        """Return a line for the record."""
        about = {"number": self.strike.number, "cell": str(self.strike.cell), "missed": self.missed}
        return json.dumps(about | {"complaints": self.complaints, "known": self.known, "seconds": self.seconds})


def run_session(session: Session, planned: Sequence[Strike], end: float = math.inf) -> Iterator[Struck]:
    """Strike one study, and check its journal at the end; the last to be yielded has those complaints.

    Args:
        session: the study.
        planned: the strikes.
        end: no strike begins after this time, by the monotonic clock.
    """
    by_phase = sorted(planned, key=lambda strike: list(Phase).index(strike.cell.phase))
    last: Struck | None = None
    try:
        for strike in by_phase:
            if last is not None:
                if time.monotonic() > end:
                    break
                yield last
            begun = time.monotonic()
            last = Struck(strike)
            _strike(session, last)
            last.complaints += session.not_gone()
            last.seconds = round(time.monotonic() - begun, 2)
        assert last is not None
        last.complaints += _finish(session)
        yield last
    finally:
        session.close()


def _strike(session: Session, struck: Struck) -> None:
    cell, moment = struck.strike.cell, struck.strike.moment
    if cell.process is Process.VIEWER:
        if not session.look():
            _going(session)
        session.view()
        if not _until(lambda: b"http" in (session.directory / "viewer").read_bytes()):
            struck.complaints.append("the viewer did not start")
            return
    if cell.phase is Phase.STARTS:
        session.end()
        session.give()
        if cell.process in OF_A_RAY:
            _until(lambda: session.process(cell.process, 0) is not None or not session.is_running(), 30)
        time.sleep(moment * START_SECONDS * (1 if cell.process in OF_A_RAY else 2))
    elif cell.phase is Phase.ENDS:
        session.end()
        goal = session.ended() + LAST_TRIALS
        session.give(goal)
        if not _until(lambda: session.ended() >= goal or not session.is_running()):
            struck.complaints.append("the study did not come to its last trial")
            return
        time.sleep(moment * END_SECONDS.get(cell.process, RAY_ENDS_SECONDS))
    elif not _going(session):
        struck.complaints.append("the study does not run")
        return
    _hear(session, struck)
    events = session.look()
    study, number = session.study(), SIGNALS[cell.signal]
    if cell.phase in (Phase.RUNS, Phase.STARTS, Phase.ENDS):
        if cell.phase is Phase.RUNS:
            time.sleep(moment * 0.3)
        process = session.process(cell.process, struck.strike.which)
        if process is None or not _kill(process, number):
            struck.missed = "nobody was there"
        else:
            _continue(process, number, moment)
    else:
        _strike_at(session, struck, SAVED if cell.phase is Phase.SAVES else JUDGED, number)
    if not struck.missed:
        _check(session, struck, list(events), study)
    elif not session.is_running() and session.command is not None:
        session.has_ended()


def _hear(session: Session, struck: Struck) -> None:
    """Take what the command has said before the signal: that is none of its consequences."""
    lines = [line for line in session.strange() if not SLOW.fullmatch(line)]
    struck.complaints += [f"it said before: {line[:200]}" for line in lines]
    session.rays_lost += sum("starting another one" in line for line in session.said())
    session.said_before()


def _strike_at(session: Session, struck: Struck, at: str, number: signal.Signals) -> None:
    """Have a trial send the signal at a moment of its own."""
    strike = struck.strike
    own = strike.cell.process is Process.WORKER
    process = 0 if own else session.process(strike.cell.process, strike.which)
    if process is None:
        struck.missed = "nobody was there"
        return
    session.order(at, process, number, strike.moment * OF_A_REPORT)
    taken: dict[str, int] = {}

    def is_taken() -> bool:
        taken.update(session.taken(at) or {})
        return bool(taken)

    if not _until(is_taken, 60):
        session.withdraw(at)
        struck.missed = "no trial came to that moment"
        return
    _continue(taken["process"], number, strike.moment)


def _continue(process: int, number: signal.Signals, moment: float) -> None:
    """Continue a process that was stopped."""
    if number is signal.SIGSTOP:
        time.sleep(STOPPED_SECONDS[0] + moment * (STOPPED_SECONDS[1] - STOPPED_SECONDS[0]))
        _kill(process, signal.SIGCONT)


def _check(session: Session, struck: Struck, before: list[Event], study: int | None) -> None:
    """Wait for what is promised, and complain of what is not as promised."""
    cell, promise = struck.strike.cell, struck.strike.cell.promise
    wrong = struck.complaints
    if promise in (Promise.ENDS, Promise.STOPS) and cell.process is not Process.VIEWER:
        _check_end(session, struck)
        return
    if cell.process is Process.VIEWER:
        assert session.viewer is not None
        viewer = session.viewer
        if promise is Promise.VIEWER and not _until(lambda: viewer.poll() is not None, 60):
            wrong.append("the viewer did not end")
        if promise is Promise.NOTHING and viewer.poll() is not None:
            wrong.append(f"the viewer ended with {viewer.returncode}")
        if b"Traceback" in (session.directory / "viewer").read_bytes():
            wrong.append("the viewer printed a traceback")
    _settle(session, struck, before, study)
    events = session.look()
    new = events[len(before) :]
    reasons = Counter(str(event.data["reason"]) for event in new if event.kind is Kind.RETRIED)
    wrong += [f"trial {event.trial} failed: {event.data.get('reason')}" for event in new if event.kind is Kind.FAILED]
    again = sum(reasons.values())
    if promise in (Promise.NOTHING, Promise.VIEWER) and cell.phase is not Phase.STARTS and again:
        wrong.append(f"trials ran again: {dict(reasons)}")
    if promise is Promise.AGAIN and (again > 1 or set(reasons) - {"its worker died (WorkerCrashedError)"}):
        wrong.append(f"other trials than the worker's ran again: {dict(reasons)}")
    if promise is Promise.RESTARTS and session.is_running() and session.study() == study:
        wrong.append("the study's process is the same as before")
    if promise in (Promise.RESTARTS, Promise.ANOTHER, Promise.LINE, Promise.EITHER):
        twice = Counter(event.trial for event in new if event.kind is Kind.RETRIED)
        if set(reasons) - {INTERRUPTED} or max(twice.values(), default=0) > 1:
            wrong.append(f"one loss was told as several: {dict(reasons)}, {dict(twice)}")


def _check_end(session: Session, struck: Struck) -> None:
    """The command has to end by the signal, or as promised, with nothing else to say."""
    cell, wrong, command = struck.strike.cell, struck.complaints, session.command
    assert command is not None
    if not _until(lambda: command.poll() is not None):
        wrong.append("the command did not end")
        session.end()
        return
    session.has_ended()
    allowed: tuple[int, ...] = STATUS.get(cell.promise, (-SIGNALS[cell.signal],))
    if cell.phase is Phase.ENDS:
        allowed = (*allowed, 0)
    if command.returncode not in allowed:
        wrong.append(f"the command ended with {command.returncode}")
    wrong += [f"it said: {line[:200]}" for line in session.strange()[:3]]


def _settle(session: Session, struck: Struck, before: list[Event], study: int | None) -> None:
    """Wait until the study has gone on, or has ended as it may."""
    cell, wrong, command = struck.strike.cell, struck.complaints, session.command
    assert command is not None

    def goes_on() -> bool:
        news = session.look()[seen:]
        return sum(event.kind in (Kind.TOLD, Kind.REPORTED) for event in news) >= PROGRESS

    def is_met() -> bool:
        if cell.promise is Promise.ANOTHER:
            return any("starting another one" in line for line in session.said())
        if cell.promise is Promise.RESTARTS:
            return session.study() not in (None, study)
        if cell.promise is Promise.AGAIN:
            return any(event.kind is Kind.RETRIED for event in session.look()[len(before) :])
        return True

    if cell.phase is not Phase.ENDS and not _until(lambda: is_met() or command.poll() is not None, 60):
        wrong.append("the signal had no effect for a minute")
    seen = len(session.look())
    _until(lambda: goes_on() or command.poll() is not None)
    if cell.phase is Phase.ENDS:  # there is nothing more to run
        _until(lambda: command.poll() is not None)
    if command.poll() is not None:
        session.has_ended()
        may_fail = cell.promise is Promise.LINE
        is_aborted = may_fail and any(ABORTED.fullmatch(line) for line in session.strange())
        allowed = (1, -signal.SIGABRT) if is_aborted else (1,)
        if command.returncode != 0 and not (may_fail and command.returncode in allowed):
            wrong.append(f"the command ended with {command.returncode}")
        elif cell.phase is not Phase.ENDS and not may_fail:
            wrong.append(f"the command ended with {command.returncode}")
    elif cell.phase is Phase.ENDS or not goes_on():
        wrong.append(f"no progress for {SETTLE_SECONDS:.0f} s after event {len(session.events)}")
        session.end()
    for line in session.strange():
        if cell.promise is Promise.LINE and (OF_RAY.fullmatch(line) or ABORTED.fullmatch(line)):
            struck.known += 1
        else:
            wrong.append(f"it said: {line[:200]}")
    session.rays_lost += sum("starting another one" in line for line in session.said())
    session.said_before()


def _going(session: Session) -> bool:
    """Start the command, and wait until the study continues."""
    if session.rays_lost >= RAYS - 1:  # the next one would be the last of this command
        session.end()
    if not session.is_running():
        session.give()
    begun = len(session.look())
    return _until(lambda: len(session.look()) > begun + PROGRESS or not session.is_running()) and session.is_running()


def _finish(session: Session) -> list[str]:
    """Run the study to an end, and check its journal and everything that its trials wrote."""
    session.end()
    goal = session.ended() + 1
    session.give(goal)
    assert session.command is not None
    if not _until(lambda: not session.is_running()):
        return ["the study does not come to an end"]
    session.has_ended()
    wrong = [] if session.command.returncode == 0 else [f"the last command ended with {session.command.returncode}"]
    wrong += [f"it said: {line[:200]}" for line in session.strange()]
    session.look()
    study = raybo.load(session.journal)
    trials = sum(trial.state in COUNTED for trial in study.trials)
    wrong += map(str, checks.of_the_journal(study, max(goal, trials)))
    wrong += map(str, checks.of_what_ran(study, session.lines))
    wrong += map(str, checks.of_reports(study))
    while session.left and not wrong:
        wrong += session.not_gone()
        time.sleep(0.2)
    return wrong


def _until(holds: Callable[[], bool], seconds: float = SETTLE_SECONDS) -> bool:
    give_up = given.now() + seconds
    while not holds():
        if given.now() > give_up:
            return False
        time.sleep(0.02)
    return True


def summary(done: Sequence[dict[str, object]]) -> str:
    """Return how many strikes met what, by process and by phase, and what was wrong."""
    met = [line for line in done if not line["missed"]]
    of_cell: dict[str, list[dict[str, object]]] = defaultdict(list)
    for line in met:
        of_cell[str(line["cell"])].append(line)
    wrong = [line for line in met if line["complaints"]]
    seconds = [float(str(line["seconds"])) for line in met] or [0.0]
    rows = [
        f"\n{len(met)} strikes met a process ({len(done) - len(met)} met none), "
        f"{statistics.median(seconds):.1f} s median, {sum(seconds) / 60:.1f} minutes",
        f"{len(of_cell)} of {len(CELLS)} cells were struck; {len(wrong)} strikes have complaints; "
        f"{sum(bool(line['known']) for line in met)} met a line of Ray's own that is known",
        f"\n{'':32s}" + "".join(f"{phase:>28s}" for phase in map(str, Phase)),
    ]
    for process in Process:
        counts = []
        for phase in Phase:
            lines = [x for c in CELLS if (c.process, c.phase) == (process, phase) for x in of_cell[str(c)]]
            bad = sum(bool(line["complaints"]) for line in lines)
            counts.append(f"{len(lines)}" + (f" ({bad} wrong)" if bad else ""))
        rows.append(f"{process!s:32s}" + "".join(f"{text:>28s}" for text in counts))
    for line in wrong:
        rows.append(f"\n{line['number']}  {line['cell']}: {line['complaints']}")
    return "\n".join(rows)


def planned_for(cells: Sequence[Cell], seed: int = 0) -> list[Strike]:
    """Return strikes on some cells, at moments of a seed."""
    drawn = {strike.cell: strike for strike in islice(strikes(seed), len(CELLS))}
    return [drawn[cell] for cell in cells]
