"""The command line prints what it should, exits with the right codes, and survives interruption and kills."""

from __future__ import annotations

import contextlib
import inspect
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

import raybo
import raybo.experiments.summary
from raybo import cli, experiments, methods
from raybo.cli.arguments import default_storage
from raybo.engine import driver
from raybo.experiments import Claim, Verdict
from raybo.experiments.results import Row
from raybo.journal import Journal, read
from raybo.record.description import Description
from raybo.record.events import KINDS, Asked, Failed, Kind, Planned, Told
from raybo.record.goals import Goals
from raybo.record.states import State
from raybo.study.study import Study
from tests.command_line import raybo_command

JOB = """
import time
import raybo
from tests.command_line import raybo_command
import helper_of_job

@raybo.objective(space={"x": raybo.Float(0, 1), "n": raybo.Integer(1, 9)}, metric="score")
def job(config, *, sleep: float = 0.0, offset=0):
    time.sleep(sleep)
    print("said by a trial")
    return {"score": helper_of_job.SCALE * config["x"] + offset}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with job.py and its helper, which is also the working directory."""
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "helper_of_job.py").write_text("SCALE = 2.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(("raybo_objective_", "helper_of_job"))]:
        del sys.modules[name]


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line in this process; return exit code, stdout and stderr."""
    return raybo_command(capsys, monkeypatch)


def refused(result, code, *words):
    """One line on stderr that names the culprit, nothing on stdout, no traceback."""
    got, out, err = result
    assert (got, out) == (code, ""), (out, err)
    assert "Traceback" not in err
    last = err.rstrip("\n").splitlines()[-1]
    assert last.startswith("Error: ")
    for word in words:
        assert word in last, err
    return err


def one_line(result, code, *words):
    assert refused(result, code, *words).count("\n") == 1


# ---- help


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_tells_a_stranger_what_to_type(run, option):
    code, out, err = run(option)
    assert (code, err) == (0, ""), (out, err)
    assert "raybo tune job.py" in out
    assert "raybo show job.db" in out
    assert all(f"  {name} " in out for name in ("tune", "show", "methods", "submit", "fetch"))
    assert "job-run" not in out


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_and_option_has_its_help(run, command):
    code, out, err = run(command, "--help")
    assert (code, err) == (0, ""), (out, err)
    assert out.startswith(f"Usage: raybo {command}")
    for parameter in cli.cli.get_command(None, command).params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            assert parameter.help
            assert parameter.opts[0] in out


def examples(command):
    """The lines of a command's help that are to be typed."""
    text = inspect.cleandoc(cli.cli.get_command(None, command).help or "")
    return [line.strip() for line in text.splitlines() if line.startswith("    raybo ")]


@pytest.mark.parametrize("command", [name for name in cli.COMMANDS if not name.startswith("job-")])
def test_every_command_has_examples_that_its_parser_takes(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    lines = examples(command) or (["raybo completion bash"] if command == "completion" else [])
    assert lines
    for line in lines:
        words = shlex.split(line.partition(" > ")[0])
        assert words[:2] == ["raybo", command]
        one = cli.cli.get_command(None, command)
        one.make_context(command, words[2:])


def flags():
    """Every flag of the command line, with the commands that have it and what it takes there."""
    declared = {}
    for name in cli.COMMANDS:
        for parameter in cli.cli.get_command(None, name).params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                for flag in (*parameter.opts, *parameter.secondary_opts):
                    declared.setdefault(flag, {})[name] = parameter
    return declared


def test_a_flag_means_one_thing_wherever_it_is():
    for flag, commands in flags().items():
        assert len({(p.is_flag, p.multiple) for p in commands.values()}) == 1, flag
        assert len({p.name for p in commands.values()}) == 1, flag
    assert "--out" not in flags()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_its_completion(run, shell):
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    assert f"_RAYBO_COMPLETE={shell}_complete" in out
    assert run("completion", "tcsh")[0] == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("raybo sch", "schedulers"),
        ("raybo tune --sched", "--scheduler"),
        ("raybo tune job.py --method turb", "turbo"),
        ("raybo tune job.py --scheduler hyper", "hyperband"),
        ("raybo methods gp-u", "gp-ucb"),
        ("raybo export job.db --to op", "optuna"),
    ],
)
def test_what_is_typed_is_completed(run, monkeypatch, typed, offered):
    monkeypatch.setenv("_RAYBO_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    code, out, _ = run()
    assert code == 0
    assert f"plain,{offered}" in out.split()


def test_tune_has_the_options_of_the_contract(run):
    _, out, _ = run("tune", "--help")
    for option in ("--trials", "--method", "--seed", "--storage", "--workers", "--address", "--max-minutes", "--set"):
        assert option in out
    assert "--option" in out
    assert "FILE[:NAME]" in out


def test_the_version_is_told(run):
    code, out, _ = run("--version")
    assert code == 0
    assert out.split()[-1] == raybo.__version__


# ---- wrong use: 2, with the culprit and the remedy


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tune", "nowhere.py"], ["nowhere.py: no such file; give the Python file that holds the objective"]),
        (["tune", "."], ["no such file"]),
        (["tune", "job.py:jbo"], ["job.py has no objective 'jbo'; did you mean 'job'?"]),
        (["tune", "job.py", "--trials", "0"], ["trials must be a whole number from 1, got 0"]),
        (["tune", "job.py", "--trials", "-5"], ["trials must be a whole number from 1, got -5"]),
        (["tune", "job.py", "--workers", "0"], ["workers must be a whole number from 1, got 0"]),
        (["tune", "job.py", "--retries", "-1"], ["retries must be a whole number from 0, got -1"]),
        (["tune", "job.py", "--seed", "-1"], ["seed must be a whole number from 0, got -1"]),
        (["tune", "job.py", "--max-minutes", "0"], ["max_minutes must be a finite number above 0, got 0"]),
        (["tune", "job.py", "--max-minutes", "nan"], ["max_minutes must be a finite number above 0, got nan"]),
        (["tune", "job.py", "--trial-seconds", "-2"], ["trial_seconds must be a finite number above 0, got -2"]),
        (["tune", "job.py", "--method", "gp_ucb"], ["there is no method 'gp_ucb'; did you mean 'gp-ucb'?"]),
        (["tune", "job.py", "--method", "zzz"], ["there is no method 'zzz'; available: auto, ei, random"]),
        (
            ["tune", "job.py", "--method", "gp-ucb", "--option", "solvr=cg"],
            ["no option 'solvr'; did you mean 'solver'?"],
        ),
        (["tune", "job.py", "--method", "gp-ucb", "--option", "solver=adam"], ["solver must be one of", "got 'adam'"]),
        (["tune", "job.py", "--method", "random", "--option", "mode=min"], ["random has no option 'mode'"]),
        (["tune", "job.py", "--method", "random", "--option", "name=x"], ["random has no option 'name'"]),
        (["tune", "job.py", "--set", "sleeep=1"], ["job has no parameter 'sleeep'; did you mean 'sleep'?"]),
        (["tune", "job.py", "--set", "sleep=long"], ["job: parameter sleep must be a number, got 'long'"]),
        (["tune", "job.py", "--set", "config=1"], ["job has no parameter 'config'"]),
        (["tune", "syntax.py"], ["syntax.py:2: does not import: SyntaxError"]),
        (
            ["tune", "imports.py"],
            ["imports.py:1: does not import: ModuleNotFoundError: No module named 'no_such_thing'"],
        ),
        (["tune", "exits.py"], ["exits.py:1: does not import: SystemExit: 7"]),
        (["tune", "none.py"], ["none.py holds no objective; decorate the function to tune with @raybo.objective"]),
        (["tune", "two.py"], ["two.py holds 2 objectives; choose one: two.py:one or two.py:two"]),
        (["tune", "space.py"], ["Float: low must be below high, got low=1.0, high=0.0"]),
        (["tune", "log.py"], ["Float: a logarithmic scale needs low above 0"]),
        (["tune", "choice.py"], ["Categorical: a choice needs at least one value, got an empty list"]),
        (["tune", "text.txt"], ["its name must end in .py"]),
        (["methods", "gp-ubc"], ["there is no method 'gp-ubc'; did you mean 'gp-ucb'?"]),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_wrong_use_is_refused_in_one_line(run, folder, arguments, words):
    decorated = "import raybo\n@raybo.objective(space={'x': raybo.%s})\ndef %s(config): return 1\n"
    for name, text in {
        "syntax.py": "\ndef f(:\n",
        "imports.py": "import no_such_thing\n",
        "exits.py": "raise SystemExit(7)\n",
        "none.py": "x = 1\n",
        "two.py": decorated % ("Float(0, 1)", "one") + decorated % ("Float(0, 1)", "two"),
        "space.py": decorated % ("Float(1, 0)", "job"),
        "log.py": decorated % ("Float(0, 1, log=True)", "job"),
        "choice.py": decorated % ("Categorical([])", "job"),
        "text.txt": decorated % ("Float(0, 1)", "job"),
    }.items():
        (folder / name).write_text(text)
    one_line(run(*arguments), 2, *words)
    assert not list(folder.glob("*.db*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tune"], ["Missing argument 'FILE[:NAME]'"]),
        (["tune", "job.py", "--trials", "many"], ["'--trials'", "'many'"]),
        (["tune", "job.py", "--trails", "5"], ["--trails", "--trials"]),
        (["tune", "job.py", "--set", "sleep"], ["--set takes KEY=VALUE, got 'sleep'"]),
        (["tune", "job.py", "--log", "csv"], ["--log takes FORMAT=WHERE, got 'csv'"]),
        (
            ["tune", "job.py", "--set", "a-b=1", "--set", "a_b=2"],
            ["--set a_b is given two values, '1' and '2'; leave one"],
        ),
        (["tune", "job.py", "--option", "nu=1", "--option", "nu=2"], ["--option nu is given two values"]),
        (["enqueue", "x.db", "x=1", "x=2"], ["Error: x is given two values, '1' and '2'; leave one out"]),
        (["tune", "job.py", "--workers", "all"], ["'all' is neither a whole number nor max"]),
        (["tune", "job.py", "--option", "=3"], ["--option takes KEY=VALUE, got '=3'"]),
        (["tune", "job.py", "--option", "trials=3"], ["--option trials"]),
        (["tune", "job.py", "--option", "objective=3"], ["--option objective"]),
        (["show"], ["Missing argument 'FILE.db'"]),
        (["shwo", "x.db"], ["No such command 'shwo'. Did you mean 'show'?"]),
        (["--nonsense"], ["--nonsense"]),
        (["nonsense"], ["No such command 'nonsense'."]),
        (["tune", "job.py", "--enqueue", "nothing.json"], ["nothing.json: cannot be read (No such file or directory)"]),
        (["show", "x.db", "--trial", "1", "--watch"], ["--trial and --watch cannot be used together"]),
        (["show", "x.db", "--replay", "--context", "a=1"], ["--context and --replay cannot be used together"]),
        (["show", "x.db", "--all", "--last", "3"], ["--last and --all cannot be used together"]),
        (["show", "x.db", "--trial", "1", "--last", "3"], ["--last and --trial cannot be used together"]),
        (["show", "x.db", "--all", "--watch"], ["--all and --watch cannot be used together"]),
        (["show", "x.db", "--watch", "--json"], ["--watch and --json cannot be used together"]),
        (["show", "x.db", "--last", "0"], ["--last"]),
        (["show", "x.db", "--context", "a"], ["--context takes NAME=VALUE, got 'a'"]),
        (["studies", ".", "--address", "auto"], ["[DIR] and --address cannot be used together"]),
        (["compare", "job.py", "--methods", "ei", "--in-process", "--workers", "2"], ["--workers and --in-process"]),
        (["compare", "job.py", "--methods", "ei", "-o", "a", "--out", "b"], ["--output and --out"]),
        (["reproduce", "x", "--all"], ["[NAME ...] and --all cannot be used together"]),
        (["stop", "job.db", "--address", "auto"], ["job.db is a journal on this machine"]),
        (["enqueue", "job.db", "x"], ["NAME=VALUE is needed, got 'x'"]),
        (["enqueue", "job.db", "x=1", "--value", "good"], ["--value takes a number", "got 'good'"]),
        (["enqueue", "job.db", "x=1", "--value", "[1]"], ["--value takes a number", "got '[1]'"]),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_what_no_command_understands_is_refused(run, folder, arguments, words):
    refused(run(*arguments), 2, *words)


def test_method_options_exclude_the_arguments_of_tune(run, folder):
    for name in inspect.signature(driver.tune).parameters:
        if name != "options":
            refused(run("tune", "job.py", "--option", f"{name}=1"), 2, f"--option {name}")


# ---- journals that are none: 1, and not a byte of them changed


def description_of_job():
    space = raybo.Space({"x": raybo.Float(0, 1), "n": raybo.Integer(1, 9)})
    return Description("job", Goals(("score",), ("max",)), space, "random", 0)


@pytest.fixture
def journal(folder):
    path = folder / "job.db"
    with contextlib.closing(Journal(path, description_of_job())) as journal:
        asked = {"x": [0.25, 0.5], "values": [0.25, 5], "tags": {}, "seen": 1}
        events = [
            Planned(trials=2, number=1),
            Asked.of(0, asked, number=2),
            Told(0, value=0.5, seconds=1.0, number=3),
            Asked.of(1, asked, number=4),
            Failed(1, reason="ValueError: no", number=5),
        ]
        journal.append(events)
    return path


def spoil(path, how):
    whole = path.read_bytes()
    if how == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "shorn":
        path.write_bytes(whole[:-1])
    elif how == "text":
        path.write_text("not a database, and long enough to have a header if it were one\n" * 9)
    elif how == "newer":
        path.write_bytes(whole[:60] + (99).to_bytes(4, "big") + whole[64:])
    elif how == "foreign":
        path.unlink()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (x)")
            connection.commit()
    elif how == "directory":
        path.unlink()
        path.mkdir()


SPOILT = {
    "truncated": "it is damaged (",
    "shorn": "it is damaged (",
    "text": "it is not a raybo journal (not an SQLite file); give another file",
    "newer": "a newer raybo wrote it (schema 99, this one reads 2); upgrade raybo",
    "foreign": "it is an SQLite file of another program; give another file",
    "directory": "it is a directory; give a file",
}


@pytest.mark.parametrize("how", SPOILT)
def test_unusable_journals_are_refused_and_unchanged(run, journal, how):
    spoil(journal, how)
    before = journal.read_bytes() if journal.is_file() else None
    for arguments in (["show", "job.db"], ["tune", "job.py"], ["tune", "job.py", "--storage", "job.db"]):
        one_line(run(*arguments), 1, "job.db: ", SPOILT[how])
    assert (journal.read_bytes() if journal.is_file() else None) == before
    assert [path.name for path in journal.parent.glob("*.db*")] == ["job.db"]


def test_read_only_journals_are_shown_but_not_continued(run, journal):
    journal.chmod(0o444)
    before = journal.read_bytes()
    assert run("show", "job.db")[0] == 0
    one_line(
        run("tune", "job.py", "--method", "random", "--seed", 0), 1, "job.db: it is read-only (-r--r--r--); make it"
    )
    assert journal.read_bytes() == before


def test_missing_journals_and_directories_are_refused(run, folder):
    one_line(run("show", "nowhere.db"), 1, "nowhere.db: no such file")
    one_line(run("tune", "job.py", "--storage", "no/job.db"), 1, "the directory", "does not exist; make it first")
    assert not list(folder.glob("*.db*"))


def test_another_studys_journal_is_refused_with_the_differences(run, journal):
    before = journal.read_bytes()
    for arguments, words in (
        (["--method", "sobol"], "method is 'random' in the journal and 'sobol' now"),
        (["--seed", "3"], "seed is 0 in the journal and 3 now"),
        (["--set", "offset=1"], 'settings is {} in the journal and {"offset": 1} now'),
    ):
        one_line(run("tune", "job.py", *arguments), 1, "it is the journal of another study: ", words)
    (journal.parent / "job.py").write_text(JOB.replace("Float(0, 1)", "Float(0, 20)"))  # not as long: Python caches
    one_line(run("tune", "job.py"), 1, "x is Float(low=0.0, high=1.0", "Float(low=0.0, high=20.0")
    assert journal.read_bytes() == before


def test_a_journal_that_is_being_written_is_refused(run, journal):
    with contextlib.closing(Journal(journal, description_of_job())):
        one_line(
            run("tune", "job.py"), 1, "job.db: another study is writing it (process", "this one); close that searcher"
        )
        assert run("show", "job.db")[0] == 0


@pytest.mark.usefixtures("unconnected")
def test_unreachable_and_malformed_addresses_are_refused(run, folder):
    one_line(run("tune", "job.py", "--address", "127.0.0.1:1"), 1, "nothing answers at 127.0.0.1:1", "start a cluster")
    for address in ("nonsense", "127.0.0.1:", ":6379", "127.0.0.1:99999999", "a" * 80 + ":1", "127.0.0.1:x"):
        refused(run("tune", "job.py", "--address", address), 1)


# ---- what is printed


def test_a_study_is_shown(run, journal):
    code, out, err = run("show", "job.db")
    assert (code, err) == (0, ""), (out, err)
    assert "job: max score, method random, seed 0; 1 finished, 1 failed" in out
    assert "ValueError: no" in out
    assert "recommended: trial 0, score 0.5, the best so far" in out
    code, last, _ = run("show", "job.db", "--last", "1")
    assert code == 0
    assert len(last.splitlines()) == len(out.splitlines()) - 1
    assert run("show", "job.db", "--all")[1] == out


@pytest.mark.parametrize("arguments", ["show job.db", "methods", "--help"])
def test_showing_may_be_cut_short_by_its_reader(journal, arguments):
    nobody, stdout = os.pipe()
    os.close(nobody)
    line = [sys.executable, "-m", "raybo.cli", *arguments.split()]
    done = subprocess.run(line, stdout=stdout, stderr=subprocess.PIPE, timeout=60, cwd=journal.parent, check=False)
    os.close(stdout)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("is_buffered", [True, False])
@pytest.mark.parametrize("command", ["--version", "tune --help", "methods", "schedulers --json", "completion bash"])
def test_output_on_a_full_disk_is_a_line(command, is_buffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if is_buffered else "1"}
    words = [sys.executable, "-m", "raybo.cli", *command.split()]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "Error: the output cannot be written (No space left on device)\n"


def test_methods_are_listed_with_their_options(run):
    code, out, err = run("methods")
    assert (code, err) == (0, ""), (out, err)
    assert all(f"{name}  " in out for name in methods.METHODS)
    code, one, _ = run("methods", "gp-ucb")
    assert code == 0
    assert "solver=random-grid" in one
    assert "sobol" not in one.split()[0]


def test_the_journal_is_named_after_the_file(run, folder, monkeypatch):
    for target, name in (("a/job.py", "job.db"), ("job.py:other", "job-other.db")):
        assert default_storage(target) == Path(name)


# ---- the arguments of the engine, and its answer


@pytest.fixture
def engine(monkeypatch):
    """Stand in for the engine: keep its arguments, and return or raise `engine.answer`."""

    class Engine:
        answer = None

        def tune(self, objective, **arguments):
            self.objective, self.arguments = objective, arguments
            if isinstance(self.answer, BaseException):
                raise self.answer
            return self.answer

    engine, real = Engine(), driver.tune

    def tune(*arguments, **named):
        inspect.signature(real).bind(*arguments, **named)
        return engine.tune(*arguments, **named)

    tune.__signature__ = inspect.signature(real)
    monkeypatch.setattr(driver, "tune", tune)
    return engine


def study(*ends):
    description = description_of_job()
    events = [Planned(trials=4, number=1)]
    for number, (kind, data) in enumerate(ends):
        events.append(Asked(number, x=[0, 0], values=[0.5, 3], tags={}, number=len(events) + 1))
        events.append(KINDS[kind].of(number, data, number=len(events) + 1))
    return Study(description, events)


FINISHED, FAILED = (Kind.TOLD, {"value": 0.5}), (Kind.FAILED, {"reason": "ValueError: no such rate"})


def test_every_option_reaches_the_engine(run, folder, engine):
    engine.answer = study(FINISHED)
    options = (
        "--trials 7 --method gp-ucb --seed 3 --storage s.db --workers 2 --address auto --budget 2h --price 2.5 --quiet"
    )
    more = "--trial-seconds 9 --retries 1 --set sleep=1 --set offset=a=b --option solver=cg --option points-per-round=5"
    Path("known.json").write_text('[{"x": 0.5, "n": 2}]')
    more += " --default n=2"
    more += " --retry-oom --from other.db --enqueue known.json --fresh-workers --retry-failed --keep-going --same-code"
    more += " --scheduler asha --scheduler-option eta=2 --artifacts kept --keep-checkpoints all"
    more += " --let-finish --cost tokens --prior old.db --prior studies --processes 2 --fidelity rows=1:9"
    more += " --confirm 2x3 --target 0.9 --patience 4 --stop-below-gain 0.01 --stop-when-not-worth 0.5"
    code, out, err = run("tune", "job.py", *options.split(), *more.split())
    assert (code, err) == (0, ""), (out, err)
    assert engine.objective.name == "job"
    assert engine.arguments == {
        **dict.fromkeys(("fresh_workers", "retry_failed", "retry_oom", "keep_going", "same_code"), True),
        "trials": 7,
        "method": "gp-ucb",
        "seed": 3,
        "storage": Path("s.db"),
        "workers": 2,
        "address": "auto",
        "budget": "2h",
        "price": 2.5,
        "let_finish": True,
        "cost": "tokens",
        "max_minutes": None,
        "trial_seconds": 9.0,
        "retries": 1,
        "settings": {"sleep": "1", "offset": "a=b"},
        "known_from": Path("other.db"),
        "enqueue": [{"x": 0.5, "n": 2}],
        "detach": False,
        "in_process": False,
        "fresh_workers": True,
        "watch": False,
        "solver": "cg",
        "points_per_round": "5",
        "scheduler": "asha",
        "scheduler_options": {"eta": "2"},
        "artifacts": "kept",
        "keep_checkpoints": "all",
        "processes": 2,
        "fidelity": "rows=1:9",
        "confirm": "2x3",
        "target": 0.9,
        "patience": 4,
        "stop_below_gain": 0.01,
        "stop_when_not_worth": 0.5,
        "defaults": {"n": "2"},
        "prior": ("old.db", "studies"),
    }


def test_what_nobody_says_is_left_to_the_engine(run, folder, engine):
    engine.answer = study(FINISHED)
    assert run("tune", "job.py")[0] == 0
    assert {name: value for name, value in engine.arguments.items() if value is None} == dict.fromkeys(
        "trials method seed workers address budget price cost max_minutes trial_seconds known_from artifacts confirm "
        "patience scheduler processes stop_below_gain stop_when_not_worth target fidelity".split()
    )
    assert engine.arguments["storage"] == Path("job.db")


def test_the_best_configuration_is_printed_at_the_end(run, folder, engine):
    engine.answer = study(FINISHED, FAILED)
    code, out, _ = run("tune", "job.py")
    assert code == 0
    assert "recommended: trial 0, score 0.5, the best so far" in out
    assert [line.split() for line in out.splitlines()[1:3]] == [["x", "0.5"], ["n", "3"]]
    assert "2 trials, saved in job.db" in out


def test_a_study_without_results_fails_with_the_reason(run, folder, engine):
    engine.answer = study(FAILED, FAILED)
    one_line(
        run("tune", "job.py"), 1, "none of the 2 trials has finished; the last one: ValueError: no such rate", "show"
    )


def test_ctrl_c_exits_130_and_explains_continuing(run, folder, engine):
    engine.answer = KeyboardInterrupt()
    code, out, err = run("tune", "job.py")
    assert (code, out) == (130, "")
    assert err.rstrip("\n") == "Stopped. The study is in job.db; the same command continues it."


def test_errors_of_many_lines_become_one(run, folder, engine):
    engine.answer = raybo.SpaceError("c: array([[1],\n       [2]]) is not one of ...")
    one_line(run("tune", "job.py"), 2, "c: array([[1], [2]]) is not one of ...")


def test_a_complete_study_explains_continuing(run, folder, engine):
    engine.answer = study(FINISHED, FAILED, FINISHED, FINISHED)
    assert "4 trials, saved in job.db; continue with --trials 8" in run("tune", "job.py")[1]


def test_detaching_prints_the_attach_and_stop_commands(run, folder, engine, monkeypatch):
    engine.answer = study()
    code, out, err = run("tune", "job.py", "--detach", "--address", "10.0.0.1:6379")
    assert (code, err) == (0, "")
    assert engine.arguments["detach"] is True
    at = "job --address 10.0.0.1:6379"
    assert out == f"job is running, saved in job.db\nraybo attach {at} follows it, raybo stop {at} stops it\n"
    assert "raybo attach job follows it" in run("tune", "job.py", "--detach")[1]
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", "http://127.0.0.1:8265")  # by which attach would look for a job
    assert "raybo attach job --address auto follows it" in run("tune", "job.py", "--detach")[1]


def test_a_log_is_kept_while_the_study_runs(run, folder, engine, journal):
    engine.answer = study(FINISHED)
    assert run("tune", "job.py", "--storage", journal, "--log", "csv=s.csv", "--quiet")[0] == 0
    watch = engine.arguments["watch"]
    watch(SimpleNamespace(last_event=1))
    assert Path("s.csv").read_text().startswith("number,state,value")


def test_several_logs_may_share_a_format(run, folder, engine, journal):
    engine.answer = study(FINISHED)
    logs = ["--log", "csv=s.csv", "--log", "csv=t.csv", "--log", "json=s.json"]
    assert run("tune", "job.py", "--storage", journal, *logs, "--quiet")[0] == 0
    engine.arguments["watch"](SimpleNamespace(last_event=1))
    assert all(Path(name).read_text() for name in ("s.csv", "t.csv", "s.json"))


# ---- what is compared


@pytest.fixture
def compared(monkeypatch):
    """Stand in for the comparison, and keep its arguments."""
    comparisons = []

    def compare(experiment, directory, **named):
        comparisons.append((experiment, directory, {name: value for name, value in named.items() if name != "watch"}))
        claim = Claim("b is better", "final_value", "b", "a")
        return [], [Verdict(claim, "job", 2.0, 1.0, (1.0, 0.5, 1.5), 0.005, 0.01, 6, side=1, is_judged=True)]

    monkeypatch.setattr(experiments, "compare", compare)
    monkeypatch.setattr(experiments.summary, "write_summary", lambda known, out: out)
    monkeypatch.setattr(experiments, "table", lambda experiment, rows: (["problem"], [["job"]]))
    return comparisons


def test_results_beyond_the_optimum_are_named(run, folder, compared, monkeypatch):
    """A sign may be wrong: regrets below 0 would say that runs are better than the best."""
    rows = [Row("job", "ei", s, "max", {"final_value": 2.0 + s, "final_regret": 0.5 - s}) for s in range(3)]
    monkeypatch.setattr(experiments, "compare", lambda *_, **named: (rows, []))
    of = ("compare", "job.py:job", "--methods", "random,ei")
    _, _, err = run(*of, "--optimum", "2.5")
    assert err.startswith("ei, seed 2, reached 4, which is better than --optimum 2.5:")
    rows = rows[:1]
    assert run(*of, "--optimum", "2.5")[2] == ""


def test_every_option_of_compare_reaches_the_comparison(run, folder, compared):
    options = "--repeats 3 --trials 7 --seed 4 --set sleep=1 --optimum 2.5 --per cost --workers 2"
    options += " --address auto --output there"
    code, out, err = run("compare", "job.py:job", "--methods", "random,gp-ucb:solver=cg:grid=fixed", *options.split())
    assert (code, err) == (0, "")
    ((experiment, directory, named),) = compared
    (problem,) = experiment.problems
    assert (problem.name, problem.target, problem.trials) == ("job-job", "job.py:job", 7)
    assert (problem.optimum, problem.settings) == (2.5, {"sleep": "1"})
    assert [(entry.name, entry.method, entry.options) for entry in experiment.entries] == [
        ("random", "random", {}),
        ("gp-ucb:solver=cg:grid=fixed", "gp-ucb", {"solver": "cg", "grid": "fixed"}),
    ]
    assert (experiment.repeats, experiment.first_seed, experiment.curve) == (3, 4, "simple_regret")
    assert experiment.per == "cost"
    assert (directory, named) == (
        Path("there"),
        {"root": None, "workers": 2, "address": "auto", "in_process": False, "until": None},
    )
    assert "job: b is better: holds (p = 0.010, 6 pairs of runs)" in out


def test_a_methods_option_may_hold_commas(run, folder, compared):
    fixed = "ei:hyperparameters=lengthscale=0.3,noise_variance=1e-4:initial=3"
    run("compare", "job.py", "--methods", f"random, {fixed},gibo:learning_rate=0.1, .2,auto@median", "--in-process")
    ((experiment, _, _),) = compared
    assert [(entry.method, entry.options) for entry in experiment.entries] == [
        ("random", {}),
        ("ei", {"hyperparameters": "lengthscale=0.3,noise_variance=1e-4", "initial": "3"}),
        ("gibo", {"learning_rate": "0.1, .2"}),
        ("auto", {}),
    ]


@pytest.mark.parametrize("flag", ["--in-process", "--here"])
def test_compare_takes_its_old_name_of_in_process(run, folder, compared, flag):
    assert run("compare", "job.py", "--methods", "random", flag)[0] == 0
    ((_, _, named),) = compared
    assert named["in_process"]
    assert "--here" not in run("compare", "--help")[1]


def test_reproduce_runs_the_experiment_with_given_repeats(run, monkeypatch, compared):
    root = Path(raybo.__file__).parents[1]
    monkeypatch.chdir(root)
    assert run("reproduce", "inexact-fig[34]", "--repeats", "2", "--workers", "1", "--out", "there")[0] == 0
    assert run("reproduce", "auto-default")[0] == 0
    runs = [(experiment.name, experiment.repeats, directory, named) for experiment, directory, named in compared]
    here = {"root": root, "address": None, "in_process": False, "until": None}
    assert runs == [
        ("inexact-fig3", 2, Path("there/inexact-fig3"), {**here, "workers": 1}),
        ("inexact-fig4", 2, Path("there/inexact-fig4"), {**here, "workers": 1}),
        ("auto-default", 12, Path("reproduction/auto-default"), {**here, "workers": None}),
    ]


# ---- whole processes with a Ray of their own


def processes():
    """Every process of the machine: its number, when it began, its parent, and its state."""
    by_pid = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                by_pid[int(entry.name)] = (fields[19], int(fields[1]), fields[0])
    return by_pid


def name_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


HURRY = 240.0  # seconds after which something that should have happened has not
GONE = 90.0  # seconds in which whatever a command has started is gone after it, on a busy machine
AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")  # Ray's own; they notice a killed driver after a minute


class Command:
    """`raybo ...` as a process, in a group of its own as a shell would start it; remembers all its descendants."""

    def __init__(self, *arguments, cwd):
        command = [sys.executable, "-m", "raybo.cli", *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # a suite that runs in the background ignores Ctrl-C, and so would its children: a terminal's do not
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.family: set[tuple[int, str]] = set()

    def look(self):
        """Take down who descends from the command now."""
        running = processes()
        members = {self.process.pid}
        while more := {pid for pid, (_, parent, _) in running.items() if parent in members} - members:
            members |= more
        self.family |= {(pid, running[pid][0]) for pid in members if pid in running}

    def until(self, ready):
        give_up = time.monotonic() + HURRY
        while not ready():
            self.look()
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.05)
        self.look()

    def end(self):
        """Exit code, stdout and stderr, when it has ended."""
        out, err = self.process.communicate(timeout=HURRY)
        assert "Traceback" not in err
        return self.process.returncode, out, err

    def left(self, but=()):
        """Return the processes of the family that still live, but for those of these names."""
        running = processes()
        alive = {
            pid for pid, began in self.family if pid in running and running[pid][0] == began and running[pid][2] != "Z"
        }
        return {pid for pid in alive if not name_of(pid).startswith(tuple(but))} if but else alive

    def gone(self):
        give_up = time.monotonic() + GONE
        while self.left() and time.monotonic() < give_up:
            time.sleep(0.1)
        return not self.left()

    def kill(self):
        """Whatever happens, leave nothing behind."""
        for pid in self.left() | {self.process.pid}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def start(folder):
    commands = []

    def start(*arguments):
        commands.append(Command(*arguments, cwd=folder))
        return commands[-1]

    yield start
    for command in commands:
        command.kill()


@pytest.fixture
def let_end(folder):
    """Lets so many trials of the job end: a study is under way for as long as a test needs."""
    gate = folder / "gate"
    wait = f"    while raybo.current_trial().number >= os.path.getsize({str(gate)!r}):\n        time.sleep(0.02)\n"
    slept = "    time.sleep(sleep)\n"
    (folder / "job.py").write_text(f"import os\n{JOB.replace(slept, slept + wait)}")
    return lambda trials: gate.write_bytes(bytes(trials))


def states(path):
    try:
        return [trial.state for trial in raybo.load(path).trials]
    except raybo.JournalError:
        return []


def finished(path, number):
    return lambda: states(path).count(State.FINISHED) >= number


def listeners(family):
    """Addresses on which processes of the family listen, as /proc writes them."""
    inodes = set()
    for pid, _ in family:
        with contextlib.suppress(OSError):
            for handle in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.add(os.readlink(handle))
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
def test_repeating_the_command_continues_the_study(start, folder, let_end):
    let_end(1)
    first = start("tune", "job.py", "--trials", 4, "--workers", 2, "--seed", 1, "--set", "sleep=0.5")
    first.until(finished(folder / "job.db", 1))
    assert listeners(first.family)
    assert listeners(first.family) <= LOOPBACK  # reachable from this machine only
    let_end(6)
    code, out, err = first.end()
    assert (code, err) == (0, ""), (out, err)
    lines = out.splitlines()
    assert "4/4 trials" in out
    told = next(i for i, line in enumerate(lines) if line.startswith("recommended: trial"))
    first_name = next(i for i, line in enumerate(lines) if i > told and line.startswith("  "))  # a sentence may be long
    assert [line.split()[0] for line in lines[first_name : first_name + 2]] == ["x", "n"]
    assert all(line.startswith("files: job.trials/") for line in lines[first_name + 2 : -1])
    assert "4 trials, saved in job.db" in lines[-1]
    assert "| said by a trial" in out
    assert "raylet" not in out
    assert first.gone()

    before = raybo.load(folder / "job.db")
    second = start("tune", "job.py", "--trials", 6, "--set", "sleep=0.5", "--quiet")
    code, out, err = second.end()
    assert (code, err) == (0, ""), (out, err)
    assert out.startswith("recommended: trial")
    after = raybo.load(folder / "job.db")
    assert [repr(trial) for trial in after.trials[:4]] == [repr(trial) for trial in before.trials]
    assert [trial.state for trial in after.trials] == [State.FINISHED] * 6
    assert sorted(path.name for path in folder.glob("job.db*")) == ["job.db"]


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
@pytest.mark.parametrize("whom", ["group", "driver"])
def test_ctrl_c_leaves_a_stopped_study_whole(start, folder, whom):
    command = start("tune", "job.py", "--trials", 100, "--workers", 2, "--method", "random", "--set", "sleep=0.3")
    command.until(finished(folder / "job.db", 3))
    (os.killpg if whom == "group" else os.kill)(command.process.pid, signal.SIGINT)
    code, _, err = command.end()
    assert code == 130
    assert err.rstrip("\n") == "Stopped. The study is in job.db; the same command continues it."
    assert command.gone()
    _, events = read(folder / "job.db")
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    ended = states(folder / "job.db")
    assert ended.count(State.FINISHED) >= 3
    assert ended.count(State.PENDING) == 0
    assert ended.count(State.STOPPED) <= 2
    assert set(ended) <= {State.FINISHED, State.STOPPED}
    assert sorted(path.name for path in folder.glob("job.db*")) == ["job.db"]


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
def test_finished_trials_survive_a_killed_driver(start, folder, let_end):
    let_end(5)
    arguments = ["tune", "job.py", "--trials", 12, "--workers", 2, "--method", "random", "--set", "sleep=0.3"]
    first = start(*arguments)
    first.until(finished(folder / "job.db", 3))
    first.process.kill()
    let_end(12)
    before = [trial for trial in raybo.load(folder / "job.db").trials if trial.state is State.FINISHED]
    second = start(*arguments)  # at once: what is left of the first still holds the journal
    code, out, err = second.end()
    assert (code, err) == (0, ""), (out, err)
    assert "12/12 trials" in out
    trials = raybo.load(folder / "job.db").trials
    assert [trial.state for trial in trials] == [State.FINISHED] * 12
    for trial in before:
        assert repr(trials[trial.number]) == repr(trial)
    assert sum(trial.attempt > 1 for trial in trials) <= 2
    assert second.gone()
    assert first.left(but=AGENTS) == set()


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(900)
def test_rays_messages_of_dying_workers_are_hidden(start, folder):
    """Ray prints to the driver's stdout whatever its settings; `raybo tune ... > file` must not have it."""
    text = JOB.replace("    time.sleep(sleep)\n", "    import os; os._exit(1)\n")
    (folder / "job.py").write_text(text)
    command = start("tune", "job.py", "--trials", 2, "--workers", 2, "--method", "random", "--retries", 1)
    code, out, err = command.end()
    assert code == 1
    assert err.startswith("Error: none of the 2 trials has finished; the last one: its worker died")
    assert err.count("\n") == 1
    starting, *lines = out.splitlines()
    assert starting == "Starting Ray ..."
    assert all(line.startswith("trial ") or "/2 trials" in line for line in lines)
    assert out.count("starts again (attempt 2)") == 2
    assert command.gone()


def test_the_command_is_there_as_a_module():
    done = subprocess.run([sys.executable, "-m", "raybo", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"raybo, version {raybo.__version__}\n"


def test_a_place_far_away_is_told_whole(monkeypatch, tmp_path):
    """A job of a cluster runs in a directory of its own, from which the way to the journal says nothing."""
    from raybo.cli.conclusion import conclude
    from raybo.cli.console import make_console

    deep = tmp_path.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0)
    events = [searcher.apply(searcher.propose(searcher.history)), searcher.apply(Told(0, value=0.5))]
    path = tmp_path / "job.db"
    (tmp_path / "job.trials" / "0").mkdir(parents=True)
    study = Study(Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0), events, path)
    printed = {}
    for where in (tmp_path, deep):
        monkeypatch.chdir(where)
        console = make_console()
        with console.capture() as captured:
            conclude(console, study, path)
        printed[where] = next(line for line in captured.get().splitlines() if line.startswith("files"))
    assert printed[tmp_path] == "files: job.trials/0"
    assert printed[deep] == f"files: {tmp_path}/job.trials/0"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_unencodable_characters_are_printed_as_escapes(tmp_path, encoding):
    searcher = raybo.Searcher({"größe 大": raybo.Float(0, 1)}, "random", seed=0)
    events = [searcher.apply(searcher.propose(searcher.history)), searcher.apply(Told(0, value=0.5))]
    journal = Journal(tmp_path / "job.db", Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0))
    journal.append(events)
    journal.close()
    done = subprocess.run(
        [sys.executable, "-m", "raybo", "show", "job.db"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=True,
    )
    assert "größe \\u5927".encode(encoding, "backslashreplace") in done.stdout
    assert done.stderr == b""


def test_a_directory_that_is_gone_is_told_in_a_line(run, folder, tmp_path, monkeypatch):
    gone, job = tmp_path / "gone", folder / "job.py"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, out, err = run("tune", job, "--in-process", "--trials", 1)
    assert (code, out, err) == (1, "", "Error: the current directory no longer exists; go to one that does\n")
