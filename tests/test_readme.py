"""The documentation's promises: README and docs/ are run as they stand, page by page; their tables are the code's.

A page is read in its order, in an empty directory beside `trials/`. Its Python blocks share a namespace; a block that
begins with a comment such as `# trials/papers/mine.py` is saved there first, and one that defines an objective as a
file of the objective's name; `raybo.tune` runs at most 20 trials. Its shell blocks run in this process, with 4 trials
per study and 2 repeats whatever they say; what installs something, needs a cluster or takes hours is only checked:
commands and options, extras, modules and experiments exist. SQL blocks run on the page's journal. A line
`<!-- not run: why -->` before a block leaves it out.

A table that sets another library beside raybo is run cell by cell: theirs with the names that the page's first Python
block has left behind, ours with those of the page so far.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import raybo
from raybo import methods
from raybo.cli import cli, main
from raybo.experiments.papers import find_experiments
from raybo.journal.schema import TABLES
from raybo.record.description import COMPARED, DEFAULTS_SINCE_0_2
from raybo.record.events import KEYS, Kind
from raybo.reporting.formatting import shown
from tests.imports import reduced, rooms

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
DOCS = sorted(path for path in (ROOT / "docs").rglob("*.md") if "reproduction" not in path.parts)
PAGES = {path.relative_to(ROOT).as_posix(): path for path in [ROOT / "README.md", *DOCS]}
LEFT_OUT = re.compile(r"<!-- not run: .+ -->")
SHOWN_ONLY = {"text", "mermaid", "yaml", "toml", "json", "{toctree}", "{eval-rst}", "{include}"}
LIBRARIES = {"Optuna": True, "Ray Tune": True, "scikit-learn": True, "Hyperopt": False}  # whether it is there to be run
NOT_RUN = {".", "git", "pytest", "ruff", "mypy", "lint-imports", "ray", "ssh", "export", "docker", "kubectl"}
NOT_RUN |= {"chmod", "sphinx-build"}
ON_A_CLUSTER = {"attach", "stop", "submit", "jobs", "fetch"}
SERVES = {"view", "mcp"}  # until Ctrl-C, or the end of its input
TRIALS, REPEATS = "4", "2"
OF_TRAINERS = {"boosted.py": "2"}  # their trials start seven processes each
TRIALS_IN_PYTHON = 20


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: where it begins, its language, its text."""

    where: str
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The file's name on the page, if it is one of the reader's."""
        if named := re.match(r"# ([\w/]+\.py)\n", self.text):
            return named[1]
        objective = re.search(r"@raybo\.objective\(.*?^def (\w+)\(", self.text, re.DOTALL | re.MULTILINE)
        return f"{objective[1]}.py" if objective else None


def blocks(path):
    found, lines = [], path.read_text(encoding="utf-8").splitlines()
    begun, before = None, ""
    for number, line in enumerate(lines, 1):
        beside = re.fullmatch(r"\| ([\w -]+) \| raybo \|", line)
        if beside and begun is None:
            rows = list(itertools.takewhile(lambda row: row.startswith("|"), lines[number + 1 :]))
            found.append(Block(f"{path.name}:{number}", beside[1], "\n".join(rows)))
        if not line.startswith("```"):
            before = line if begun is None and line.strip() else before
        elif begun is None:
            begun = number
        else:
            text = "\n".join(lines[begun : number - 1]) + "\n"
            if not LEFT_OUT.fullmatch(before):
                found.append(Block(f"{path.name}:{begun}", lines[begun - 1].removeprefix("```"), text))
            begun, before = None, ""
    assert begun is None, f"{path.name}:{begun}: a block without an end"
    return found


def commands(block):
    """The commands of a shell block, as lists of words."""
    for line in block.text.replace("\\\n", " ").splitlines():
        for part in line.split("&&"):
            if words := shlex.split(part, comments=True):
                yield words


@pytest.fixture
def folder(tmp_path):
    """An empty directory, whose modules are forgotten afterwards."""
    yield tmp_path
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name.startswith(("raybo_objective_", "raybo_papers_")) or file.startswith(str(tmp_path)):
            del sys.modules[name]


def read_page(path, folder, monkeypatch):
    """Do what a reader of the page does; returns the namespace that its Python blocks leave."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])  # as for a script that is there
    (folder / "trials" / "papers").mkdir(parents=True)
    for file in (ROOT / "trials").iterdir():
        if file.name != "papers":
            (folder / "trials" / file.name).symlink_to(file)
    monkeypatch.setattr(raybo, "tune", _with_few_trials(raybo.tune))
    namespace, theirs = {"__name__": "__main__"}, {}
    for block in blocks(path):
        if block.language in LIBRARIES:
            run_side_by_side(block, theirs, namespace)
        elif block.language == "python":
            if block.file:
                (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
                (folder / block.file).write_text(block.text, encoding="utf-8")
            exec(compile(block.text, block.where, "exec"), namespace)
            if "raybo" not in block.text:  # the other library's code, which the tables translate
                theirs = theirs or dict(namespace)
        elif block.language == "sh":
            for words in commands(block):
                perform(words, block.where, folder, monkeypatch)
        elif block.language == "sql":
            (kept,) = folder.glob("*.db")
            with sqlite3.connect(kept) as connection:
                assert connection.execute(block.text).fetchall(), f"{block.where}: it finds nothing"
            connection.close()
        else:
            assert block.language.partition(" ")[0] in SHOWN_ONLY, (
                f"{block.where}: a block of {block.language or 'no language'}"
            )
    return namespace


def _with_few_trials(tune):
    def with_few_trials(*given, **options):
        if "trials" in options:
            options["trials"] = min(options["trials"], TRIALS_IN_PYTHON)
        return tune(*given, **options)

    return with_few_trials


def run_side_by_side(block, theirs, ours):
    """Run a table of two columns of code, row by row."""
    for row in block.text.splitlines():
        cells = re.fullmatch(r"\| `([^`]+)` \| `([^`]+)` \|", row)
        assert cells, f"{block.where}: {row}"
        their_code, our_code = (compile(cell, f"{block.where}: {cell}", "exec") for cell in cells.groups())
        if LIBRARIES[block.language]:
            exec(their_code, theirs)
        exec(our_code, ours)


def perform(words, where, folder, monkeypatch):
    """Run a command of a page, or check it where it cannot be run here."""
    program, *arguments = words
    if program == "raybo":
        raybo_command(arguments, where, folder, monkeypatch)
    elif program == "pip":
        extras = re.findall(r"^([\w-]+) = \[", PROJECT.partition("[project.optional-dependencies]")[2], re.MULTILINE)
        for extra in re.findall(r"[\w-]+", "".join(re.findall(r"\[(.*?)\]", " ".join(arguments)))):
            assert extra in extras, f"{where}: there is no extra {extra}"
    elif program in ("python", "python3") and arguments[0] == "-m":
        spec = importlib.util.find_spec(arguments[1])
        assert spec is not None, f"{where}: there is no module {arguments[1]}"
        assert spec.submodule_search_locations is None or importlib.util.find_spec(f"{arguments[1]}.__main__")
    elif program == "bash":
        assert (ROOT / arguments[0]).is_file(), f"{where}: there is no file {arguments[0]}"
    elif program == "cd":
        assert arguments == ["raybo"], f"{where}: the clone is called raybo"
    else:
        assert program in NOT_RUN, f"{where}: what is {program}?"


def raybo_command(arguments, where, folder, monkeypatch):
    name, *rest = arguments
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"{where}: there is no command {name}"
    given = command.make_context(name, list(rest)).params  # raises where an option is unknown or its value wrong
    if name in ON_A_CLUSTER or name in SERVES or given.get("address") or given.get("detach"):
        return
    if name == "reproduce" and given["names"]:
        known = {**find_experiments(ROOT)[1], **find_experiments(folder)[1]}
        prefixes = [pattern.rstrip("*") for pattern in given["names"]]
        assert all(any(one.startswith(prefix) for one in known) for prefix in prefixes), f"{where}: {given['names']}"
        if not all(any(one.startswith(prefix) for one in find_experiments(folder)[1]) for prefix in prefixes):
            return
    monkeypatch.setattr(sys, "argv", ["raybo", name, *shortened(name, rest)])
    code: object = 0
    try:
        main()
    except SystemExit as leaving:
        code = leaving.code
    assert not code, f"{where}: raybo {' '.join(arguments)} ended with {code}"


def shortened(name, rest):
    """The same command with so few trials and repeats that it takes seconds."""
    cut = {"--trials": OF_TRAINERS.get(rest[0], TRIALS)} if name in ("tune", "compare") else {}
    cut |= {"--repeats": REPEATS} if name == "compare" or (name == "reproduce" and rest) else {}
    kept = [word for i, word in enumerate(rest) if word not in cut and (i == 0 or rest[i - 1] not in cut)]
    return [*kept, *(word for pair in cut.items() for word in pair)]


LONG = [pytest.mark.slow, pytest.mark.timeout(900)]
STUDIES = re.compile(
    r"^raybo (tune|compare|reproduce) |\braybo\.tune\(|tune\.Tuner\(|`study = raybo\.tune", re.MULTILINE
)
NEEDED = {"docs/tutorials/lora.md": "torch"}  # what a page needs and not everybody has
LONG_PAGES = {page for page, path in PAGES.items() if STUDIES.search(path.read_text(encoding="utf-8"))}


@pytest.mark.ray
@pytest.mark.parametrize("page", [pytest.param(name, marks=LONG if name in LONG_PAGES else ()) for name in PAGES])
def test_a_page_is_run_as_it_stands(page, folder, monkeypatch, ray_session):
    if page in NEEDED:
        pytest.importorskip(NEEDED[page], reason=f"{NEEDED[page]} is not installed")
    namespace = read_page(PAGES[page], folder, monkeypatch)
    if page == "docs/tutorials/first-study.md":
        assert namespace["study"].count(raybo.State.FINISHED) == TRIALS_IN_PYTHON
    if page in ("README.md", "docs/tutorials/first-study.md"):
        assert namespace["searcher"].best.value > 0.9


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 170
    first = next(block for block in blocks(ROOT / "README.md") if block.language == "sh").text
    assert {"trials", "plot", "view"} <= set(re.search(r"\[(.*?)\]", first)[1].split(","))


def test_readme_figures_have_a_command():
    claims = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", claims.partition("\n## ")[0], re.MULTILINE)
    assert all("`" in command or command.startswith(("the README", "[below]")) for _, command in rows[2:])
    words = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", README, flags=re.DOTALL)
    figures = {figure.rstrip(",") for figure in re.findall(r"\d[\d,]*(?:\.\d+)?", words)}
    known = {figure.rstrip(",") for figure in re.findall(r"\d[\d,]*(?:\.\d+)?", claims)}
    assert {figure for figure in figures if len(figure) > 1} <= known
    for command in re.findall(r"`(python -m [\w.]+|pytest [^`]+)", claims):
        for named in re.findall(r"tests/[\w/.]+", command):
            assert (ROOT / named).exists(), named
        if command.startswith("python"):
            assert importlib.util.find_spec(command.split()[-1]) is not None, command


# ---- what the pages name is there


def test_every_method_is_named_and_every_file_exists():
    overview = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    for name in methods.METHODS:
        assert f"`{name}`" in overview, name
    for path in PAGES.values():
        for named in re.findall(r"(?:trials|raybo|tests)/[a-z_/]+\.py", path.read_text(encoding="utf-8")):
            if named not in [block.file for block in blocks(path)]:
                assert (ROOT / named).is_file(), f"{path.name}: {named}"


def test_families_have_matching_folders_and_pages():
    for name, home in methods.METHODS.items():
        page = ROOT / "docs" / f"{home.split('.')[2].replace('_', '-')}.md"
        assert f"`{name}`" in page.read_text(encoding="utf-8"), f"{page.name} does not name {name}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = PAGES[page].read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", text):
        assert (PAGES[page].parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_options_are_the_methods_own(page):
    for row in re.findall(r"^\| `(\w+)=([^`]*)` \| (.+?) \|", PAGES[page].read_text(encoding="utf-8"), re.MULTILINE):
        option, default, of = row
        for name in re.findall(r"`([^`]+)`", of):
            options = {known: value for known, value, _ in methods.describe(name)[1]}
            assert option in options, f"{name} has no option {option}"
            assert shown(options[option]) == default, f"{name}: {option}={shown(options[option])}"


# ---- architecture


ARCHITECTURE = ROOT / "docs" / "architecture.md"


def test_architecture_diagram_matches_imports():
    text = next(block.text for block in blocks(ARCHITECTURE) if block.language == "mermaid")
    drawn = re.findall(r"^ *(\w+) -->(?:\|\w+\|)? (\w+)$", text, re.MULTILINE)
    assert sorted(drawn) == sorted(reduced(rooms(ROOT / "raybo")))


def test_functions_of_the_walk_exist():
    rows = re.findall(r"^\| \w+ \| (`raybo/.+?) \| (.+?) \|", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 30
    for files, names in rows:
        defined, folder = set(), Path()
        for file in re.findall(r"`([\w/.]+)`", files):
            path = ROOT / file if "/" in file else folder / file  # the second of a cell may lie beside the first
            path = path if path.exists() else folder.parent / file
            folder = path.parent
            tree = ast.parse(path.read_text(encoding="utf-8"))
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            defined |= {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", names):
            assert name in defined, f"{files} has no {name}"


# ---- the journal


def test_journal_page_lists_tables_and_events():
    text = (ROOT / "docs" / "journal.md").read_text(encoding="utf-8")
    plain = " ".join(text.split())
    for statement in TABLES:
        assert " ".join(statement.split()) in plain, statement
    sections = dict(zip(*[iter(re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:])] * 2, strict=True))
    for kind in Kind:
        assert f"| `{kind}` |" in sections["Events"], kind
    for key in KEYS:
        assert f"`{key}`" in sections["Events"], key
    for name in ("space", "context", *COMPARED, *DEFAULTS_SINCE_0_2):
        assert f"`{name}`" in sections["Tables"], name


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "mcmc" else ()) for name in methods.METHODS]
)
def test_the_page_of_the_journal_names_every_tag(name):
    text = (ROOT / "docs" / "journal.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (.+?) \| .+ \|$", text, re.MULTILINE))))
    named |= set(re.findall(r"`(\w+)`", methods.load(name).__doc__))  # or its own class says what they mean
    context = {"context": {"load": raybo.Float(0, 1)}} if methods.needs_context(name) else {}
    searcher = raybo.Searcher({"x": raybo.Float(0, 1), "y": raybo.Float(0, 1)}, name, seed=0, trials=14, **context)
    for i in range(14):
        trial = searcher.ask()
        met = {"context": {"load": 0.1 + 0.05 * i}} if context else {}
        searcher.tell(trial, -((trial.config["x"] - 0.3) ** 2) - trial.config["y"], **met)
        unnamed = set(trial.tags) - named
        assert not unnamed, f"name {unnamed} in the class's docstring or on docs/journal.md"


