"""Other users of the machine, and files lying about on it, harm neither a study nor its user's files."""

from __future__ import annotations

import logging
import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from raybo.engine import temporary_directories
from raybo.engine.ray import auth_token, connection
from raybo.engine.temporary_directories import LOCK, private_directory, remove_leftovers

NOBODY = 65534  # a user who owns nothing
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user can be played by root only")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A directory of this test's own in the place of /tmp."""
    monkeypatch.setattr(temporary_directories, "TEMPORARY", str(tmp_path))
    return tmp_path


def abandoned(temporary, *, kill=True):
    """The directory of a process that was killed, with something in it; or with one that lives, and that process."""
    script = textwrap.dedent(
        f"""
        import sys, time
        from raybo.engine import temporary_directories
        temporary_directories.TEMPORARY = {str(temporary)!r}
        with temporary_directories.private_directory() as directory:
            (directory / "ray" / "session").mkdir(parents=True)
            (directory / "ray" / "log").write_text("x")
            print(directory, flush=True)
            time.sleep(100)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    directory = Path(process.stdout.readline().strip())
    assert directory.parent == temporary  # an empty line would name this directory, whose owner a test changes
    if kill:
        process.kill()
        process.wait()
        process.stdout.close()
    return directory, process


# ---- directories


def test_study_directory_is_private_and_removed_afterwards(temporary):
    with private_directory() as directory:
        assert directory.parent == temporary
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        (directory / "ray").mkdir(mode=0o777)
        (directory / "link").symlink_to(temporary)
    assert list(temporary.iterdir()) == []


@as_root
def test_another_user_gets_nowhere_in_it(monkeypatch):
    with tempfile.TemporaryDirectory(prefix="rb-", dir="/tmp") as above:  # pytest's own is closed to them anyway
        os.chmod(above, 0o755)
        monkeypatch.setattr(temporary_directories, "TEMPORARY", above)
        with private_directory() as directory:
            sockets = directory / "ray" / "sockets"
            sockets.mkdir(parents=True)
            for each in sockets.parent, sockets:
                each.chmod(0o777)  # as Ray does
            (sockets / "raylet").touch()
            steal = ["mv", str(sockets / "raylet"), str(sockets / "old")]
            theirs = subprocess.run(steal, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True)
            assert "Permission denied" in theirs.stderr
            assert (sockets / "raylet").exists()


@pytest.mark.parametrize("fails", ["mkdtemp", "_locked"])
def test_full_disk_is_an_error_without_leftovers(temporary, monkeypatch, fails):
    def full(*_args, **_named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(temporary_directories.tempfile if fails == "mkdtemp" else temporary_directories, fails, full)
    with pytest.raises(
        temporary_directories.RayError,
        match=r"can be made there \(No space left on device\); make it writable, with room",
    ):
        private_directory().__enter__()
    assert list(temporary.iterdir()) == []


def test_next_study_removes_leftovers_of_a_killed_one(temporary):
    directory, _ = abandoned(temporary)
    assert (directory / "ray" / "session").is_dir()
    with private_directory() as mine:
        assert list(temporary.iterdir()) == [mine]


def test_interrupted_removal_is_finished_later(temporary, monkeypatch):
    directory, _ = abandoned(temporary)
    with monkeypatch.context() as patch:
        patch.setattr(temporary_directories.shutil, "rmtree", lambda path, ignore_errors: None)
        remove_leftovers(str(temporary))
    assert (directory / LOCK).exists()
    remove_leftovers(str(temporary))
    assert not directory.exists()


def test_a_living_study_keeps_its_directory(temporary):
    directory, process = abandoned(temporary, kill=False)
    with private_directory():
        assert (directory / "ray" / "log").read_text() == "x"
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert not directory.exists()


@as_root
def test_live_study_in_another_container_keeps_its_directory(temporary):
    """Its process has a number there that nobody has here, and the other way round."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces of processes here")
    directory, process = abandoned(temporary, kill=False)
    script = f"from raybo.engine.temporary_directories import remove_leftovers; remove_leftovers({str(temporary)!r})"
    subprocess.run([*unshare, sys.executable, "-c", script], check=True)
    assert directory.exists()
    process.kill()
    process.communicate()
    subprocess.run([*unshare, sys.executable, "-c", script], check=True)
    assert not directory.exists()


def test_directory_remade_by_a_dying_ray_is_removed(temporary):
    for name in ("of_the_l", "with_log", "in_use_x", "else_in_"):
        (temporary / f"raybo-12-{name}" / "ray" / "session_1" / "logs" / "old").mkdir(parents=True)
    (temporary / "raybo-12-of_the_l" / "ray" / "session_latest").symlink_to("session_1")
    (temporary / "raybo-12-with_log" / "ray" / "session_1" / "logs" / "file").touch()
    (temporary / "raybo-12-else_in_" / "ray" / "mine").touch()
    (temporary / "raybo-12-mine").mkdir()
    with (temporary / "raybo-12-in_use_x" / "ray" / "session_1" / "logs" / "file").open("w"):
        remove_leftovers(str(temporary))
    left = sorted(path.name for path in temporary.iterdir())
    assert left == ["raybo-12-else_in_", "raybo-12-in_use_x", "raybo-12-mine"]


