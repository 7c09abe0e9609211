"""Processes that a trial forks are processes like any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FORKS = """
import os, signal, sys, time
from raybo.engine.ray.signals import end_on_sigterm
from raybo.engine.trial.child_processes import isolate_child_processes

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # as Ray's workers have it
end_on_sigterm()
isolate_child_processes()
{more}
for _ in range(200):
    child = os.fork()
    if child == 0:
        time.sleep({lives})
        os._exit(0)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.parametrize(
    ("more", "lives", "ends"),
    [("", 60, -15), ("signal.signal(signal.SIGTERM, lambda number, frame: None)", 0.001, 0)],
    ids=["with Ray's handler", "with the user's"],
)
def test_forked_process_ends_on_an_early_SIGTERM(more, lives, ends):
    """With a handler in Python, as Ray's is, one of 200 would live on: Python forgets it as it prepares a process."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    text = FORKS.format(more=more, lives=lives)
    ran = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=50)
    assert set(ran.stdout.split()) == {str(ends)}, ran.stderr
    assert len(ran.stdout.split()) == 200
    assert ran.returncode == (0 if more else -15)  # a handler of the user's stays
