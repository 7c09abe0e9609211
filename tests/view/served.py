"""Provide journals to look at, and a client of the page's server, without a browser."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from aiohttp.test_utils import TestClient, TestServer

from raybo.journal import Journal
from raybo.view.journals import Shelf, identifier
from raybo.view.server import Server

TOKEN = "a-token-for-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def keep(study, path, events=None):
    """A journal of a study's events, or of the first so many of them."""
    journal = Journal(path, study.description)
    journal._insert(study.events[:events])
    journal.close()
    return path


@asynccontextmanager
async def served(*places):
    """A client of the page's server, which says nothing by itself: neither token nor origin."""
    server = TestServer(Server(Shelf(places)).application(TOKEN), host="127.0.0.1")
    async with TestClient(server) as client:
        yield client


def asking(*places):
    """Run a coroutine function with such a client."""

    def run(question):
        async def whole():
            async with served(*places) as client:
                return await question(client)

        return asyncio.run(whole())

    return run


def address(path, rest=""):
    """Of a study, or of something about it."""
    return f"/api/studies/{identifier(path.absolute())}{rest}"
