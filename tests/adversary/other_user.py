"""Another user of the same machine: what he plants where we write, and what he can reach of our Ray.

He is the user `nobody`, in processes of his own that have given up all rights; so these attacks need root.
"""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

import raybo
from raybo.common.errors import RayboError
from raybo.journal import Journal
from raybo.record.description import Description
from raybo.record.goals import Goals
from tests.adversary.faults import Case, a_ray, last_lines, run_command
from tests.adversary.journals import SPACE, lay, original

NOBODY = 65534
SECRET = b"what the victim keeps"


def are_possible() -> bool:
    """Return True if a process here may become another user."""
    return os.geteuid() == 0


def attack_planted(rng: Random, directory: Path) -> Case:
    """In a directory that everybody may write, he has put links where we are going to write."""
    shared, own = directory / "shared", directory / "own"
    shared.mkdir()
    own.mkdir(mode=0o700)
    directory.chmod(0o755)
    shared.chmod(0o777)  # not sticky: a system's protection of links is not what is tried
    victim = own / "victim"
    victim.write_bytes(SECRET)
    where = rng.choice(
        ["j.db-lock", "j.db-wal", "j.db-shm", "j.db-journal", "j.db", "out.csv", "out.csv.tmp", "j.db-ack"]
    )
    as_nobody(lambda: os.symlink(victim, shared / where))
    case = Case(f"a link in the place of {where}")
    try:
        if where.startswith("out"):
            lay(original(open_log=False), own)
            run_command(["export", str(own / "study.db"), "--to", "csv", "-o", str(shared / "out.csv")], own)
            if where != "out.csv" and victim.read_bytes() != SECRET:  # a link that is named is followed, on purpose
                case.faults.append("the victim's file was written")
        else:
            space = raybo.Space(SPACE)
            Journal(shared / "j.db", Description("job", Goals(("loss",), ("min",)), space, "ei", 1)).close()
            if victim.read_bytes() != SECRET:
                case.faults.append("the victim's file was written")
    except RayboError:
        if victim.read_bytes() != SECRET:
            case.faults.append("refused, and the victim's file was written all the same")
    except Exception:  # the fault that is looked for
        case.faults.append(last_lines(traceback.format_exc()))
    return case


def attack_ray(rng: Random, directory: Path) -> Case:
    """While our Ray runs, he looks for anything of it that he could list or enter; and nothing of it stays behind."""
    case = Case("our Ray's files")
    with a_ray(1):
        import ray

        session = Path(ray._private.worker._global_node.get_session_dir_path())
        above = [path for path in session.parents if path.is_relative_to(tempfile.gettempdir())][:-1]
        places = [session, session / "sockets", *above]
        outermost = above[-1]

        def enter() -> list[str]:
            return [str(path) for path in places if os.access(path, os.R_OK) or os.access(path, os.X_OK)]

        case.faults += [f"{path} can be reached by others" for path in as_nobody(enter)]
        case.tried = len(places)
    if outermost.exists():
        case.faults.append(f"{outermost} is left behind")
    return case


def as_nobody(do: Callable[[], list[str] | None]) -> list[str]:
    """Do it in a process of the other user; the lines that it returns."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(write, "\n".join(do() or []).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        text = answer.read().decode()
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("the other user's process failed")
    return text.splitlines()
