"""Nobody reads anything without the token, no other site's page may ask, and answers limit what a page may do."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import stat
from pathlib import Path

import pytest
from aiohttp import web

from raybo.common.errors import RayboError
from raybo.view import opening
from raybo.view.connections import Connections, quiet_logger
from raybo.view.guard import HEADERS, cookie_name, new_token
from raybo.view.journals import Shelf
from raybo.view.server import Server
from raybo.view.serving import HOST, _listening
from tests.reporting.studies import run
from tests.view.served import BEARER, TOKEN, address, asking, keep

PATHS = [
    "/",
    "/page/app.js",
    "/page/style.css",
    "/plotly.js",
    "/api/studies",
    "/nothing",
    "/../etc/passwd",
    "/favicon.ico",
]


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    return keep(run("random", 6), tmp_path_factory.mktemp("view") / "s.db")


def test_every_path_is_refused_without_the_token(journal):
    async def question(client):
        paths = [*PATHS, *(address(journal, rest) for rest in ("", "/rows", "/figures", "/trials/0", "/curve"))]
        for path in paths:
            for headers in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": f"Basic {TOKEN}"},
                {"Cookie": f"{cookie_name(TOKEN)}=wrong"},
            ):
                answer = await client.get(path, headers=headers)
                assert answer.status == 401, path
                assert "Set-Cookie" not in answer.headers
                assert TOKEN not in await answer.text()
            for method in ("POST", "PUT", "DELETE", "OPTIONS"):
                assert (await client.request(method, path)).status == 401, path
        assert (await client.get(address(journal), params={"token": TOKEN})).status == 401  # only the page's address

    asking(journal)(question)


def test_address_sets_a_cookie_for_other_paths(journal):
    async def question(client):
        answer = await client.get("/", params={"token": TOKEN})
        assert answer.status == 200
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        client.session.cookie_jar.clear()
        held = {"Cookie": cookie.partition(";")[0]}
        for path in ("/", "/page/app.js", "/plotly.js", "/api/studies", address(journal, "/rows")):
            assert (await client.get(path, headers=held)).status == 200, path
            client.session.cookie_jar.clear()
        answer = await client.get("/api/studies", headers=BEARER)
        assert (answer.status, "Set-Cookie" in answer.headers) == (200, False)
        linked = {"Sec-Fetch-Site": "cross-site"}  # from a chat, or a notebook
        assert (await client.get("/", params={"token": TOKEN}, headers=linked)).status == 200

    asking(journal)(question)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "", "[", "a@b"]
)
def test_foreign_host_names_are_refused(journal, host):
    async def question(client):
        answer = await client.get("/api/studies", headers={**BEARER, "Host": host})
        assert answer.status in (400, 403)

    asking(journal)(question)


@pytest.mark.parametrize("host", ["127.0.0.1:9999", "localhost:8300", "LOCALHOST", "[::1]:80"])
def test_local_host_names_are_accepted_with_any_port(journal, host):
    async def question(client):  # through a tunnel the port is another
        assert (await client.get("/api/studies", headers={**BEARER, "Host": host})).status == 200

    asking(journal)(question)


def test_only_this_page_changes_anything(journal):
    held = {"Cookie": f"{cookie_name(TOKEN)}={TOKEN}"}

    async def question(client):
        own = f"http://{client.host}:{client.port}"
        notes = address(journal, "/notes")
        for origin in (None, "null", "https://evil.example", "http://127.0.0.1:1", own.replace("http", "https"), ""):
            headers = {**held, **({} if origin is None else {"Origin": origin})}
            assert (await client.post(notes, json={"text": "x"}, headers=headers)).status == 403, origin
        headers = {**held, "Origin": own}
        for body in ({"data": "text=x"}, {"data": b"{}", "headers": {**headers, "Content-Type": "text/plain"}}):
            assert (await client.post(notes, **{"headers": headers, **body})).status == 415
        for path in ("/stop", "/enqueue", "/notes"):
            assert (await client.get(address(journal, path), headers=held)).status in (404, 405)
        crossed = {**headers, "Sec-Fetch-Site": "cross-site"}
        assert (await client.post(notes, json={"text": "x"}, headers=crossed)).status == 403
        assert (await client.get("/api/studies", headers={**held, "Sec-Fetch-Site": "same-site"})).status == 403
        assert not journal.with_name("s.notes.jsonl").exists()
        assert (await client.post(notes, json={"text": "x"}, headers=headers)).status == 200
        for body in ("[]", "{", '"x"', "[" * 100_000):
            answer = await client.post(notes, data=body, headers={**headers, "Content-Type": "application/json"})
            assert answer.status == 400
        strange = {**headers, "Content-Type": "application/json; charset=none-such"}
        assert (await client.post(notes, data='{"text": "grün"}'.encode(), headers=strange)).status == 200

    asking(journal)(question)


def test_every_answer_says_what_a_page_may_do(journal):
    async def question(client):
        for path, headers in (("/", BEARER), ("/api/studies", BEARER), ("/api/studies", {}), ("/none", BEARER)):
            answer = await client.get(path, headers=headers)
            for name, value in HEADERS.items():
                assert answer.headers[name] == value, (path, name)
        policy = HEADERS["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "script-src 'self';" in policy
        assert "://" not in policy

    asking(journal)(question)


def test_listens_on_loopback_only_and_refuses_taken_ports():
    with _listening(0) as listening:
        assert listening.getsockname()[0] == HOST == "127.0.0.1"
        with pytest.raises(RayboError, match=r"port .* cannot be used"):
            _listening(listening.getsockname()[1])
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        with pytest.raises(RayboError, match="give another --port"):
            _listening(other.getsockname()[1])


def test_tokens_are_long_and_different():
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 40


def test_requests_above_a_megabyte_are_refused(journal):
    async def question(client):
        own = {**BEARER, "Origin": f"http://{client.host}:{client.port}", "Content-Type": "application/json"}
        for size, status in ((2**20, 413), (2**19, 409)):  # the shorter one is read, and is too long for a note
            body = io.BytesIO(json.dumps({"text": "x" * size}).encode())
            answer = await client.post(address(journal, "/notes"), data=body, headers=own)
            assert answer.status == status, await answer.text()

    asking(journal)(question)


def test_token_stays_off_the_browsers_command_line(monkeypatch):
    opened = []

    def open_page(url):
        page = Path(url.removeprefix("file://"))
        opened.append((url, page.read_text(), stat.S_IMODE(page.stat().st_mode), page.parent.stat().st_mode & 0o777))

    monkeypatch.setattr(opening.webbrowser, "open", open_page)
    with opening.opened_in_browser(f"http://127.0.0.1:1/?token={TOKEN}&b=1"):
        ((url, page, mode, above),) = opened
    assert TOKEN not in url
    assert f"url=http://127.0.0.1:1/?token={TOKEN}&amp;b=1" in page
    assert (mode, above) == (0o600, 0o700)
    assert not Path(url.removeprefix("file://")).parent.exists()


async def sent(port, request):
    """Return a server's answer to raw bytes before it closes the connection."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_half_sent_and_malformed_requests_are_closed(journal, capfd, caplog):
    async def ask():
        connections = Connections(idle_seconds=0.4)
        application = Server(Shelf([journal])).application(TOKEN, connections)
        runner = web.AppRunner(application, access_log=None, logger=quiet_logger())
        await runner.setup()
        with _listening(0) as listening:
            port = listening.getsockname()[1]
            await web.SockSite(runner, listening).start()
            closing = asyncio.get_running_loop().create_task(connections.close_idle(runner.server))
            for half in (b"", b"GET / HT", b"GET /api/studies HTTP/1.1\r\nHost: 127.0.0.1\r\n"):
                assert await sent(port, half) == b""
            for malformed in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/9.9\r\nA\x00: b\r\n\r\n", b"G" * 100_000):
                assert b"Traceback" not in await sent(port, malformed)
            closing.cancel()
            await runner.cleanup()

    asyncio.run(ask())
    assert capfd.readouterr().err == ""
    assert [record for record in caplog.records if record.name.startswith("aiohttp")] == []
