"""python -m tests.faults --kills 200 --seed 1: as many kills as asked, study after study, and a table of it."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tests.conftest import local_ray
from tests.engine import hosts
from tests.faults import disk, ranks, signals
from tests.faults.checks import Wrong
from tests.faults.cluster import Cluster
from tests.faults.harness import Report, look_for_processes, run
from tests.faults.plan import (
    AT_A_STEP,
    KILLS_A_STUDY,
    REPORTED_TO,
    WHILE_PAUSED,
    Kind,
    Place,
    PlannedStudy,
    kinds_at,
    kinds_where_trials_report,
    reporting_studies,
    studies,
)
from tests.faults.promises import strikes
from tests.faults.running import HERE
from tests.faults.session import Session

NO_DISK = "no file system can be mounted here (it needs root): no disk is filled"
NO_HOSTS = "network namespaces are not possible here (they need root and `ip`): no nodes are killed or cut off"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the study of the plan to begin with")
    parser.add_argument(
        "--reports", action="store_true", help="a plan of jobs that report, killed at their steps and while paused"
    )
    parser.add_argument(
        "--kills-per-study", type=int, default=KILLS_A_STUDY, help="fewer make more studies of as many kills"
    )
    parser.add_argument("--signals", action="store_true", help="strike the cells of the table of signals instead")
    parser.add_argument("--ranks", action="store_true", help="strike processes of trials that have several instead")
    parser.add_argument("--strikes", type=int, default=500, help="of --signals, with those in the record")
    parser.add_argument("--record", type=Path, help="of --signals, --ranks: a file to go on from")
    parser.add_argument("--minutes", type=float, help="of --signals, --ranks: begin no further study after so long")
    parser.add_argument("--no-hosts", action="store_true", help="do without a cluster of several hosts")
    parser.add_argument("--source", type=Path, default=HERE, help="the clone whose raybo is killed; default: this one")
    asked = parser.parse_args()
    for how in (signal.SIGINT, signal.SIGTERM):  # also in the background, where a shell has them ignored
        signal.signal(how, signal.default_int_handler)
    if asked.signals:
        return strike(asked.strikes, asked.seed, asked.record, asked.minutes, asked.source.absolute())
    if asked.ranks:
        return strike_ranks(asked.kills, asked.seed, asked.record, asked.minutes)
    hosts_there = hosts.are_possible() and not asked.no_hosts
    fills = disk.is_possible()
    if not hosts_there and not asked.no_hosts:
        print(NO_HOSTS)
    if not fills:
        print(NO_DISK)
    begun, reports, done = time.monotonic(), [], 0
    print(f"{'study':>5s}  {'where':31s}  {'method':11s}  {'scheduler':17s}  {'kills':>5s}  {'s':>4s}  complaints")
    with ExitStack() as stack:
        small = stack.enter_context(disk.Disk()) if fills else None  # before the hosts, which see what is mounted then
        cluster = stack.enter_context(Cluster()) if hosts_there else None
        plan = (
            reporting_studies(asked.seed, hosts=hosts_there, first=asked.first, kills=asked.kills_per_study)
            if asked.reports
            else studies(asked.seed, hosts=hosts_there, disk=fills, first=asked.first, kills=asked.kills_per_study)
        )
        for planned in plan:
            if done >= asked.kills:
                break
            planned = replace(planned, kills=planned.kills[: asked.kills - done])
            directory = Path(tempfile.mkdtemp(prefix="rb-faults-", dir="/tmp"))
            try:
                report = run(planned, directory, cluster, small, asked.source.absolute())
            except KeyboardInterrupt:
                print(f"{planned.number:5d}  was interrupted, and does not count")
                break
            reports.append(report)
            done += report.kills.total()
            print(_line(report), flush=True)
            if report.complaints:
                print("".join(f"       {each}\n" for each in report.complaints) + f"       kept in {directory}")
            else:
                shutil.rmtree(directory)
        joined = None if cluster is None else cluster.joined
        built = 0 if cluster is None else cluster.built
    for report in reports:
        if report.later is not None and (left := look_for_processes(report.later)):
            report.complaints += left
            print("".join(f"study {report.planned.number}: {each}\n" for each in left))
    places = Place if hosts_there else [Place.OWN]
    if asked.reports:
        possible = {k for place in places for rule in REPORTED_TO for k in kinds_where_trials_report(place, rule)}
    else:
        possible = {kind for place in places for kind in kinds_at(place, disk=fills)}
    print(table(reports, possible, joined, built, time.monotonic() - begun))
    return 1 if any(report.complaints for report in reports) else 0


def strike(count: int, seed: int, record: Path | None, minutes: float | None, source: Path) -> int:
    """Strike with signals so often in all, print what is wrong and a summary by cell; 1 if anything is."""
    done = [] if record is None or not record.exists() else [json.loads(line) for line in record.open()]
    end = math.inf if minutes is None else time.monotonic() + 60 * minutes
    numbers = {line["number"] for line in done}
    plan = (each for each in strikes(seed) if each.number not in numbers)
    while len(done) < count and time.monotonic() < end:
        planned = list(islice(plan, min(signals.A_SESSION, count - len(done))))
        directory = Path(tempfile.mkdtemp(prefix="rb-signals-", dir="/tmp"))
        lines = []
        try:
            for struck in signals.run_session(Session(directory, seed, source), planned, end):
                lines.append(json.loads(struck.to_json()))
                told = struck.missed or "; ".join(struck.complaints) or "as promised"
                print(
                    f"{struck.strike.number:5d}  {struck.strike.cell!s:70s} {struck.seconds:6.1f} s  {told}", flush=True
                )
        except KeyboardInterrupt:
            print("interrupted; this study does not count")
            break
        done += lines
        if record is not None:  # a study counts as a whole, with the checks at its end
            with record.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        if any(line["complaints"] for line in lines):
            print(f"       kept in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print(signals.summary(done))
    return 1 if any(line["complaints"] for line in done) else 0


def strike_ranks(count: int, seed: int, record: Path | None, minutes: float | None) -> int:
    """Strike ranks so often in all, print what is wrong and a summary; 1 if anything is."""
    done = [] if record is None or not record.exists() else [json.loads(line) for line in record.open()]
    end = None if minutes is None else time.monotonic() + 60 * minutes
    with local_ray() as ray, contextlib.suppress(KeyboardInterrupt):
        for planned in islice(ranks.strikes(seed, first=len(done)), max(0, count - len(done))):
            if end is not None and time.monotonic() > end:
                break
            with tempfile.TemporaryDirectory(prefix="rb-ranks-", dir="/tmp") as directory:
                struck = ranks.strike(planned, Path(directory), ray)
            told = "; ".join(struck.complaints) or "as promised"
            print(f"{planned.number:5d}  {planned!s:55s} {struck.seconds:6.1f} s  {told}", flush=True)
            done.append(json.loads(struck.to_json()))
            if record is not None:
                with record.open("a", encoding="utf-8") as file:
                    file.write(struck.to_json() + "\n")
    print(ranks.summary(done))
    return 1 if any(line["complaints"] for line in done) else 0


def _line(report: Report) -> str:
    planned = report.planned
    return (
        f"{planned.number:5d}  {planned.place:31s}  {planned.method:11s}  {_rule(planned):17s}  "
        f"{report.kills.total():5d}  {report.seconds:4.0f}  {len(report.complaints) or 'none'}"
    )


def _rule(planned: PlannedStudy) -> str:
    """Say in words what ends the study's trials early."""
    if planned.scheduler is None:
        return "none" if planned.reports else "no reports"
    name, options = planned.scheduler
    return f"{name}, {variant}" if (variant := options.get("variant")) else name


