"""The command line. Exit status: 0 success, 1 failure, 2 wrong use, 130 stopped by Ctrl-C.

If the reader of a pipe has gone (`raybo show ... | head`), a command ends with 1, silently; a study says how to go on.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import sys
from typing import cast

import click

import raybo
from raybo.cli.console import drop_output, reason_if_unwritable, say
from raybo.common.errors import MethodError, ObjectiveError, RayboError, SpaceError
from raybo.common.messages import near, shortened
from raybo.common.terminal import visible

WRONG_USE = (MethodError, ObjectiveError, SpaceError)

COMMANDS = {  # name: where the command is; a file is imported when one of its commands is used
    "tune": "raybo.cli.tuning:tune",
    "enqueue": "raybo.cli.tuning:enqueue",
    "show": "raybo.cli.inspecting:show",
    "plot": "raybo.cli.inspecting:plot",
    "view": "raybo.cli.viewing:view",
    "mcp": "raybo.cli.agents:mcp",
    "export": "raybo.cli.inspecting:export",
    "methods": "raybo.cli.inspecting:methods",
    "schedulers": "raybo.cli.inspecting:schedulers",
    "compare": "raybo.cli.comparing:compare",
    "reproduce": "raybo.cli.comparing:reproduce",
    "submit": "raybo.cli.cluster:submit",
    "jobs": "raybo.cli.cluster:jobs",
    "fetch": "raybo.cli.cluster:fetch",
    "attach": "raybo.cli.cluster:attach",
    "stop": "raybo.cli.cluster:stop",
    "studies": "raybo.cli.studies:studies",
    "priors": "raybo.cli.studies:priors",
    "completion": "raybo.cli.completion:completion",
    "job-run": "raybo.cli.on_head:job_run",
    "job-send": "raybo.cli.on_head:job_send",
}


class Commands(click.Group):
    """The commands of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        return cast(click.Command, getattr(importlib.import_module(module), name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and (likely := near(args[0], [name for name in COMMANDS if "-" not in name])):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {likely!r}?")
        return super().resolve_command(ctx, args)


def main() -> None:
    """The script `raybo`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no ± is shown its code, and no traceback
            stream.reconfigure(errors="backslashreplace")
    gc.set_threshold(50_000, 20, 100)  # what a journal holds stays: to look for garbage in it takes a sixth of `show`
    try:
        cli(prog_name="raybo", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        vars(error)["message"] = shortened(visible(error.message))  # of what was typed
        error.show()
        sys.exit(error.exit_code)
    except RayboError as error:
        say(f"Error: {shortened(str(error))}", err=True)
        sys.exit(2 if isinstance(error, WRONG_USE) else 1)
    except FileNotFoundError:
        if _is_somewhere():
            raise
        say("Error: the current directory no longer exists; go to one that does", err=True)
        sys.exit(1)
    except BrokenPipeError:
        drop_output()
        sys.exit(1)
    except OSError as error:
        if error.filename is None and (why := reason_if_unwritable(error)):
            say(f"Error: {why}", err=True)
            sys.exit(1)
        raise
    except (click.Abort, KeyboardInterrupt) as stopped:
        if isinstance(stopped.__cause__, EOFError):  # click takes the end of any file for Ctrl-C, and says nothing
            raise stopped.__cause__ from None
        sys.exit(130)


def _is_somewhere() -> bool:
    """Return True if the current directory is there."""
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(raybo.__version__)
def cli() -> None:
    """Tune machine-learning jobs by Bayesian optimisation on Ray.

    Decorate your training function with @raybo.objective, then:

    \b
        raybo tune job.py            tune it on this machine, on all cores
        raybo show job.db            list its trials
        raybo submit job.py          tune it on a Ray cluster

    Every command has examples in its --help. `raybo completion` sets up tab completion in your shell. NO_COLOR=1 turns
    colours off.
    """
