"""Agents ask and tell within limits, lose nothing when they or the server die, and get errors with remedies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

import raybo
from raybo.integrations import agents
from raybo.integrations.agents import AgentFolder, Limits, space_of
from raybo.record.events import Asked

X = {"x": {"type": "float", "low": 0, "high": 1}}


def loss(config):
    return (config["x"] - 0.3) ** 2


@pytest.fixture
def folder(tmp_path):
    return AgentFolder(tmp_path / "studies", Limits(trials=6))


def run(folder, study, n):
    for asked in folder.ask(study, n)["trials"]:
        folder.tell(study, asked["trial"], loss(asked["config"]))


def test_a_study_is_asked_told_and_seen(folder):
    folder.create("first", X, mode="min", seed=0)
    run(folder, "first", 5)
    status = folder.status("first")
    assert status["states"] == {"finished": 5}
    assert status["limits"]["trials_left"] == 1
    assert status["story"][0].startswith("trial 0: initial design")
    assert folder.front("first")["trials"] == [status["best"]]
    assert status["recommended"]["why"].startswith(f"trial {status['recommended']['trial']}, ")
    assert folder.explain("first", 4)["why"] in status["story"][4]
    assert folder.status()["studies"].keys() == {"first"}
    assert json.dumps([status, folder.space("first")], allow_nan=False)


def test_creating_it_again_goes_on(folder):
    folder.create("first", X, mode="min", seed=0)
    run(folder, "first", 2)
    assert folder.create("first", X, mode="min", seed=0)["trials"] == 2
    with pytest.raises(raybo.TrialError, match="first is there and differs"):
        folder.create("first", {"y": X["x"]})


def test_a_created_study_is_not_replaced(folder):
    """Nor while nothing has been asked for: another agent was told that it is there."""
    folder.create("first", X, mode="min", seed=0)
    with pytest.raises(raybo.TrialError, match=r"^first is there and differs: .*; choose another name$"):
        folder.create("first", {"y": X["x"]}, mode="max", seed=3)
    assert folder.create("first", X, mode="min")["trials"] == 0
    assert list(folder.ask("first")["trials"][0]["config"]) == ["x"]


def test_what_is_pending_is_listed(folder):
    folder.create("first", X)
    (asked,) = folder.ask("first")["trials"]
    assert folder.status("first")["pending"] == [{"trial": 0, "config": asked["config"]}]
    assert folder.ask("first")["asked_for_earlier_and_not_told"] == [0]


@pytest.mark.parametrize("n", [0, -1, 1_001, 1.5, "2", True])
def test_a_number_of_trials_that_is_none_is_told(folder, n):
    folder.create("first", X)
    with pytest.raises(raybo.TrialError, match="n must be a whole number from 1"):
        folder.ask("first", n)
    assert folder.status("first")["trials"] == 0


def test_an_agent_asks_with_values_of_its_own(tmp_path):
    folder = AgentFolder(tmp_path, Limits(trials=3))
    space = {name: {"type": "float", "low": 0, "high": 1} for name in "xy"}
    folder.create("first", space, seed=0)
    (asked,) = folder.ask("first", config={"x": 0.25})["trials"]
    assert (asked["trial"], asked["config"]["x"]) == (0, 0.25)
    assert "with x; the rest proposed" in asked["why"]
    with pytest.raises(raybo.TrialError, match="trial 0 was asked for with this config before"):
        folder.ask("first", config={"x": 0.25})
    with pytest.raises(raybo.TrialError, match="a config is of one trial, got n=2"):
        folder.ask("first", 2, {"x": 0.5})
    with pytest.raises(raybo.SpaceError, match="z: not a parameter"):
        folder.ask("first", config={"z": 0.5})
    assert [each["trial"] for each in folder.ask("first", 2)["trials"]] == [1, 2]
    with pytest.raises(raybo.TrialError):
        folder.ask("first", config={"y": 0.5})


def test_trials_of_all_studies_count(folder):
    for name in ("a", "b"):
        folder.create(name, X)
        folder.ask(name, 3)
    for name in ("a", "b"):
        with pytest.raises(raybo.TrialError, match=r"^1 more would exceed the limit of 6 trials, of which 0 are left;"):
            folder.ask(name)
    assert len(raybo.load(folder.directory / "a.db").trials) == 3
    again = AgentFolder(folder.directory, Limits(trials=7))
    with pytest.raises(raybo.TrialError, match="2 more would exceed"):
        again.ask("a", 2)
    again.ask("a")


def test_what_counts_already_can_be_asked_for_at_the_limit(folder):
    """A trial that a person has enqueued counts at once; one that continues has counted before."""
    folder.create("first", X, mode="min", seed=0, steps=9, scheduler="asha", scheduler_options={"variant": "promote"})
    with raybo.Searcher(storage=folder.directory / "first.db") as searcher:
        enqueued = [searcher.enqueue({"x": x}).number for x in (0.1, 0.2, 0.3)]
    assert folder.left()["trials_left"] == 3
    with pytest.raises(raybo.TrialError, match="4 more would exceed"):
        folder.ask("first", 7)
    asked = folder.ask("first", 2)
    assert [each["trial"] for each in asked["trials"]] == enqueued[:2]
    assert asked["asked_for_earlier_and_not_told"] == []
    asked = folder.ask("first", 4)
    assert asked["asked_for_earlier_and_not_told"] == enqueued[:2]
    assert folder.left()["trials_left"] == 0
    for trial in range(6):
        assert folder.report("first", trial, float(trial), 1)["verdict"] == "pause"
    assert [each["trial"] for each in folder.ask("first", 3)["trials"]] == [0]  # which continues, and no more
    with pytest.raises(raybo.TrialError, match="1 more would exceed"):
        folder.ask("first")


def test_files_of_others_in_the_folder_do_no_harm(folder):
    folder.create("first", X)
    (folder.directory / "empty.db").touch()
    with contextlib.closing(sqlite3.connect(folder.directory / "other.db")) as connection:
        connection.execute("CREATE TABLE a (b)")
    (asked,) = folder.ask("first")["trials"]
    assert folder.tell("first", asked["trial"], 1.0)["states"] == {"finished": 1}
    assert folder.status()["studies"].keys() == {"first"}


def test_one_rule_may_be_a_text(folder):
    folder.create("first", X, where="x <= 0.5")
    assert folder.ask("first")["trials"][0]["config"]["x"] <= 0.5


def test_no_trial_begins_after_the_minutes(folder, monkeypatch):
    timed = AgentFolder(folder.directory, Limits(minutes=0.5))
    timed.create("first", X)
    (asked,) = timed.ask("first")["trials"]
    assert 0 < timed.left()["minutes_left"] <= 0.5
    late = AgentFolder(folder.directory, Limits(minutes=1e-9))
    with pytest.raises(raybo.TrialError, match="the limit of 1e-09 minutes is reached"):
        late.ask("first")
    assert late.tell("first", asked["trial"], 1.0)["states"] == {"finished": 1}


@pytest.mark.parametrize("by", [timedelta(hours=-1), timedelta(days=1)], ids=["back", "forward"])
def test_minutes_pass_whatever_the_clock_says(folder, monkeypatch, by):
    timed = AgentFolder(folder.directory, Limits(minutes=30))
    timed.create("first", X)
    timed.ask("first")
    before = timed.left()["minutes_left"]
    now = datetime.now(timezone.utc)
    monkeypatch.setattr(agents, "datetime", SimpleNamespace(now=lambda zone: now + by, fromisoformat=now.fromisoformat))
    assert 29.0 < timed.left()["minutes_left"] <= before
    if by < timedelta(0):  # of another process that starts only then
        assert 29.0 < AgentFolder(folder.directory, Limits(minutes=30)).left()["minutes_left"] <= 30.0


def test_rules_of_the_person_hold_in_every_study(folder):
    ruled = AgentFolder(folder.directory, Limits(where=("x <= 0.25",)))
    ruled.create("first", X, mode="max", where=["x >= 0.1"])
    assert all(0.1 <= each["config"]["x"] <= 0.25 for each in ruled.ask("first", 8)["trials"])
    with pytest.raises(raybo.SpaceError, match="x"):
        ruled.create("second", {"y": X["x"]})
    folder.create("third", X)
    with pytest.raises(raybo.TrialError, match=r"^third was created without the rule 'x <= 0\.25'"):
        ruled.ask("third")


@pytest.mark.parametrize("name", ["../out", "/etc/x", "a/b", "", ".hidden", "a" * 65])
def test_no_name_leads_out_of_the_folder(folder, name):
    for act in (lambda: folder.create(name, X), lambda: folder.ask(name), lambda: folder.export(name)):
        with pytest.raises(raybo.JournalError, match="a study's name is made of"):
            act()


def test_no_link_leads_out_of_the_folder(folder, tmp_path):
    folder.create("first", X)
    (folder.directory / "first.json").symlink_to(tmp_path / "elsewhere.json")
    (folder.directory / "second.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(raybo.JournalError, match="it is a link"):
        folder.export("first", "json")
    with pytest.raises(raybo.JournalError, match="it is a link"):
        folder.create("second", X)
    assert {path.name for path in tmp_path.iterdir()} == {"studies"}


def test_reports_are_judged_and_carried_out(folder):
    folder.create("first", X, mode="max", steps=4, scheduler="median", seed=0)
    said = []
    for value in (3, 3, 3, 3, 3, 0):
        (asked,) = folder.ask("first")["trials"]
        for step in range(1, 5):
            said.append(folder.report("first", asked["trial"], value, step)["verdict"])
            if said[-1] != "continue":
                break
        else:
            folder.tell("first", asked["trial"], value)
    assert said[-1] == "prune"
    assert folder.status("first")["states"] == {"finished": 5, "pruned": 1}


def test_exports_are_written_beside_the_journal(folder):
    folder.create("first", X, mode="min")
    run(folder, "first", 2)
    for to in ("csv", "json", "optuna", "reports"):
        path = Path(folder.export("first", to)["file"])
        assert path.parent == folder.directory
        assert path.is_file()
    with pytest.raises(raybo.MethodError, match="there is no export to 'mlflow' here"):
        folder.export("first", "mlflow")


def test_spaces_are_read_from_json():
    declared = {
        "rate": {"type": "float", "low": 1e-4, "high": 1, "log": True, "guess": 0.1, "step": None},
        "model": {
            "type": "categorical",
            "choices": ["none", {"kind": "net", "units": {"type": "integer", "low": 1, "high": 9}}],
        },
        "inner": {"size": {"type": "ordinal", "choices": [8, 16]}, "constant": 3},
    }
    net = {"kind": "net", "units": raybo.Integer(1, 9)}
    assert space_of(declared) == {
        "rate": raybo.Float(1e-4, 1, log=True, guess=0.1),
        "model": raybo.Categorical(["none", net]),
        "inner": {"size": raybo.Ordinal([8, 16]), "constant": 3},
    }
    assert "max_depth" in space_of("xgboost")
    null = {"type": "categorical", "choices": [None, "balanced"], "guess": None, "next_guesses": ["balanced"]}
    assert space_of({"weight": null}) == {
        "weight": raybo.Categorical([None, "balanced"], guess=None, next_guesses=["balanced"])
    }
    assert space_of({"x": {"type": "float", "low": 0, "high": 1, "guess": None}}) == {"x": raybo.Float(0, 1)}
    branches = [{"deep": {"type": "integer", "low": 1, "high": 9}}, {"flat": 1}]
    opened = {"type": "categorical", "choices": branches, "guess": branches[1], "next_guesses": branches[:1]}
    own = [{"deep": raybo.Integer(1, 9)}, {"flat": 1}]
    assert space_of({"net": opened}) == {"net": raybo.Categorical(own, guess=own[1], next_guesses=own[:1])}
    assert space_of({"model": {"type": {"type": "integer", "low": 0, "high": 1}}}) == {
        "model": {"type": raybo.Integer(0, 1)}
    }


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"x": {"type": "flot", "low": 0}}, "x: there is no type 'flot'; did you mean 'float'"),
        ({"x": {"type": "svm", "C": 1}}, "x: there is no type 'svm'; available: .*; a constant needs another name"),
        ({"x": {"type": "float", "low": 0}}, "x: float needs high"),
        ({"x": {"type": "float", "low": 0, "high": 1, "lgo": True}}, "x: float has no 'lgo'; did you mean 'low'"),
        ("xgbost", "there is no ready space 'xgbost'; did you mean 'xgboost'"),
        (3, "a space is an object of parameters by name, got 3"),
        ({"x": 1, "rate": {"type": "float", "low": 1, "high": 0}}, "^rate: Float: low must be below high"),
    ],
)
def test_wrong_spaces_are_named(declared, message):
    with pytest.raises(raybo.SpaceError, match=message):
        space_of(declared)


# ---- the protocol


@pytest.fixture
def mcp():
    return pytest.importorskip("mcp", reason="mcp is not installed")


def test_tools_answer_and_refuse_in_words(mcp, folder):
    from raybo.integrations.mcp import server_of

    async def talk():
        async with mcp.Client(server_of(folder)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            await client.call_tool("create_study", {"study": "first", "space": X, "mode": "min"})
            asked = await client.call_tool("ask", {"study": "first"})
            told = await client.call_tool("tell", {"study": "first", "trial": 0, "result": 0.5})
            again = await client.call_tool("tell", {"study": "first", "trial": 0, "result": 0.5})
            await client.call_tool("ask", {"study": "first"})
            wrong = await client.call_tool("tell", {"study": "first", "trial": 1, "result": True})
            await client.call_tool("create_study", {"study": "other", "space": X, "mode": "max", "metric": "f1"})
            await client.call_tool("ask", {"study": "other"})
            named = await client.call_tool("tell", {"study": "other", "trial": 0, "result": {"f1": 0.9}})
            return tools, asked, told, again, wrong, named

    tools, asked, told, again, wrong, named = asyncio.run(talk())
    assert "trial 1: a number is needed, got True" in wrong.content[0].text
    assert named.structured_content["best"]["value"] == 0.9
    assert set(tools) == {"create_study", "ask", "tell", "fail", "report", "status", "explain", "front", "export"}
    assert all(tool.description for tool in tools.values())
    assert {kind["type"] for kind in tools["tell"].input_schema["properties"]["result"]["anyOf"]} == {
        "number",
        "object",
    }
    assert asked.structured_content["trials"][0]["trial"] == 0
    assert told.structured_content["best"]["value"] == 0.5
    assert again.is_error
    assert "trial 0: it is finished already" in again.content[0].text


def test_wrong_arguments_are_named_in_one_line(mcp, folder):
    from raybo.integrations.mcp import server_of

    folder.create("first", X, mode="min", seed=0)

    async def talk():
        async with mcp.Client(server_of(folder)) as client:

            async def call(tool, **arguments):
                answer = await client.call_tool(tool, {"study": "first", **arguments})
                assert answer.is_error
                (said,) = (content.text for content in answer.content)
                return said

            return [
                await call("export", format="json"),
                await call("ask", count=3),
                await call("tell", trial=0),
                await call("ask", n="many"),
            ]

    unknown, other, missing, wrong = asyncio.run(talk())
    assert unknown == "export: it takes no format; available: study, to"
    assert other == "ask: it takes no count; available: study, n, config"
    assert missing.startswith("tell: result: Field required")
    assert wrong.startswith("ask: n: ")
    assert not any("\n" in said or "http" in said for said in (missing, wrong))
    assert folder.status("first")["trials"] == 0


AGENT = """
import asyncio, sys
from mcp import Client, StdioServerParameters