def table(reports: list[Report], possible: set[Kind], joined: int | None, built: int, seconds: float) -> str:
    kills = sum((report.kills for report in reports), Counter[Kind]())
    wrong = Counter(complaint.wrong for report in reports for complaint in report.complaints)
    places = Counter(report.planned.place for report in reports)
    methods = Counter(report.planned.method for report in reports)
    schedulers = Counter(_rule(report.planned) for report in reports)
    kinds = [kind for kind in Kind if kind in possible or kind not in (*AT_A_STEP, *WHILE_PAUSED)]
    retried = sum((report.retried for report in reports), Counter[str]())
    again = sum((report.again for report in reports), Counter[str]())
    rows = [
        f"{kills.total()} kills in {len(reports)} studies, {seconds / 60:.1f} minutes",
        *_rows("where", {place: places[place] for place in Place}, "studies"),
        *_rows("method", dict(methods.most_common()), "studies"),
        *_rows("scheduler", dict(schedulers.most_common()), "studies"),
        *_rows("killed", {kind: kills[kind] if kind in possible else "not possible here" for kind in kinds}),
        *_rows("", {"nodes that joined": "not possible here" if joined is None else joined}),
        *(_rows("", {"clusters built again": built}) if built else []),
        *_rows("commands given again because", dict(again.most_common())),
        *_rows("trials run again because", dict(retried.most_common())),
        *_rows("complaints", {each: wrong[each] for each in Wrong}),
    ]
    rows.append("\nfrom the kill to the next trial begun")
    for kind in (Kind.ACTOR, Kind.RAYLET, Kind.GCS):
        for place in Place:
            here = [report for report in reports if report.planned.place is place]
            times = [seconds for report in here for what, seconds in report.recoveries if what is kind]
            if times:
                median, longest, name = statistics.median(times), max(times), f"{kind}, {place}"
                rows.append(f"  {name:45s} {median:.1f} s median, {longest:.1f} s longest, of {len(times)}")
    return "\n" + "\n".join(rows)


def _rows(title: str, counts: dict[object, object], unit: str = "") -> list[str]:
    heading = [f"\n{title}" + (f" ({unit})" if unit else "")] if title else []
    return heading + [f"  {name!s:34s} {count}" for name, count in counts.items()]


if __name__ == "__main__":
    sys.exit(main())
