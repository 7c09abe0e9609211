"""Serves the page on this machine until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from aiohttp import web

from raybo.common.errors import RayboError
from raybo.view.guard import new_token
from raybo.view.server import Server
from raybo.view.shelf import Shelf

HOST = "127.0.0.1"  # and no other: whoever is elsewhere comes through a tunnel


def serve(shelf: Shelf, port: int, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        shelf: the studies.
        port: 0 for any that is free.
        ready: called with the address once it answers.
    Raises:
        RayboError: the port is taken, or may not be used.
    """
    token = new_token()
    with contextlib.closing(_listening(port)) as listening:
        asyncio.run(_run(Server(shelf).application(token), listening, token, ready))


async def _run(app: web.Application, listening: socket.socket, token: str, ready: Callable[[str], None]) -> None:
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        ready(f"http://{HOST}:{listening.getsockname()[1]}/?token={token}")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _listening(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or str(error)
        raise RayboError(f"port {port} cannot be used ({why}); give another --port, or none for a free one") from None
    return listening
