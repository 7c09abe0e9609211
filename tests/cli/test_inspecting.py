"""The commands that show a study print and write what they should, and refuse wrong use."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import click
import pytest

import raybo
from raybo import cli
from raybo.journal import Journal, requests
from raybo.record.events import Asked
from raybo.record.goals import Goals
from raybo.reporting import watch
from raybo.study.study import load
from tests.command_line import raybo_command
from tests.reporting.studies import run as study_of

pytestmark = pytest.mark.usefixtures("few_draws")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """The script in this process, in a directory with job.db: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    study = study_of("random", 12)
    journal = Journal(tmp_path / "job.db", study.description)
    journal.append(study.events)
    journal.close()
    return raybo_command(capsys, monkeypatch)


def test_show_tells_one_trial_or_follows(run):
    code, out, _ = run("show", "job.db", "--trial", 3)
    assert code == 0
    assert out.startswith("trial 3 of train_<net>")
    code, out, _ = run("show", "job.db", "--watch")
    assert code == 0
    assert "best accuracy" in out
    code, out, err = run("show", "job.db", "--trial", 99)
    assert (code, out) == (1, "")
    assert err.startswith("Error: trial 99: no such trial")


def listed(out):
    """The numbers of the trials in a table."""
    return [int(line.split()[0]) for line in out.splitlines() if line.split()[:1] and line.split()[0].isdigit()]


def test_show_lists_last_or_all_trials(run, tmp_path):
    assert listed(run("show", "job.db", "--last", 4)[1]) == [8, 9, 10, 11]
    long = study_of("random", 25)
    with contextlib.closing(Journal(tmp_path / "long.db", long.description)) as journal:
        journal.append(long.events)
    assert listed(run("show", "long.db")[1]) == [*range(5, 25)]
    assert listed(run("show", "long.db", "--all")[1]) == [*range(25)]


def test_show_finds_the_best_for_a_context(run, tmp_path):
    study = study_of("random", 12, context={"load": raybo.Float(0, 1)})
    with contextlib.closing(Journal(tmp_path / "met.db", study.description)) as journal:
        journal.append(study.events)
    code, out, _ = run("show", "met.db", "--context", "load=0.75")
    assert code == 0
    assert out.startswith(f"best at load=0.75: trial {study.best_for({'load': 0.75}).number}, accuracy")
    assert "(90% interval" in out
    code, out, err = run("show", "met.db", "--context", "load=high")
    assert (code, out) == (1, "")
    assert "context load: a number is needed, got 'high'" in err


def test_show_replays_and_fails_where_a_proposal_differs(run, tmp_path):
    code, out, err = run("show", "job.db", "--replay")
    assert (code, err) == (0, "")
    assert out == "12 proposals recomputed from the journal alone: all are identical\n"
    study = load("job.db")
    events = [replace(e, x=[0.5] * 4) if e.trial == 3 and isinstance(e, Asked) else e for e in study.events]
    with contextlib.closing(Journal(tmp_path / "other.db", study.description)) as journal:
        journal.append(events)
    code, out, err = run("show", "other.db", "--replay")
    assert (code, out) == (1, "trial 3: proposed again, its point is 0.33 of an axis away\n")
    assert err.startswith("Error: 1 of 12 proposals differ")


def test_show_replays_what_another_machine_rounded_otherwise(run, tmp_path):
    study = load("job.db")
    events = [
        replace(e, x=[value * (1 + 1e-12) for value in e.x]) if e.trial == 3 and isinstance(e, Asked) else e
        for e in study.events
    ]
    with contextlib.closing(Journal(tmp_path / "other.db", study.description)) as journal:
        journal.append(events)
    summary = "12 proposals recomputed from the journal alone: all are identical, 1 of them but for rounding\n"
    assert run("show", "other.db", "--replay") == (0, summary, "")


@pytest.mark.slow
def test_plot_draws_a_page_or_a_picture(run, tmp_path):
    assert run("plot", "job.db") == (0, "Wrote job.html\n", "")
    assert run("plot", "job.db", "-o", "p.svg") == (0, "Wrote p.svg\n", "")
    assert (tmp_path / "p.svg").stat().st_size > 1_000
    code, _, err = run("plot", "job.db", "-o", "p.doc")
    assert code == 1
    assert "must end in .html" in err