def test_journal_page_lists_shared_tags():
    text = (ROOT / "docs" / "journal.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (.+?) \| .+ \|$", text, re.MULTILINE))))
    space = {"x": raybo.Float(0, 1, guess=0.4), "y": raybo.Float(0, 1)}
    goals = {"metrics": {"a": "max", "b": "min"}, "constraints": {"c": "<= 0.9"}}
    written = set()
    for method in ("auto", "ei", "gp-ucb"):
        searcher = raybo.Searcher(space, method, seed=0, trials=14, **goals)
        for _ in range(14):
            x, y = searcher.ask().config.values()
            written |= set(searcher.tell(searcher.trials[-1], {"a": x, "b": x + y, "c": y}).tags)
    searcher = raybo.Searcher(space, seed=0, trials=40, steps=9, scheduler="curve", scheduler_options={"first": 3})
    for _ in range(16):
        trial = searcher.ask()
        for step in range(1, 10):
            if searcher.report(trial, trial.config["x"] * step, step).prune:
                trial = searcher.prune(trial)
                break
        else:
            trial = searcher.tell(trial, 9 * trial.config["x"])
        written |= set(trial.tags)
    searcher = raybo.Searcher(space, seed=0, trials=40, steps=9, scheduler="asha", **goals)
    for _ in range(16):
        trial = searcher.ask()
        x, y = trial.config.values()
        for step in range(1, 10):
            if searcher.report(trial, told := {"a": x * step, "b": x + y, "c": y}, step).prune:
                trial = searcher.prune(trial)
                break
        else:
            trial = searcher.tell(trial, told)
        written |= set(trial.tags)
    expected = {"by_guess", "curves", "theta_1", "theta_limit_0", "theta_1_curves", "theta_limit_0_curves", "feasible"}
    assert expected <= written <= named, written - named


