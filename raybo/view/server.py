"""The paths of the page and their handlers.

GET  /                                        the page
GET  /page/NAME                               its styles and modules
GET  /plotly.js                               plotly's program, as installed
GET  /api/studies                             what there is, one line each
GET  /api/studies/ID                          one of them
GET  /api/studies/ID/rows?since=N&times=T     its trials about which something has happened since event N
GET  /api/studies/ID/curve                    the improvements of the best value
GET  /api/studies/ID/figures                  which figures there are, and of when; /KEY is one of them
GET  /api/studies/ID/trials/N                 everything about a trial; /file?key=KEY is a file that it left
POST /api/studies/ID/stop                     stop it
POST /api/studies/ID/enqueue  {"values": []}  run a configuration next
POST /api/studies/ID/notes    {"text": ""}    take a note; with "trial" about one trial
"""

from __future__ import annotations

import asyncio
import json
import mimetypes
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from aiohttp import web

from raybo.common.errors import RayboError
from raybo.view import actions
from raybo.view.connections import BODY_SECONDS, Connections
from raybo.view.facts import Json, curve, details, overview, rows, text
from raybo.view.figures import Figures, as_bytes
from raybo.view.files import opened
from raybo.view.followed import Followed
from raybo.view.guard import guard, with_headers
from raybo.view.journals import Shelf
from raybo.view.trial import trial_page

T = TypeVar("T")

PAGE = (
    "app.js",
    "api.js",
    "charts.js",
    "dom.js",
    "forms.js",
    "overview.js",
    "study.js",
    "style.css",
    "table.js",
    "trial.js",
)
CHUNK = 256 * 1024  # bytes of a file that are read at once


class Server:
    """Answers for the studies of a shelf.

    Args:
        shelf: the studies.
    """

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self._figures: dict[str, Figures] = {}

    def application(self, token: str, connections: Connections | None = None) -> web.Application:
        """Return the application, which answers nothing without the token."""
        count = [] if connections is None else [connections.middleware()]
        app = web.Application(middlewares=[*count, guard(token), _in_a_line], client_max_size=1024**2)
        app.on_response_prepare.append(with_headers)
        study = "/api/studies/{study:[0-9a-f]{16}}"
        app.add_routes(
            [
                web.get("/", _page("index.html")),
                *(web.get(f"/page/{name}", _page(name)) for name in PAGE),
                web.get("/plotly.js", _plotly),
                web.get("/api/studies", self.studies),
                web.get(study, self.study),
                web.get(f"{study}/rows", self.rows),
                web.get(f"{study}/curve", self.curve),
                web.get(f"{study}/figures", self.figures),
                web.get(study + "/figures/{key}", self.figure),
                web.get(study + r"/trials/{trial:\d{1,10}}", self.trial),
                web.get(study + r"/trials/{trial:\d{1,10}}/file", self.file),
                web.post(f"{study}/stop", self.stop),
                web.post(f"{study}/enqueue", self.enqueue),
                web.post(f"{study}/notes", self.note),
            ]
        )
        return app

    async def studies(self, request: web.Request) -> web.Response:
        """Answer with all studies."""
        return _json({"studies": await _beside(lambda: [overview(i, f) for i, f in self.shelf.all().items()])})

    async def study(self, request: web.Request) -> web.Response:
        """Answer with one study."""
        name, followed = await self._find(request)

        def told() -> Json:
            found = details(name, followed)
            able = actions.possible(followed.path, is_running=bool(found["running"]))
            return {**found, "can": able, "notes": actions.notes(followed.path)}

        return _json(await _beside(told))

    async def rows(self, request: web.Request) -> web.Response:
        """Answer with the changed trials of a study."""
        _, followed = await self._find(request)
        since, times = _number(request, "since"), _number(request, "times")
        return _json(await _beside(lambda: rows(followed, since, times)))

    async def curve(self, request: web.Request) -> web.Response:
        """Answer with the curve of a study's best value."""
        name, followed = await self._find(request)
        return _json(await _beside(lambda: curve(name, followed)))

    async def figures(self, request: web.Request) -> web.Response:
        """Answer with the list of a study's figures."""
        figures = await self._figures_of(request)
        drawn = await _beside(figures.latest)
        told: Json = {"drawing": figures.is_drawing()}
        if drawn is not None:
            told |= {"times": drawn.times, "last": drawn.last, "panels": drawn.panels}
            told |= {"recommended": drawn.recommended, "front": list(drawn.front)}
            told |= {"error": drawn.error} if drawn.error else {}
        return _json(told)

    async def figure(self, request: web.Request) -> web.Response:
        """Answer with one figure, as last drawn."""
        drawn = (await self._figures_of(request)).drawn
        body = None if drawn is None else drawn.figures.get(request.match_info["key"])
        if body is None:
            raise web.HTTPNotFound(text="there is no such figure\n")
        return web.Response(body=body, content_type="application/json")

    async def trial(self, request: web.Request) -> web.Response:
        """Answer with everything about a trial."""
        _, followed = await self._find(request)
        number = int(request.match_info["trial"])
        found = await _beside(lambda: trial_page(followed, number))
        if found is None:
            raise web.HTTPNotFound(text="there is no such trial\n")
        found["notes"] = await _beside(lambda: actions.notes(followed.path, number))
        return _json(found)

    async def file(self, request: web.Request) -> web.StreamResponse:
        """A file that a trial has left, to be kept and never to be shown: it may hold anything."""
        _, followed = await self._find(request)
        number = int(request.match_info["trial"])

        def where() -> Any:
            with followed.now() as study:
                return study.directory(number) if number < len(study.trials) else None

        directory = await _beside(where)
        try:
            if directory is None:
                raise FileNotFoundError(number)
            with opened(directory, request.query.get("key", "")) as (file, name):
                response = web.StreamResponse()
                response.content_type = "application/octet-stream"
                safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)
                response.headers["Content-Disposition"] = f'attachment; filename="{safe}"'
                await response.prepare(request)
                while piece := await _beside(lambda: file.read(CHUNK)):
                    await response.write(piece)
                await response.write_eof()
                return response
        except FileNotFoundError:
            raise web.HTTPNotFound(text="there is no such file\n") from None

    async def stop(self, request: web.Request) -> web.Response:
        """Stop a study that runs."""
        _, followed = await self._find(request)
        return _json({"told": await _beside(lambda: actions.stop(followed))})

    async def enqueue(self, request: web.Request) -> web.Response:
        """Have a configuration run next."""
        _, followed = await self._find(request)
        values = (await _body(request)).get("values")
        if not isinstance(values, list):
            raise web.HTTPBadRequest(text="a list of values is needed\n")
        return _json({"told": await _beside(lambda: actions.enqueue(followed, values))})

    async def note(self, request: web.Request) -> web.Response:
        """Add a note."""
        _, followed = await self._find(request)
        said = await _body(request)
        return _json(await _beside(lambda: actions.note(followed, said.get("text"), said.get("trial"))))

    async def _find(self, request: web.Request) -> tuple[str, Followed]:
        name = request.match_info["study"]
        followed = await _beside(lambda: self.shelf.find(name))
        if followed is None:
            raise web.HTTPNotFound(text="there is no such study\n")
        return name, followed

    async def _figures_of(self, request: web.Request) -> Figures:
        name, followed = await self._find(request)
        return self._figures.setdefault(name, Figures(followed))