async def work():
    server = StdioServerParameters(command=sys.executable, args=["-m", "raybo", "mcp", sys.argv[1], "--trials", "9"])
    async with Client(server) as client:
        async def call(name, **arguments):
            answer = await client.call_tool(name, {"study": "first", **arguments})
            if answer.is_error:
                sys.exit(answer.content[0].text)
            return answer.structured_content
        space = {"x": {"type": "float", "low": 0, "high": 1}}
        waiting = (await call("create_study", space=space, mode="min", seed=0))["pending"]
        while True:
            for trial in waiting or (await call("ask"))["trials"]:
                print(trial["trial"], flush=True)
                sys.stdin.readline()
                await call("tell", trial=trial["trial"], result=(trial["config"]["x"] - 0.3) ** 2)
            waiting = []

asyncio.run(work())
"""


def servers_of(agent):
    """The processes that an agent has started."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _parent(path) == agent.pid]


def _parent(path):
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return None


@pytest.mark.slow
def test_a_study_ends_over_kills_of_agent_and_server(mcp, tmp_path):
    begun = []
    for victim in ("agent", "server", "agent", "nobody"):
        agent = subprocess.Popen(
            [sys.executable, "-c", AGENT, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            for done in range(100):
                line = agent.stdout.readline()
                if not line:
                    break
                begun.append(int(line))
                if done == 2 and victim != "nobody":
                    os.kill(agent.pid if victim == "agent" else servers_of(agent)[0], signal.SIGKILL)
                    break
                agent.stdin.write("\n")
                agent.stdin.flush()
            _, said = agent.communicate(timeout=120) if victim != "server" else ("", "")
        finally:
            agent.kill()
            agent.communicate()
    assert "would exceed the limit of 9 trials, of which 0 are left" in said
    study = raybo.load(tmp_path / "first.db")
    assert [trial.state for trial in study.trials] == [raybo.State.FINISHED] * 9
    assert sum(isinstance(event, Asked) for event in study.events) == 9
    assert [begun.count(number) for number in range(9)].count(2) == 3  # those that were run when somebody died
    assert study.best.value < 0.02


@pytest.mark.parametrize("limits", [{"minutes": float("nan")}, {"minutes": 0}, {"trials": 0}])
def test_limits_that_are_none_are_refused(limits):
    with pytest.raises(raybo.MethodError, match="must be"):
        Limits(**limits)
