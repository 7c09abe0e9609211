"""The command that serves agents."""

from __future__ import annotations

from pathlib import Path

import click

from raybo.cli.arguments import PATH


@click.command()
@click.argument("directory", type=PATH, metavar="DIR")
@click.option(
    "--trials", type=click.IntRange(min=1), metavar="N", help="Maximum number of trials over all studies in DIR."
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="T",
    help="Start no trial more than T minutes after DIR's first.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="RULE",
    help="A rule that every configuration must satisfy, such as 'rate <= 0.1'.",
)
def mcp(directory: Path, trials: int | None, minutes: float | None, where: tuple[str, ...]) -> None:
    """Serve agents by the Model Context Protocol, over standard input and output.

    An agent creates studies in DIR, asks for configurations, runs them itself, and tells the results. It loses nothing
    when it or this server dies, and cannot exceed the limits given here, which are counted in DIR's journals.

    \b
        raybo mcp studies --trials 40 --minutes 120
        raybo mcp studies --where 'learning_rate <= 0.1' --where 'max_depth <= 8'
    """
    from raybo.integrations.agents import AgentFolder, Limits
    from raybo.integrations.mcp import serve

    serve(AgentFolder(directory, Limits(trials, minutes, where)))