async def _beside(work: Callable[[], T]) -> T:
    """Run a function that reads files in a thread, so that the server can still answer."""
    return await asyncio.to_thread(work)


@web.middleware
async def _in_a_line(request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
    """Turn raybo's errors into an answer of one line."""
    try:
        answer: web.StreamResponse = await handler(request)
    except RayboError as error:
        return web.json_response({"error": text(str(error), 2_000)}, status=409)
    return answer


def _page(name: str) -> Callable[[web.Request], Any]:
    async def send(request: web.Request) -> web.Response:
        kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "text/plain"
        return web.Response(body=_asset(name), content_type=kind, charset="utf-8")

    return send


@cache
def _asset(name: str) -> bytes:
    return resources.files("raybo.view").joinpath("page", name).read_bytes()


async def _plotly(request: web.Request) -> web.Response:
    headers = {"Cache-Control": "private, max-age=3600"}
    return web.Response(body=_program(), content_type="text/javascript", charset="utf-8", headers=headers)


@cache
def _program() -> bytes:
    from plotly.offline import get_plotlyjs

    program: str = get_plotlyjs()
    return program.encode()


def _json(value: Json) -> web.Response:
    return web.Response(body=as_bytes(value), content_type="application/json")


async def _body(request: web.Request) -> Json:
    try:
        said = json.loads(await asyncio.wait_for(request.read(), BODY_SECONDS))  # UTF-8, whatever the request declares
    except asyncio.TimeoutError:
        raise web.HTTPRequestTimeout(text="the request's body did not arrive\n") from None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise web.HTTPBadRequest(text="a JSON object is needed\n")
    return said


def _number(request: web.Request, name: str) -> int:
    told = request.query.get(name, "0")
    if not (told.isascii() and told.isdecimal() and len(told) < 12):
        raise web.HTTPBadRequest(text=f"{name} must be a whole number\n")
    return int(told)
