"""The token by which Ray knows its user, made so that nobody else can read it. Ray would make it readable by all."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from raybo.common.errors import RayError

log = logging.getLogger("raybo")


def loader_of(ray: Any) -> Any:
    """Return Ray's loader of the token; None if this Ray is of a release without tokens, such as 2.50."""
    loader = getattr(ray._raylet, "AuthenticationTokenLoader", None)
    return None if loader is None else loader.instance()


def token_header(ray: Any) -> dict[str, str]:
    """Return the HTTP header that carries this user's token; empty if there is none.

    Ray's client sends it by itself only if RAY_AUTH_MODE was set before Ray was imported.

    Raises:
        RayError: the token cannot be read.
    """
    loader = loader_of(ray)
    if loader is None:
        return {}
    try:
        return dict(loader.get_token_for_http_header(ignore_auth_mode=True))
    except ray.exceptions.RayError as error:
        raise RayError(str(error).partition(". ")[0]) from error


def make_token(ray: Any) -> None:
    """Make this user's token if there is none and Ray, about to start here, would make one.

    Raises:
        RayError: it cannot be written.
    """
    loader = loader_of(ray)
    if loader is None:
        log.warning(
            "Ray %s has no tokens: other users of this machine could use your Ray; a newer one asks for a token",
            ray.__version__,
        )
        return
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token" or loader.has_token(ignore_auth_mode=True):
        return
    from ray._private.authentication.authentication_token_generator import generate_new_authentication_token

    _write(_default(), generate_new_authentication_token())
    loader.reset_cache()


def warn_of_open_token() -> None:
    """Warn if other users of this machine can read the token. Its mode is not changed: it may be meant so."""
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or _default())
    with contextlib.suppress(OSError):  # there is none, or it is hidden even from this user
        if "RAY_AUTH_TOKEN" not in os.environ and _others_can_read(path):
            log.warning(
                "%s can be read by other users of this machine, who could use your Ray; run chmod 600 %s", path, path
            )


def _default() -> Path:
    return Path.home() / ".ray" / "auth_token"  # Ray's


def _write(path: Path, token: str) -> None:
    """Write the token whole or not at all; if another start of raybo was first, its token stays."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, written = tempfile.mkstemp(dir=path.parent, prefix=".auth_token-")  # of mode 0600
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(token)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(written, path)
        finally:
            os.unlink(written)
    except OSError as error:
        raise RayError(
            f"{path}: Ray's token cannot be written ({error.strerror}); set RAY_AUTH_TOKEN, or HOME to a writable "
            "directory"
        ) from error


def _others_can_read(path: Path) -> bool:
    mode = path.stat().st_mode
    for others in (stat.S_IROTH | stat.S_IXOTH, stat.S_IRGRP | stat.S_IXGRP):
        reading, entering = others & 0o444, others & 0o111
        if mode & reading and all(above.stat().st_mode & entering for above in path.absolute().parents):
            return True
    return False
