"""Serves the page on this machine until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from aiohttp import web

from raybo.common.errors import RayboError
from raybo.view.connections import Connections, quiet_logger
from raybo.view.guard import new_token
from raybo.view.journals import Shelf
from raybo.view.server import Server

HOST = "127.0.0.1"  # the only address that is served; from elsewhere one needs a tunnel


def serve(shelf: Shelf, port: int, ready: Callable[[str], contextlib.AbstractContextManager[object]]) -> None:
    """Serve until Ctrl-C.

    Args:
        shelf: the studies.
        port: 0 for any that is free.
        ready: called with the address once it answers; the context that it returns lasts as long as the server.
    Raises:
        RayboError: the port is taken, or may not be used.
    """
    token, connections = new_token(), Connections()
    application = Server(shelf).application(token, connections)
    with contextlib.closing(_listening(port)) as listening:
        address = f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"
        asyncio.run(_run(application, connections, listening, lambda: ready(address)))


async def _run(
    application: web.Application,
    connections: Connections,
    listening: socket.socket,
    ready: Callable[[], contextlib.AbstractContextManager[object]],
) -> None:
    runner = web.AppRunner(
        application, access_log=None, handle_signals=False, shutdown_timeout=1.0, logger=quiet_logger()
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        assert runner.server is not None
        with ready():
            await connections.close_idle(runner.server)
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
