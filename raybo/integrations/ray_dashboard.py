"""Reaching the dashboard of a Ray cluster's head: anything wrong is reported in one line, and soon."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from raybo.common.environment import environment
from raybo.common.errors import MissingExtra, RayError, install_command
from raybo.engine.ray.auth_token import token_header
from raybo.engine.ray.job_client import quieten_uploads

ANSWER_SECONDS = (3.0, 10.0)  # to connect, and to be answered


def job_client(address: str) -> Any:
    """Ray's client of the jobs of a cluster.

    Args:
        address: http://HOST:8265, of its dashboard.
    Raises:
        RayError: nothing answers there, it is not a Ray dashboard, it refuses the token, or it runs another Ray.
        MissingExtra: Ray's job client is not installed.
    """
    if not address.startswith(("http://", "https://")):
        raise RayError(f"a cluster takes jobs at its dashboard's address, http://HOST:8265; got {address!r}")
    make = _installed()
    import ray  # not before it is known to be complete

    headers = token_header(ray)
    _require_same_ray(address, headers)
    with translated(address), environment({"RAY_API_SERVER_ADDRESS": address}):  # it wins over RAY_ADDRESS and its kin
        return make(address, headers=headers)


@contextlib.contextmanager
def translated(address: str, remedy: str = "") -> Iterator[None]:
    """Turn what Ray's client raises into one line."""
    import aiohttp
    import ray

    try:
        yield
    except BrokenPipeError:  # of our own output: nobody reads it any more
        raise
    except (RuntimeError, OSError, aiohttp.ClientError, ray.exceptions.RayError) as error:  # OSError: of requests too
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[-1] if lines else type(error).__name__  # the last line of a remote traceback says what
        raise RayError(f"the cluster at {address} refused or failed the request: {reason}{remedy}") from error


def _installed() -> Any:
    try:
        import aiohttp  # noqa: F401  # of ray[default]; without it Ray's client can be imported and fails when used
        from ray.job_submission import JobSubmissionClient
    except ImportError as missing:
        raise MissingExtra(
            f"Ray's job client cannot be imported ({missing}); {install_command('cluster')}, which brings ray[default]"
        ) from missing
    quieten_uploads()
    return JobSubmissionClient


def _require_same_ray(address: str, headers: dict[str, str]) -> None:
    """Find out in seconds what is wrong: Ray's client itself waits for minutes if nobody answers."""
    import ray
    import requests

    try:
        answer = requests.get(f"{address}/api/version", headers=headers, timeout=ANSWER_SECONDS)
    except (requests.RequestException, UnicodeError) as error:
        raise RayError(
            f"nothing answers at {address} ({_reason(error)}); is the cluster up, and its dashboard's port reachable "
            "from here (`ray dashboard cluster.yaml`, or ssh -L 8265:127.0.0.1:8265 HEAD)?"
        ) from None
    if answer.status_code in (401, 403):
        why = "refuses the token" if headers else "wants a token, and there is none here"
        raise RayError(
            f"the cluster at {address} {why}; put the cluster's token into ~/.ray/auth_token or RAY_AUTH_TOKEN"
        )
    try:
        version = str(answer.json()["ray_version"])
    except (ValueError, KeyError, TypeError):
        raise RayError(
            f"what answers at {address} is not a Ray dashboard; give the address that `ray start --head` printed"
        ) from None
    if version.split(".")[:2] != ray.__version__.split(".")[:2]:
        raise RayError(
            f"the cluster at {address} runs Ray {version}, and this machine {ray.__version__}; "
            f"install the same version here: pip install 'ray[default]=={version}'"
        )


def _reason(error: BaseException) -> str:
    """The innermost words of a chain of errors: requests wraps what the system said in several."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__
