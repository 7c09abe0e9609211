"""The losses when drivers, study actors, workers and nodes are killed: a run of the fault harness, `tests/faults`.

Complaints are what its checks find wrong after each study: a result lost or doubled, a finished trial run again, a
study that hangs, a process that is left. Recovery is from the kill of a study's actor to the next trial that begins.
"""

from __future__ import annotations

import re
import subprocess
import sys

from benchmarks.figures import Figure, Figures, command

QUICK = {"kills": 5}
IN_BRIEF = {"kills": 40}
RECOVERED = "from the kill to the next trial begun"


def recoveries(said: str) -> list[tuple[str, str]]:
    """Return where studies ran, and how long recovery took there, from the last lines of the harness."""
    return re.findall(r"^  (\S.*?) {2,}(\d.*)$", said.partition(RECOVERED)[2], re.MULTILINE)


def figures(kills: int = 200, seed: int = 1) -> Figures:
    """Kills and complaints, and the times of recovery."""
    arguments = [sys.executable, "-m", "tests.faults", "--kills", str(kills), "--seed", str(seed)]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
    done = re.search(r"^\d+ kills in .*$", ended.stdout, re.MULTILINE)
    if done is None:
        raise RuntimeError(f"the fault harness came to no end:\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}")
    text = f"{done[0]}, {'no complaints' if ended.returncode == 0 else 'with complaints'}"
    is_met = ended.returncode == 0 and not done[0].startswith("0 kills")  # it may have been broken off
    yield Figure("studies that are killed", text, "no complaints", is_met)
    for where, measured in recoveries(ended.stdout):
        yield Figure(f"{RECOVERED}, {where}", measured)


if __name__ == "__main__":
    command(figures)
