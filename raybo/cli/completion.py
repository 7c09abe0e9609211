"""The command that prints what a shell needs to complete raybo's commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell's completion script.

    It completes commands, options, files, methods and schedulers. For bash or zsh, add its line below to ~/.bashrc or
    ~/.zshrc; for fish, run the line once.

    \b
        eval "$(raybo completion bash)"
        eval "$(raybo completion zsh)"
        raybo completion fish > ~/.config/fish/completions/raybo.fish
    """
    from raybo.cli import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "raybo", "_RAYBO_COMPLETE").source())
