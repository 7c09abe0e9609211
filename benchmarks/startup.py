"""Seconds to import raybo and to print its help: the median of several fresh processes.

`import raybo` is measured inside the process, from before the import to its end; `raybo --help` from outside, the
interpreter's own start included.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.figures import Figure, Figures, at_most, command

QUICK = {"rounds": 5}
IMPORT = "import time; t = time.perf_counter(); import raybo; print(time.perf_counter() - t)"
SPACE = "import time; t = time.perf_counter(); from raybo import Searcher, Space; print(time.perf_counter() - t)"


def inside(code: str) -> float:
    """Seconds that a program prints."""
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def whole(*arguments: str) -> float:
    """Seconds of a whole process."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - begun


def figures(rounds: int = 15) -> Figures:
    """The import, and the command."""
    yield at_most(0.3, statistics.median(inside(IMPORT) for _ in range(rounds)), "import raybo", "s")
    seconds = statistics.median(inside(SPACE) for _ in range(rounds))
    yield Figure("from raybo import Searcher, Space, which loads numpy", f"{seconds:.2f} s")
    command_line = ("-c", "from raybo.cli import main; main()", "--help")
    yield at_most(0.5, statistics.median(whole(*command_line) for _ in range(rounds)), "raybo --help", "s")


if __name__ == "__main__":
    command(figures)
