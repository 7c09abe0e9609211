"""Authenticates requests: only with the token, under a name of this machine, from a page of this server.

    the token     in the address that is opened first, then in a cookie that no other site's page sends along, or in a
                  header `Authorization: Bearer TOKEN`; 401 without it, whatever is asked for
    the host      a page of another site can be made to resolve to this machine; its requests name that site
    the origin    what changes something is POST, JSON, and from this very page (another port is another origin)

Response headers restrict a page: it may load what this server sends, ask this server, and nothing else.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NAMES = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def new_token() -> str:
    """Return an unguessable token."""
    return secrets.token_urlsafe(32)


def cookie_name(token: str) -> str:
    """Return the cookie's name: cookies ignore the port, and another dashboard may be open beside this one."""
    return f"raybo-{blake2b(token.encode(), digest_size=6).hexdigest()}"


def guard(token: str) -> Middleware:
    """Return the middleware that checks every request before any other code sees it."""
    cookie = cookie_name(token)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        by_address = _check(request, token, cookie)
        response = await handler(request)
        if by_address:
            response.set_cookie(cookie, token, httponly=True, samesite="Strict", path="/")
        return response

    return check


async def with_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that every response has, refusals too."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def _check(request: web.Request, token: str, cookie: str) -> bool:
    """Raise the refusal that a request deserves; returns whether its token was in the address."""
    if _hostname(request.headers.get("Host", "")) not in NAMES:
        raise web.HTTPForbidden(text="this host name does not belong to this machine; use 127.0.0.1 or localhost\n")
    kind, _, held = request.headers.get("Authorization", "").partition(" ")
    by_header = kind.lower() == "bearer" and _same(held.strip(), token)
    by_address = request.path == "/" and _same(request.query.get("token", ""), token)
    if not (by_header or by_address or _same(request.cookies.get(cookie, ""), token)):
        raise web.HTTPUnauthorized(text="open the address that raybo view has printed, with its token\n")
    if request.path != "/" and request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        raise web.HTTPForbidden(text="another site's page may not ask this\n")
    if request.method not in ("GET", "HEAD"):
        own = f"http://{request.headers.get('Host', '')}"
        origin = request.headers.get("Origin")
        if origin != own and not (origin is None and by_header):
            raise web.HTTPForbidden(text="another site's page may not change anything here\n")
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="JSON is needed\n")
    return by_address


def _hostname(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())
