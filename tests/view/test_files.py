"""A trial's files are read without leaving its directory, whatever is asked for and whatever links are there."""

from __future__ import annotations

import base64
import os

import pytest

from raybo.view.files import listed, opened
from tests.reporting.studies import run
from tests.view.served import BEARER, address, asking, keep


def key(*parts):
    return base64.urlsafe_b64encode(b"/".join(os.fsencode(part) for part in parts)).decode()


@pytest.fixture
def directory(tmp_path):
    """A trial's directory beside a secret, with links that lead there."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.txt").write_text("secret")
    place = tmp_path / "s.trials" / "0"
    (place / "deep" / "er").mkdir(parents=True)
    (place / "model.bin").write_bytes(b"model")
    (place / "deep" / "er" / "a b.txt").write_text("deep")
    (place / "link.txt").symlink_to("../../secret.txt")
    (place / "away").symlink_to(tmp_path / "elsewhere")
    (place / "loop").symlink_to(".")
    os.mkfifo(place / "pipe")
    return place


def test_files_are_listed_and_links_are_not(directory):
    assert [b"/".join(left.parts).decode() for left in listed(directory)] == ["deep/er/a b.txt", "model.bin"]
    assert listed(directory / "none") == []
    (directory.parent / "1").symlink_to(directory)
    assert listed(directory.parent / "1") == []  # nor is a trial's directory that is a link


def test_what_is_listed_can_be_read(directory):
    for left in listed(directory):
        with opened(directory, left.key) as (file, name):
            assert len(file.read()) == left.size
            assert name == os.fsdecode(left.parts[-1])


@pytest.mark.parametrize(
    "requested",
    [
        key("..", "..", "secret.txt"),
        key("link.txt"),
        key("away", "secret.txt"),
        key("loop", "model.bin"),
        key("deep", "..", "model.bin"),
        key(".", "model.bin"),
        key("", "etc", "passwd"),
        key("/etc/passwd"),
        key("pipe"),
        key("deep"),
        key("none"),
        key("model.bin", ""),
        key("model.bin\0"),
        key(*["deep"] * 40),
        "",
        "not base64!",
        "é",
    ],
)
def test_only_listed_files_are_served(directory, requested):
    with pytest.raises(FileNotFoundError), opened(directory, requested):
        pass
    path = keep(run("random", 3), directory.parents[1] / "s.db")

    async def question(client):
        answer = await client.get(address(path, "/trials/0/file"), params={"key": requested}, headers=BEARER)
        assert answer.status == 404
        assert "secret" not in await answer.text()
        for raw in ("/page/../server.py", "/page/%2e%2e/server.py", "/page/..%2fserver.py", "/page//etc/passwd"):
            assert (await client.get(raw, headers=BEARER)).status == 404

    asking(path)(question)


def test_many_files_are_cut_short(tmp_path):
    from raybo.view.files import MOST

    for i in range(MOST + 50):
        (tmp_path / f"{i}").touch()
    assert len(listed(tmp_path)) == MOST
