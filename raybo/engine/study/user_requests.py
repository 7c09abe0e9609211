"""Performs what the user asks of a running study from another process: to stop, or to run a configuration next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from raybo.engine.plan import Plan
from raybo.journal import requests
from raybo.journal.requests import Request

REQUEST_SECONDS = 1.0  # between two looks


async def watch_requests(plan: Plan, stop: Callable[[], None], enqueue: Callable[[Request], Awaitable[None]]) -> None:
    """Perform what is asked until this is cancelled.

    Args:
        plan: of the study; requests to stop from before it began are forgotten.
        stop: stops the study.
        enqueue: has the configuration of a request run, and marks the request as done.
    """
    path, begun = plan.path, time.time() - (time.monotonic() - plan.begun)
    requests.forget_stops(path, begun)
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