def test_what_is_only_called_so_is_left_alone(temporary):
    names = ["raybo-20261121-results", f"raybo-{'9' * 20}-x", "raybo-²-x", "raybo-0-x", "raybo--x", "raybo-\udcff-x"]
    for name in names:
        (temporary / name).mkdir()
        (temporary / name / "kept").touch()
    (temporary / "raybo-999999-dangling").symlink_to(temporary / "nowhere")
    (temporary / "raybo-999999-file").write_text("x")
    os.mkfifo(temporary / "raybo-999999-fifo")
    fifo = temporary / "raybo-999999-with-a-fifo"
    fifo.mkdir()
    os.mkfifo(fifo / LOCK)
    before = sorted(temporary.rglob("*"))
    remove_leftovers(str(temporary))
    assert sorted(temporary.rglob("*")) == before


def test_links_are_not_followed_to_what_they_name(temporary):
    kept = temporary / "kept"
    kept.mkdir()
    (kept / LOCK).touch()
    (temporary / "raybo-1-abc").symlink_to(kept)
    linked = temporary / "raybo-2-abc"
    linked.mkdir()
    (linked / LOCK).symlink_to(kept / LOCK)
    remove_leftovers(str(temporary))
    assert (kept / LOCK).exists()
    assert linked.exists()


@as_root
def test_another_users_leftovers_are_not_ours_to_remove(temporary):
    directory, _ = abandoned(temporary)
    os.chown(directory, NOBODY, NOBODY)
    remove_leftovers(str(temporary))
    assert (directory / "ray" / "log").exists()


def test_four_studies_can_start_at_once(temporary):
    script = textwrap.dedent(
        f"""
        import sys
        from raybo.engine import temporary_directories
        sys.stdin.read()
        temporary_directories.TEMPORARY = {str(temporary)!r}
        with temporary_directories.private_directory() as directory:
            (directory / "ray").mkdir()
        """
    )
    for _ in range(3):
        for _ in range(3):
            abandoned(temporary)
        starts = [
            subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(4)
        ]
        for start in starts:
            assert start.stdin is not None
            start.stdin.close()
        for start in starts:
            assert start.stderr is not None
            assert start.stderr.read() == b""
            start.stderr.close()
            assert start.wait() == 0
        assert list(temporary.iterdir()) == []


@pytest.mark.ray
@pytest.mark.slow
def test_own_ray_is_out_of_others_reach(temporary):
    """Run in a process of its own, which is connected to no other Ray."""
    script = textwrap.dedent(
        """
        import os, stat
        from raybo.engine.ray.connection import ray_for_study

        with ray_for_study(None, 1) as ray:
            path = ray._private.worker._global_node.raylet_socket_name
            above, reached = [], "/"
            for part in os.path.dirname(path).split("/")[1:]:
                reached = os.path.join(reached, part)
                above.append(stat.S_IMODE(os.stat(reached).st_mode))
            print([oct(mode) for mode in above[1:2]], len(path) < 107)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[-2] == "['0o700'] True", done.stdout


# ---- Ray's token


class Loader:
    """Ray's own, of a user who has no token, or one."""

    def __init__(self, has_token=False):
        self.known = has_token

    def instance(self):
        return self

    def has_token(self, ignore_auth_mode):
        return self.known

    def reset_cache(self):
        self.known = None


class RayWith:
    def __init__(self, loader):
        self._raylet = type("raylet", (), {"AuthenticationTokenLoader": loader})


@pytest.fixture
def home(tmp_path, monkeypatch):
    tmp_path.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    return tmp_path


def test_new_token_is_readable_by_its_user_alone(home):
    before = os.umask(0)
    try:
        auth_token.make_token(RayWith(loader := Loader()))
    finally:
        os.umask(before)
    token = home / ".ray" / "auth_token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700
    assert [path.name for path in token.parent.iterdir()] == ["auth_token"]
    assert len(token.read_text()) == 64
    assert loader.known is None  # Ray looks again


def test_a_token_that_is_there_stays(home):
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text("mine")
    auth_token.make_token(RayWith(Loader(has_token=True)))
    auth_token.make_token(RayWith(Loader()))  # it was made just now, by another start
    assert (home / ".ray" / "auth_token").read_text() == "mine"


def test_without_authentication_no_token_is_made(home, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    auth_token.make_token(RayWith(Loader()))
    assert list(home.iterdir()) == []


def test_ray_release_without_tokens_still_starts(home, caplog):
    old = type("ray", (), {"_raylet": object(), "__version__": "2.50.0"})
    auth_token.make_token(old)
    assert "Ray 2.50.0 has no tokens" in caplog.text
    assert list(home.iterdir()) == []
    connection._check_token(old, "127.0.0.1:6379")  # and nothing is asked of a cluster


def test_unwritable_token_is_an_error(home):
    (home / ".ray").write_text("")
    with pytest.raises(auth_token.RayError, match="Ray's token cannot be written"):
        auth_token.make_token(RayWith(Loader()))


@pytest.mark.parametrize(
    ("mode", "above", "open_"), [(0o644, 0o755, True), (0o600, 0o755, False), (0o644, 0o700, False)]
)
def test_readable_token_is_warned_of_and_left(home, monkeypatch, caplog, mode, above, open_):
    token = home / ".ray" / "auth_token"
    token.parent.mkdir()
    token.write_text("mine")
    token.chmod(mode)
    home.chmod(above)
    reaches = auth_token.Path.stat
    seen = [home, *token.parents[:1], token]
    # what is above the test's own directory is the machine's
    monkeypatch.setattr(
        auth_token.Path, "stat", lambda path: reaches(path) if path in seen else os.stat_result((0o755, *[0] * 9))
    )
    with caplog.at_level(logging.WARNING, "raybo"):
        auth_token.warn_of_open_token()
    assert [record.getMessage() for record in caplog.records] == open_ * [
        f"{token} can be read by other users of this machine, who could use your Ray; run chmod 600 {token}"
    ]
    assert stat.S_IMODE(token.stat().st_mode) == mode