def test_export_writes_once_or_follows(run, tmp_path):
    assert run("export", "job.db", "--to", "json", "-o", "s.json") == (0, "Wrote 12 trials to s.json\n", "")
    assert len(json.loads((tmp_path / "s.json").read_text())["trials"]) == 12
    assert run("export", "job.db", "--to", "optuna", "-o", "s.log", "--follow")[0] == 0
    assert (tmp_path / "s.log").stat().st_size > 1_000
    code, _, err = run("export", "job.db", "--to", "exel", "-o", "s")
    assert code == 2
    assert "there is no export to 'exel'" in err


def test_export_follows_a_study_that_runs(run, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.05)
    study = load("job.db")
    journal = Journal(tmp_path / "running.db", study.description)
    journal.append(study.events[:5])

    def go_on():
        journal.append(study.events[5:])
        journal.close()

    ending = threading.Timer(0.3, go_on)
    ending.start()
    result = run("export", "running.db", "--to", "csv", "-o", "s.csv", "--follow")
    ending.join()
    assert result == (0, "Wrote 12 trials to s.csv\n", "")
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 13


def test_enqueue_adds_to_a_journal(run):
    values = ["lr=0.01", "net.depth=4", "net.kind=tanh", "momentum=0.5"]
    code, out, _ = run("enqueue", "job.db", *values)
    assert (code, out) == (0, "Added; the study's next run starts with it\n")
    code, out, _ = run("enqueue", "job.db", *values[:3], "momentum=0.75", "--value", "-0.5")
    assert (code, out) == (0, "Added; the study's next run knows its result\n")
    last = load("job.db").trials[-2:]
    assert [(str(trial.state), trial.value) for trial in last] == [("pending", None), ("finished", -0.5)]
    assert run("enqueue", "job.db", "lr=0.01")[0] == 0
    assert load("job.db").trials[-1].config["lr"] == 0.01
    assert load("job.db").trials[-1].tags["given"] == ["lr"]
    code, _, err = run("enqueue", "job.db", "lr=0.01")
    assert "this configuration was enqueued before, as trial" in err
    code, _, err = run("enqueue", "job.db", "lr=0.01", "--value", "0.5")
    assert code == 2
    assert "net.depth: missing" in err
    code, _, err = run("enqueue", "job.db", "lr")
    assert code == 2


def test_a_list_that_is_none_is_refused(run, tmp_path):
    (tmp_path / "job.py").write_text(
        "import raybo\n@raybo.objective(space={'x': raybo.Float(0, 1)})\ndef f(c): return 1.0\n"
    )
    (tmp_path / "bad.json").write_text("{}")
    code, _, err = run("tune", "job.py", "--enqueue", "bad.json", "--storage", "new.db")
    assert code == 2
    assert "must hold a list of configurations" in err
    code, _, err = run("tune", "job.py", "--log", "csv=x.csv", "--detach")
    assert code == 2
    assert "raybo export --follow" in err


# ---- JSON, for scripts


def printed(result):
    """The JSON that a command printed, and nothing else; strict, so that any program reads it."""
    code, out, err = result
    assert (code, err) == (0, ""), (out, err)

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(out, parse_constant=refuse)


def test_show_prints_json(run, tmp_path):
    whole = printed(run("show", "job.db", "--json"))
    assert set(whole) == {"study", "planned", "ended", "best", "best_expected", "recommended", "trials"}
    assert [trial["number"] for trial in whole["trials"]] == [*range(12)]
    assert run("export", "job.db", "--to", "json", "-o", "s.json")[0] == 0
    assert json.loads((tmp_path / "s.json").read_text()) == whole
    assert [trial["number"] for trial in printed(run("show", "job.db", "--json", "--last", 2))["trials"]] == [10, 11]
    one = printed(run("show", "job.db", "--json", "--trial", 3))
    assert one == whole["trials"][3]
    assert one["explanation"] == "a uniform random point"
    assert set(one) == {
        "number", "state", "value", "config", "context", "seconds", "suggest_seconds", "suggest_processor_seconds",
        "attempt", "reason", "explanation", "tags", "details", "expected", "expected_sd",
    }  # fmt: skip
    assert run("show", "job.db", "--json", "--trial", 99)[:2] == (1, "")


