"""`raybo view` prints its address, refuses wrong use, and serves everything that the page loads."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from importlib import resources

import pytest
from click.testing import CliRunner

from raybo.cli.viewing import view
from raybo.common.errors import JournalError, MissingExtra, install_command
from raybo.view.server import PAGE
from tests.reporting.studies import run
from tests.view.served import BEARER, asking, keep


def test_view_prints_its_address_and_obeys_ctrl_c(tmp_path):
    import signal

    path = keep(run("random", 4), tmp_path / "s.db")
    command = [sys.executable, "-m", "raybo.cli", "view", str(path), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = server.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{40,}", address)
    finally:
        server.send_signal(signal.SIGINT)
        server.stdout.close()
        assert server.wait(60) == 130


def test_what_is_no_journal_is_refused(tmp_path):
    for place, why in ((tmp_path / "none.db", "no such file"), (tmp_path, "no journal")):
        result = CliRunner().invoke(view, [str(place), "--no-browser"])
        assert isinstance(result.exception, JournalError)
        assert why in str(result.exception)
    assert CliRunner().invoke(view, []).exit_code == 2
    assert CliRunner().invoke(view, ["x.db", "--port", "70000"]).exit_code == 2


@pytest.mark.parametrize("missing", ["aiohttp", "plotly"])
def test_without_its_extra_the_remedy_is_told(monkeypatch, tmp_path, missing):
    really = builtins.__import__

    def absent(name, *more, **named):
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return really(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", absent)
    result = CliRunner().invoke(view, [str(tmp_path)])
    assert isinstance(result.exception, MissingExtra)
    assert f"raybo view needs {missing}" in str(result.exception)
    assert str(result.exception).endswith(install_command("view"))


def test_exactly_the_files_of_the_page_are_served(tmp_path):
    place = resources.files("raybo.view").joinpath("page")
    assert {file.name for file in place.iterdir()} == {"index.html", *PAGE}
    kinds = {".js": "text/javascript", ".css": "text/css"}

    async def question(client):
        for name in PAGE:
            answer = await client.get(f"/page/{name}", headers=BEARER)
            assert answer.status == 200
            assert answer.content_type == kinds[name[name.rindex(".") :]]
            text = await answer.text()
            assert "innerHTML" not in text
            assert "eval(" not in text
            assert not re.search(r"https?://|url\(", text)
            for link in re.findall(r'from "\./(.+?)"', text):
                assert link in PAGE
        page = await (await client.get("/", headers=BEARER)).text()
        for link in re.findall(r'(?:src|href)="(/[^"]+)"', page):
            assert (await client.get(link, headers=BEARER)).status == 200
        assert len(await (await client.get("/plotly.js", headers=BEARER)).read()) > 1_000_000

    asking(keep(run("random", 3), tmp_path / "s.db"))(question)
