"""Connections that never finish a request are closed, and malformed requests do not fill the terminal."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

IDLE_SECONDS = 30.0  # a connection that has no request in progress for so long is closed
BODY_SECONDS = 10.0  # limit for the arrival of a request's body, of at most a megabyte
LOOK_SECONDS = 1.0  # between two looks at all connections


class Connections:
    """Closes connections that have been idle too long, with half a request or none at all."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._requests: Counter[int] = Counter()  # in progress, by the id of their connection
        self._since: dict[int, float] = {}  # last activity, by the id of the connection

    def middleware(self) -> Middleware:
        """Return a middleware that records which connections have a request in progress."""

        @web.middleware
        async def count(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            connection = id(request.protocol)
            self._requests[connection] += 1
            try:
                return await handler(request)
            finally:
                self._requests[connection] -= 1
                self._since.pop(connection, None)

        return count

    async def close_idle(self, server: web.Server) -> None:
        """Close idle connections of the server until cancelled."""
        while True:
            await asyncio.sleep(min(LOOK_SECONDS, self._idle_seconds / 2))
            now = asyncio.get_running_loop().time()
            protocols = {id(protocol): protocol for protocol in server.connections}
            self._since = {key: self._since.get(key, now) for key in protocols if self._requests[key] == 0}
            self._requests = Counter({key: count for key, count in self._requests.items() if count})
            for key, since in self._since.items():
                transport = protocols[key].transport
                if now - since >= self._idle_seconds and transport is not None:
                    transport.abort()


def quiet_logger() -> logging.Logger:
    """Return a logger for the server that drops malformed requests and shows other errors in one line each."""
    logger = logging.Logger("raybo.view")  # a root of its own: what users configure for logging does not apply
    handler = logging.StreamHandler()
    handler.addFilter(_is_ours)
    handler.setFormatter(_OneLine("raybo view: %(message)s"))
    logger.addHandler(handler)
    return logger


def _is_ours(record: logging.LogRecord) -> bool:
    """True unless a client caused it: a malformed request, a connection closed half-way."""
    error = record.exc_info[1] if record.exc_info else None
    return record.levelno >= logging.WARNING and not isinstance(
        error, (HttpProcessingError, ConnectionError, asyncio.TimeoutError)
    )


class _OneLine(logging.Formatter):
    def formatException(self, ei: object) -> str:  # logging's name
        return ""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        line = super().format(record).strip()
        return line if error is None else f"{line}: {type(error).__name__}: {error}"
