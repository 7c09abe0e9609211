"""What lies beside a journal: the directories of its trials."""

from __future__ import annotations

import os
from pathlib import Path

OUTPUT = "output.txt"  # in a trial's directory: the last of what it printed


def trial_directory(journal: Path | str, number: int) -> Path:
    """Where a trial's own files are: `FILE.trials/NUMBER` beside `FILE.db`, by whatever link that is named."""
    path = Path(os.path.realpath(journal))
    return path.with_name(f"{path.name.removesuffix('.db')}.trials") / str(number)
