"""python -m tests.faults --kills 200 --seed 1: as many kills as asked, study after study, and a table of it."""

from __future__ import annotations

import argparse
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tests.engine import hosts
from tests.faults.checks import Wrong
from tests.faults.cluster import Cluster
from tests.faults.harness import Report, look_for_processes, run
from tests.faults.plan import ON_NODES, Kind, Place, studies
from tests.faults.running import HERE

NO_HOSTS = "network namespaces are not possible here (they need root and `ip`): no nodes are killed or cut off"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-hosts", action="store_true", help="do without a cluster of several hosts")
    parser.add_argument("--source", type=Path, default=HERE, help="the clone whose raybo is killed; default: this one")
    asked = parser.parse_args()
    for how in (signal.SIGINT, signal.SIGTERM):  # also in the background, where a shell has them ignored
        signal.signal(how, signal.default_int_handler)
    possible = hosts.are_possible() and not asked.no_hosts
    if not possible:
        print(NO_HOSTS)
    begun, reports, done = time.monotonic(), [], 0
    print(f"{'study':>5s}  {'where':31s}  {'method':11s}  {'kills':>5s}  {'s':>4s}  complaints")
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster()) if possible else None
        for planned in studies(asked.seed, hosts=possible):
            if done >= asked.kills:
                break
            planned = replace(planned, kills=planned.kills[: asked.kills - done])
            directory = Path(tempfile.mkdtemp(prefix="rb-faults-", dir="/tmp"))
            report = run(planned, directory, cluster, asked.source.absolute())
            reports.append(report)
            done += report.kills.total()
            print(_line(report), flush=True)
            if report.complaints:
                print("".join(f"       {each}\n" for each in report.complaints) + f"       kept in {directory}")
            else:
                shutil.rmtree(directory)
        joined = None if cluster is None else cluster.joined
    for report in reports:
        if report.later is not None and (left := look_for_processes(report.later)):
            report.complaints += left
            print("".join(f"study {report.planned.number}: {each}\n" for each in left))
    print(table(reports, joined, time.monotonic() - begun))
    return 1 if any(report.complaints for report in reports) else 0


def _line(report: Report) -> str:
    planned = report.planned
    return (
        f"{planned.number:5d}  {planned.place:31s}  {planned.method:11s}  {report.kills.total():5d}  "
        f"{report.seconds:4.0f}  {len(report.complaints) or 'none'}"
    )


def table(reports: list[Report], joined: int | None, seconds: float) -> str:
    kills = sum((report.kills for report in reports), Counter[Kind]())
    wrong = Counter(complaint.wrong for report in reports for complaint in report.complaints)
    places = Counter(report.planned.place for report in reports)
    methods = Counter(report.planned.method for report in reports)
    retried = sum((report.retried for report in reports), Counter[str]())
    rows = [
        f"{kills.total()} kills in {len(reports)} studies, {seconds / 60:.1f} minutes",
        *_rows("where", {place: places[place] for place in Place}, "studies"),
        *_rows("method", dict(methods.most_common()), "studies"),
        *_rows("killed", {k: "not possible here" if joined is None and k in ON_NODES else kills[k] for k in Kind}),
        *_rows("", {"nodes that joined": "not possible here" if joined is None else joined}),
        *_rows("trials run again because", dict(retried.most_common())),
        *_rows("complaints", {each: wrong[each] for each in Wrong}),
    ]
    rows.append("\nfrom the kill of the study actor to the next trial begun")
    for where, places_there in [*((str(place), {place}) for place in Place), ("anywhere", set(Place))]:
        times = [time for report in reports if report.planned.place in places_there for time in report.recoveries]
        if times:
            median, longest = statistics.median(times), max(times)
            rows.append(f"  {where:34s} {median:.1f} s median, {longest:.1f} s longest, of {len(times)}")
    return "\n" + "\n".join(rows)


def _rows(title: str, counts: dict[object, object], unit: str = "") -> list[str]:
    heading = [f"\n{title}" + (f" ({unit})" if unit else "")] if title else []
    return heading + [f"  {name!s:34s} {count}" for name, count in counts.items()]


if __name__ == "__main__":
    sys.exit(main())
