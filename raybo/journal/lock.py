"""The one writer: a lock on a file beside the journal, which names its holder."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from raybo.errors import JournalError, JournalInUse

WAIT_SECONDS = 15.0  # for a writer whose driver is gone to disappear too: Ray takes up to eight seconds to notice


def in_use(path: Path | str) -> bool:
    """Whether a process is writing the journal."""
    path = Path(path)
    try:
        with open(path.with_name(path.name + "-lock"), encoding="utf-8") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # given back as the file is closed
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def acquire(path: Path, driver: int) -> TextIO:
    """The lock file, held; it names its holder. Waits only for a holder whose driver is dead already."""
    lock_path = path.with_name(path.name + "-lock")
    give_up = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            handle = open(lock_path, "a+", encoding="utf-8")  # held for as long as the journal is open
        except OSError as error:
            raise JournalError(f"{path}: it cannot be locked ({error}); use a directory that can be written") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.seek(0)
            text = handle.read()
            handle.close()
            holder = json.loads(text) if text.endswith("}") else {}
            if not (_driver_is_gone(holder) or _is_superseded(holder, driver)) or time.monotonic() > give_up:
                raise JournalInUse(
                    f"{path}: another study is writing it (process {holder.get('driver', '?')} on "
                    f"{holder.get('host', '?')}); wait for it to end, or use another file"
                ) from None
            time.sleep(0.1)
            continue
        try:
            if os.fstat(handle.fileno()).st_ino == os.stat(lock_path).st_ino:
                break
        except FileNotFoundError:
            pass
        handle.close()  # its last holder removed it while we waited: lock the new one
    handle.truncate(0)
    json.dump({"driver": driver, "process": os.getpid(), "host": socket.gethostname()}, handle)
    handle.flush()
    return handle


def release(handle: TextIO) -> None:
    """Give the lock back, and leave no file."""
    Path(handle.name).unlink(missing_ok=True)
    handle.close()


def _is_superseded(holder: Mapping[str, Any], driver: int) -> bool:
    """Whether this very driver has begun the holder's process, and another in its place: its Ray died under it."""
    here = holder.get("host") == socket.gethostname()
    return here and holder.get("driver") == driver and holder.get("process") != driver


def _driver_is_gone(holder: Mapping[str, Any]) -> bool:
    if not holder:  # just being written: look again
        return True
    if holder.get("host") != socket.gethostname():  # nothing can be known of another machine's processes
        return False
    try:
        os.kill(holder["driver"], 0)
        # one that was killed and that nobody has asked after is still there, as a zombie
        state = Path(f"/proc/{holder['driver']}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except (OSError, IndexError):  # another user's, or a system without /proc
        return False
    return state == "Z"
