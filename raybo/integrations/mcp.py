"""raybo for agents, by the Model Context Protocol: what an `AgentFolder` does, over standard input and output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import raybo
from raybo.common.errors import MissingExtra, RayboError, install_command
from raybo.common.messages import in_words, nearest
from raybo.integrations.agents import AgentFolder

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import WithJsonSchema
except ImportError as missing:
    raise MissingExtra(f"a server for agents needs mcp 2 ({missing}): {install_command('mcp')}") from None

Result = dict[str, Any]
Told = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "object"}]})]  # pydantic makes 1 of true

INSTRUCTIONS = """\
Tune a job's parameters by Bayesian optimisation. You run the job; raybo proposes configurations and learns.

1. create_study with the space. If you have no ranges, name a ready space such as "xgboost".
2. ask for a trial (for several at once if you run them in parallel), and run the job with its config exactly as it is.
3. tell its result, also if it is bad; fail it if there is none. For long jobs, report each step, and stop when told so.
4. Repeat until the limits say so, or status shows no more progress. Then tell the person front and explain.

Everything is on the disk before a call returns. If you were interrupted, status lists the trials that were asked for
and not told: run and tell those first. The limits were set by a person; no call can exceed them. Each error says what
to do.
"""


class Server(MCPServer):
    """A server that refuses arguments which its tools do not take, and says what was wrong with others in one line."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool by name; ToolError if an argument is unknown, missing or of another type."""
        taken = {tool.name: list(tool.input_schema["properties"]) for tool in await self.list_tools()}
        for argument in arguments if name in taken else ():
            if argument not in taken[name]:
                raise ToolError(f"{name}: it takes no {argument}{nearest(argument, taken[name])}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if (errors := getattr(error.__cause__, "errors", None)) is None:
                raise
            first = errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ToolError(f"{name}: {where}: {first['msg']}; see the tool's description") from None


def server_of(folder: AgentFolder) -> MCPServer:
    """Return a server whose tools work on a folder."""
    server = Server("raybo", instructions=INSTRUCTIONS, version=raybo.__version__, log_level="WARNING")

    @server.tool()
    def create_study(
        study: str,
        space: dict[str, Any] | str,
        mode: str | None = None,
        metric: str | None = None,
        metrics: dict[str, str] | None = None,
        constraints: dict[str, str] | None = None,
        where: list[str] | None = None,
        method: str | None = None,
        trials: int | None = None,
        steps: int | None = None,
        scheduler: str | None = None,
        seed: int | None = None,
    ) -> Result:
        """Create a study. Calling it again with the same arguments goes on with it.

        Args:
            study: a name of letters, digits, - and _.
            space: parameters by name: {"type": "float", "low": 1e-4, "high": 1, "log": true, "guess": 0.01}, likewise
                "integer"; {"type": "categorical", "choices": ["a", "b"]}, or "ordinal" if they are in order; constants.
                A choice that is an object of parameters opens them. Each but a constant may have a "guess", the value
                in the first trial, and "next_guesses", those in the next trials. Or the name of a ready space: xgboost,
                lightgbm, hist_gradient_boosting, random_forest, logistic_regression, svm, mlp, lora.
            mode: "max" or "min", of a single metric.
            metric: its name, if results are objects.
            metrics: two to four metrics by name, each "max" or "min", in place of mode and metric.
            constraints: bounds on numbers of the result, such as {"memory": "<= 2e9"}.
            where: rules between parameters, such as "depth * width <= 64".
            method: a method's name; the default is "auto".
            trials: how many are planned.
            steps: how many steps a whole run has, if you report them.
            scheduler: the rule that ends trials early: "median", "asha", "hyperband" or "curve".
            seed: of all random numbers.
        """
        return _answer(
            folder.create,
            study,
            space,
            mode=mode,
            metric=metric,
            metrics=metrics,
            constraints=constraints,
            where=where,
            method=method,
            trials=trials,
            steps=steps,
            scheduler=scheduler,
            seed=seed,
        )

    @server.tool()
    def ask(study: str, n: int = 1, config: dict[str, Any] | None = None) -> Result:
        """Get the next n trials to run, 1 to 1,000, each with its number, its config and why it was proposed.

        With a config of some of the parameters, or all, get one trial that has these values; the rest is proposed.
        """
        return _answer(folder.ask, study, n, config)

    @server.tool()
    def tell(study: str, trial: int, result: Told) -> Result:
        """Tell the result of a trial: a number, or an object with every metric and constrained number by name."""
        return _answer(folder.tell, study, trial, result)

    @server.tool()
    def fail(study: str, trial: int, reason: str) -> Result:
        """Say that a trial ended without a result, and why. That is data for the method, not an error."""
        return _answer(folder.fail, study, trial, reason)

    @server.tool()
    def report(study: str, trial: int, result: Told, step: int | None = None) -> Result:
        """Report what a step of a running trial came to. The verdict "prune" means: stop it, it is told already."""
        return _answer(folder.report, study, trial, result, step)

    @server.tool()
    def status(study: str | None = None) -> Result:
        """See a study: counts, the recommended and the best trial, the story, what is pending, what the limits leave.

        Without a name, list all studies.
        """
        return _answer(folder.status, study)

    @server.tool()
    def explain(study: str, trial: int) -> Result:
        """See why a trial was proposed, and everything known of it."""
        return _answer(folder.explain, study, trial)

    @server.tool()
    def front(study: str) -> Result:
        """Get the best trials: with several metrics those that no other dominates, else the best one."""
        return _answer(folder.front, study)

    @server.tool()
    def export(study: str, to: str = "csv") -> Result:
        """Write a study into the folder as csv, reports (a row per step), json or optuna, and get the file's path."""
        return _answer(folder.export, study, to)

    return server


def serve(folder: AgentFolder) -> None:
    """Serve until standard input ends."""
    server_of(folder).run("stdio")


def _answer(act: Callable[..., Result], *arguments: Any, **keywords: Any) -> Result:
    """Return what a call gives; its errors are told to the agent in their own words."""
    try:
        return act(*arguments, **keywords)
    except RayboError as error:
        raise ToolError(str(error)) from error
    except (TypeError, ValueError, ArithmeticError) as error:  # of values that no check has foreseen
        raise ToolError(in_words(error)) from error