# ---- contributing


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("room", ["methods", "schedulers"])
def test_the_examples_for_raybo_pass_the_contracts(tmp_path, room):
    """As a reader adds them to a clone: the file and its test, and nothing else but what a command writes."""
    page = [block for block in blocks(ROOT / "docs" / "contributing.md") if block.file]
    (example,) = [block for block in page if block.file.startswith(f"raybo/{room}/")]
    own = [block for block in page if block.file.startswith(f"tests/{room}/")]
    for part in ("raybo", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md", "CITATION.cff", "trials"):
        ignored = shutil.ignore_patterns("__pycache__", "evidence", "reproduction", "papers")
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part, **({"ignore": ignored} if (ROOT / part).is_dir() else {}))
    for block in (example, *own):
        (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    name = Path(example.file).stem
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run(*command):
        ran = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-3_000:] + ran.stderr[-1_000:]
        return ran.stdout

    run("tests.generated")
    tests = [f"tests/{room}/test_contract.py", "tests/methods/test_keywords.py", *(block.file for block in own)]
    told = run("pytest", "-q", "-n0", "-p", "no:cacheprovider", "-k", f"{name} or generated or no_option", *tests)
    assert int(re.search(r"(\d+) passed", told)[1]) > 30
    assert f"`{name}`" in (tmp_path / "docs" / f"{room}.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_examples_for_other_packages_pass(tmp_path):
    for block in blocks(ROOT / "docs" / "how-to" / "your-own-method.md"):
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_nearby.py"]
    environment = {**os.environ, "PYTHONPATH": path}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert ran.returncode == 0, ran.stdout[-3_000:] + ran.stderr[-1_000:]


# ---- claims about the whole


def test_changelog_and_citation_match_the_version():
    import yaml

    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (
        re.search(r"^## (.+) - \d{4}-\d\d-\d\d$", changes, re.MULTILINE)[1]
        == raybo.__version__
        == str(cited["version"])
    )
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    titles = {reference["title"].casefold() for reference in cited["references"]}
    pages = " ".join(" ".join(path.read_text(encoding="utf-8").split()) for path in DOCS).casefold()
    assert len(titles) == 5
    assert all(title in pages for title in titles)
    assert "](CITATION.cff)" in README
    first_authors = {reference["authors"][0]["family-names"] for reference in cited["references"]} - {"Freitas"}
    assert all(re.search(rf"papers by [^;]*\b{name}\b", README) for name in first_authors)
