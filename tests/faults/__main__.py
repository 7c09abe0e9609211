"""python -m tests.faults --kills 200 --seed 1: as many kills as asked, study after study, and a table of it."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.faults.harness import run

KILLS_A_STUDY = 12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    kills: Counter[str] = Counter()
    complaints, recoveries, seed = 0, [], asked.seed
    print(f"{'study':>5s}  {'method':10s}  {'kills':>5s}  {'complaints'}")
    while kills.total() < asked.kills:
        with tempfile.TemporaryDirectory(prefix="rb-faults-") as directory:
            report = run(Path(directory), seed, min(KILLS_A_STUDY, asked.kills - kills.total()))
        kills += report.kills
        recoveries += report.recoveries
        complaints += len(report.complaints)
        said = "; ".join(report.complaints) or "none"
        print(f"{seed:5d}  {report.method:10s}  {report.kills.total():5d}  {said}", flush=True)
        seed += 1
    print()
    for name, count in kills.most_common():
        print(f"{count:5d}  {name}")
    if recoveries:
        print(f"from the kill of an actor to the next trial begun: {statistics.median(recoveries):.1f} s (median)")
    print(f"{kills.total()} kills in {seed - asked.seed} studies: {complaints} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