def test_what_json_lacks_is_told_in_words(run, capsys):
    cli.console.say_json({"a": float("nan"), "b": [float("inf")], "c": 1.5})
    assert json.loads(capsys.readouterr().out) == {"a": "nan", "b": ["inf"], "c": 1.5}


@pytest.mark.parametrize(("command", "name"), [("methods", "gp-ucb"), ("schedulers", "asha")])
def test_methods_and_schedulers_print_json(run, command, name):
    assert len(printed(run(command, "--json"))) > 2
    (one,) = printed(run(command, name, "--json"))
    assert set(one) == {"name", "description", "options"}
    assert one["name"] == name
    assert all(set(option) == {"name", "default", "meaning"} for option in one["options"])
    assert run(command, "nonsense", "--json")[:2] == (2, "")


def test_studies_print_json(run, tmp_path):
    (tmp_path / "bad.db").write_text("no journal at all")
    bad, good = printed(run("studies", "--json"))
    assert set(good) == set(bad) == {
        "name", "running_on", "done", "planned", "failed", "best", "method", "problem",
    }  # fmt: skip
    assert (good["name"], good["running_on"], good["done"], good["method"]) == ("job.db", None, 11, "random")
    assert good["problem"] is None
    assert "bad.db" in bad["problem"]


JOB = """
import raybo

@raybo.objective(space={"x": raybo.Float(0, 1)})
def job(config):
    return config["x"]
"""


def test_names_may_hold_an_equals_sign(run, tmp_path):
    space = {"k": raybo.Float(0, 1), "k=v": raybo.Float(0, 1), "k=v=w": raybo.Float(0, 1)}
    with raybo.Searcher(space, context={"c=d": raybo.Float(0, 9)}, seed=0, storage=tmp_path / "new.db") as searcher:
        for trial in searcher.ask(2):
            searcher.tell(trial, 1.0, context={"c=d": 5.0})
    assert run("enqueue", "new.db", "k=v=0.25", "k=0.5", "k=v=w=0.75", "--value", "3")[0] == 0
    assert load(tmp_path / "new.db").trials[-1].config == {"k": 0.5, "k=v": 0.25, "k=v=w": 0.75}
    code, out, _ = run("show", "new.db", "--context", "c=d=5")
    assert code == 0
    assert "c=d" in out


