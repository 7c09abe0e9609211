"""python -m tests.adversary --minutes 60 --seed 1: attack after attack, and a table of what was tried."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from random import Random

from tests.adversary import api, command_lines, journals, orders, other_user, spaces, studies, trials
from tests.adversary.faults import Attack, Case, a_ray

ATTACKS: dict[str, Attack] = {
    "command lines": command_lines.attack,
    "spaces": spaces.attack,
    "calls of the API": api.attack,
    "studies in this process": studies.attack,
    "orders of ask and tell": orders.attack,
    "damaged journals": journals.attack_damage,
    "forged journals": journals.attack_forgery,
    "two writers": journals.attack_two_writers,
    "links planted by another user": other_user.attack_planted,
    "our Ray, seen by another user": other_user.attack_ray,
    "strange trials": trials.attack,
}
ROOT = ("links planted by another user", "our Ray, seen by another user")
NEEDS_RAY = ("strange trials",)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(ATTACKS), action="append", help="this attack; repeatable")
    parser.add_argument("--case", type=int, help="this case of it alone")
    asked = parser.parse_args()
    names = [name for name in asked.only or ATTACKS if name not in ROOT or other_user.are_possible()]
    seconds, tried, faults = Counter[str](), Counter[str](), Counter[str]()
    begun, number = time.monotonic(), asked.case or 0
    while time.monotonic() - begun < 60 * asked.minutes:
        for name in names:
            if asked.case is None and seconds[name] > 2 * min(seconds[each] for each in names) + 1:
                continue  # each attack has about the same time
            since = time.monotonic()
            case = run(name, asked.seed, number)
            seconds[name] += time.monotonic() - since
            tried[name] += case.tried
            faults[name] += len(case.faults)
            for fault in case.faults:
                print(f"{name}, seed {asked.seed}, case {number}: {case.what}\n    {fault}", flush=True)
        number += 1
        if asked.case is not None:
            break
    print(table(names, seconds, tried, faults))
    return 1 if faults.total() else 0


def run(name: str, seed: int, number: int) -> Case:
    """One case of an attack, in an empty directory that is removed afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="rb-adversary-"))
    try:
        with a_ray(2) if name in NEEDS_RAY else contextlib.nullcontext():
            return ATTACKS[name](Random(zlib.crc32(f"{name} {seed} {number}".encode())), directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def table(names: list[str], seconds: Counter[str], tried: Counter[str], faults: Counter[str]) -> str:
    rows = [f"{'attack':32s} {'tried':>8s} {'faults':>7s} {'seconds':>8s}"]
    rows += [f"{name:32s} {tried[name]:8d} {faults[name]:7d} {seconds[name]:8.0f}" for name in names]
    rows.append(f"{'in all':32s} {tried.total():8d} {faults.total():7d} {seconds.total():8.0f}")
    left = [name for name in ATTACKS if name not in names]
    return "\n".join(["", *rows, *([f"not tried: {', '.join(left)}"] if left else [])])


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
