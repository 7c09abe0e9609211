"""Performs what the user asks of a running study from another process: to stop, or to run a configuration next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from raybo.journal import requests
from raybo.journal.requests import Request

REQUEST_SECONDS = 1.0  # between two looks


async def watch_requests(path: Path, stop: Callable[[], None], enqueue: Callable[[Request], Awaitable[None]]) -> None:
    """Perform what is asked until this is cancelled.

    Args:
        path: the journal.
        stop: stops the study.
        enqueue: has the configuration of a request run, and marks the request as done.
    """
    if not requests.listen(path):  # its directory cannot be written: nobody can ask
        return
    while True:
        for request in requests.waiting(path):
            if request.values is None:
                request.done()
                stop()
            else:
                await enqueue(request)
        await asyncio.sleep(REQUEST_SECONDS)