def test_tune_and_enqueue_print_json(run, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    tuned = printed(run("tune", "job.py", "--in-process", "--trials", 3, "--seed", 0, "--storage", "new.db", "--json"))
    assert tuned == printed(run("show", "new.db", "--json"))
    assert len(tuned["trials"]) == 3
    given = printed(run("enqueue", "new.db", "x=0.5", "--json"))
    assert given == {"journal": "new.db", "next": "Added; the study's next run starts with it"}
    (tmp_path / "bad.py").write_text(JOB.replace('config["x"]', '1 / 0 * config["x"]'))
    code, out, err = run("tune", "bad.py", "--in-process", "--trials", 1, "--json")
    assert (code, out) == (1, "")
    assert "the only trial has not finished" in err


def test_stop_prints_json(run, monkeypatch):
    monkeypatch.setattr(requests, "ask_to_stop", lambda path: None)  # of a study that has ended meanwhile
    assert printed(run("stop", "job.db", "--json")) == {"journal": "job.db", "has_ended": True}


def test_what_can_be_reproduced_is_listed_as_json(run, monkeypatch):
    monkeypatch.chdir(ROOT)
    listed = printed(run("reproduce", "--json"))
    assert all(set(one) == {"name", "title", "hours"} for one in listed)
    assert {"auto-default", "inexact-fig1"} <= {one["name"] for one in listed}


def test_what_a_script_reads_is_there_as_json():
    """What follows or serves until it is ended, or writes a file of its own, has none."""
    context = click.Context(cli.cli)
    commands = {name: cli.cli.get_command(context, name) for name in cli.cli.list_commands(context)}
    lacking = {name for name, command in commands.items() if not any("--json" in each.opts for each in command.params)}
    hidden = {name for name, command in commands.items() if command.hidden}
    assert lacking - hidden == {"attach", "completion", "export", "mcp", "plot", "view"}


# ---- colours


@pytest.mark.parametrize(
    "arguments", ["show job.db", "show job.db --trial 3", "show job.db --watch", "methods", "studies"]
)
def test_no_color_is_heeded_on_a_terminal(run, monkeypatch, arguments):
    """Bold and dim may stay: NO_COLOR is about colours."""

    def colours():
        code, out, _ = run(*arguments.split())
        assert code == 0
        codes = re.findall(r"\x1b\[([\d;]*)m", out)
        return [code for code in codes if any(30 <= int(part or 0) <= 49 for part in code.split(";"))]

    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, to rich
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert colours() or arguments != "show job.db"
    monkeypatch.setenv("NO_COLOR", "1")
    assert colours() == []


# ---- a study that runs


VALUES = ["lr=0.01", "net.depth=4", "net.kind=tanh", "momentum=0.5"]


def test_a_running_study_is_asked_for_a_configuration(run, tmp_path):
    path = tmp_path / "job.db"
    with contextlib.closing(Journal(path)) as journal:
        journal.begin(journal.description)
        code, _, err = run("enqueue", "job.db", *VALUES)
        assert (code, "takes no requests; enqueue the configuration once" in err) == (1, True)
        assert requests.listen(path)
        code, out, _ = run("enqueue", "job.db", *VALUES)
        assert (code, out) == (0, "Enqueued; the study runs it as soon as a worker is free\n")
        code, _, err = run("enqueue", "job.db", *VALUES, "--value", "0.5")
        assert (code, "takes configurations but no results" in err) == (1, True)
        (asked,) = requests.waiting(path)
        study = load(path)
        assert study.space.unpack(asked.values)["lr"] == 0.01


def test_enqueuing_twice_is_told(run):
    assert run("enqueue", "job.db", *VALUES)[0] == 0
    code, _, err = run("enqueue", "job.db", *VALUES)
    assert (code, "this configuration was enqueued before, as trial 12" in err) == (1, True)
    assert run("enqueue", "job.db", *VALUES, "--value", "0.5")[0] == 0
    code, _, err = run("enqueue", "job.db", *VALUES, "--value", "0.5")
    assert (code, "this configuration was added with this result before, as trial 13" in err) == (1, True)
    assert run("enqueue", "job.db", *VALUES, "--value", "0.7")[0] == 0  # noise: another result of it
    assert [trial.value for trial in load("job.db").trials[13:]] == [0.5, 0.7]


def test_a_result_of_several_metrics_is_an_object(run, tmp_path):
    goals = Goals.of({"accuracy": "max", "seconds": "min"})
    with contextlib.closing(Journal(tmp_path / "two.db", replace(load("job.db").description, goals=goals))):
        pass
    code, out, err = run("enqueue", "two.db", *VALUES, "--value", '{"accuracy": 0.5, "seconds": 3}')
    assert (code, err) == (0, ""), out
    assert load("two.db").trials[-1].values == {"accuracy": 0.5, "seconds": 3.0}
    code, _, err = run("enqueue", "two.db", *VALUES, "--value", "0.5")
    assert code == 1
    assert "a dict with accuracy, seconds is needed" in err


def test_a_running_study_is_stopped_by_its_journal(run, tmp_path):
    path = tmp_path / "job.db"
    code, _, err = run("stop", "job.db")
    assert (code, "job.db: it is not running, so there is nothing to stop" in err) == (1, True)
    code, _, err = run("stop", "none.db")
    assert (code, "none.db: no such file" in err) == (1, True)
    journal = Journal(path)
    journal.begin(journal.description)
    code, _, err = run("stop", "job.db")
    assert (code, "takes no requests; stop it where it was started" in err) == (1, True)
    assert requests.listen(path)

    def end():
        while not requests.waiting(path):
            time.sleep(0.01)
        journal.close()

    ending = threading.Thread(target=end)
    ending.start()
    assert run("stop", "job.db") == (0, "Stopped; the study is in job.db\n", "")
    ending.join()
