"""The command that opens the dashboard."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from raybo.cli.arguments import PATH
from raybo.cli.console import say
from raybo.common.errors import MissingExtra, install_command


@click.command()
@click.argument("journals", nargs=-1, required=True, type=PATH, metavar="FILE.db|DIR ...")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, metavar="P", help="Port to listen on.  [default: any free one]"
)
@click.option(
    "--browser/--no-browser",
    default=True,
    show_default=True,
    help="Open the page in a browser, or only print its address.",
)
def view(journals: tuple[Path, ...], port: int, browser: bool) -> None:
    """Open a live dashboard of one or more studies.

    It shows figures, trials and what each worker is doing, and can stop a study or enqueue a configuration. Given
    several journals, or a directory of them, it lists and compares them. Only this machine can reach the page, and its
    address contains a token. Ctrl-C closes it and leaves the studies running.

    \b
        raybo view job.db
        raybo view studies/ --no-browser --port 8300
    """
    try:
        import aiohttp  # noqa: F401
        import plotly  # noqa: F401
    except ImportError as error:
        missing = str(error.name or "aiohttp").partition(".")[0]
        raise MissingExtra(f"raybo view needs {missing}: {install_command('view')}") from None
    from raybo.view.journals import Shelf
    from raybo.view.opening import opened_in_browser
    from raybo.view.serving import serve

    def ready(address: str) -> contextlib.AbstractContextManager[object]:
        say(address)
        say("Ctrl-C closes the page; the studies keep running", err=True)
        return opened_in_browser(address) if browser else contextlib.nullcontext()

    serve(Shelf(journals), port, ready)
