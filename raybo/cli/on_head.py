"""Commands that a cluster's head runs for `raybo submit` and `raybo fetch`; nobody types them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from raybo.cli.console import say
from raybo.common.messages import counted


@click.command("job-run", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("storage")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def job_run(storage: str, arguments: tuple[str, ...]) -> None:
    """Run `raybo tune` as a job, on the journal STORAGE, with what was sent along."""
    from raybo.cli.tuning import tune
    from raybo.integrations.transfer import unload
    from raybo.journal import exists

    path = Path(storage).expanduser()
    was_here = exists(path)
    with tempfile.TemporaryDirectory() as scratch:
        arrival, more = unload(path, Path(scratch))
        if was_here and (arrival is None or arrival.ahead):
            sent = "none was sent"
            if arrival is not None:
                sent = f"it is {counted(arrival.ahead, 'event')} ahead of the one sent"
            say(f"Continuing {path}, which was here already ({sent}); give another --storage to start a new study")
        tune.main([*arguments, *more, "--storage", str(path)], prog_name="raybo tune", standalone_mode=False)


@click.command("job-send", hidden=True)
@click.argument("storage")
def job_send(storage: str) -> None:
    """Print the journal STORAGE for `raybo fetch`."""
    from raybo.integrations.transfer import lines_of, pack

    for line in lines_of(pack(Path(storage).expanduser())):
        say(line)
