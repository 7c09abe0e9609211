"""The command that opens the living page."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from raybo.cli.console import say
from raybo.errors import MissingExtra, install_command


@click.command()
@click.argument("journals", nargs=-1, required=True, type=Path, metavar="FILE.db|DIR ...")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="P", help="The port.  [default: a free one]")
@click.option(
    "--browser/--no-browser", default=True, show_default=True, help="Open the page, or only print its address."
)
def view(journals: tuple[Path, ...], port: int, browser: bool) -> None:
    """Open a page that shows studies while they run: figures, trials, what each worker does.

    Of several journals, or all *.db of a directory, it shows a list and compares them. The page is for this machine
    alone and its address holds a token; Ctrl-C ends it, and leaves the studies running.

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
    from raybo.view.serving import serve
    from raybo.view.shelf import Shelf

    def ready(address: str) -> None:
        say(address)
        say("Ctrl-C ends the page; studies go on", err=True)
        if browser:
            webbrowser.open(address)

    serve(Shelf(journals), port, ready)
