"""What may be typed: every line ends in a result or in one line that says what is wrong, and harms nothing."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from tests.adversary import journals, values
from tests.adversary.faults import Case, fingerprint, run_command

JOB = """
import raybo


@raybo.objective(space={"x": raybo.Float(0, 1), "c": raybo.Categorical(["a", "b"])}, metric="score")
def job(config, *, offset: float = 0.0, name: str = "n"):
    return {"score": config["x"] + offset}


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="score")
def broken(config):
    raise ValueError("\\x1b[2J of the job")
"""
FILES = {
    "job.py": JOB,
    "empty.py": "",
    "wrong.py": "def (",
    "raises.py": "raise SystemExit(3)",
    "not_utf8.py": "x = '\udcff'",
    "list.json": json.dumps([{"x": 0.5, "c": "a"}]),
    "deep.json": "[" * 1_000,
    "wrong.json": json.dumps([{"x": 7}, 3]),
    "notes.txt": "keep me",
}
TARGETS = (
    *("job.py:job", "job.py:broken", "job.py", "job.py:nobody", "job.py:", "empty.py", "wrong.py", "raises.py"),
    *("not_utf8.py", "missing.py", ".", "notes.txt", "job.py:raybo", "job.py:job:job", ":job", "list.json"),
)
JOURNALS = ("study.db", "notes.txt", "missing.db", ".", "empty.db", "job.py", "missing/study.db")
LINES = 12  # per case


def attack(rng: Random, directory: Path) -> Case:
    """Command lines of whatever kind, all but those that start a Ray."""
    for name, text in FILES.items():
        (directory / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    (directory / "empty.db").touch()
    journals.lay(journals.original(open_log=False), directory)
    case = Case("command lines", tried=LINES)
    kept = {name: content for name, content in fingerprint(directory).items() if not name.startswith("study.db-")}
    for _ in range(LINES):
        line = [each.replace("\x00", "0") for each in _line(rng)]  # no shell passes a null byte
        line = [
            each.encode(
                "utf-8", "surrogateescape" if all(c < "\ud800" or c > "\udfff" for c in each) else "replace"
            ).decode("utf-8", "replace")
            for each in line
        ]
        _, wrong = run_command(line, directory)
        case.faults += [f"raybo {' '.join(map(repr, line))}: {each}" for each in wrong]
        now = fingerprint(directory)
        harmed = [name for name, content in kept.items() if now.get(name) != content]
        if harmed and line[0] not in ("enqueue",):
            case.faults.append(f"raybo {' '.join(map(repr, line))}: it changed {', '.join(harmed)}")
            kept = now
        if line[0] == "enqueue":
            kept = now
    return case


def _line(rng: Random) -> list[str]:
    command = rng.choice(
        [
            "show",
            "show",
            "show",
            "export",
            "export",
            "plot",
            "enqueue",
            "enqueue",
            "methods",
            "tune",
            "tune",
            "tune",
            "compare",
            "reproduce",
            "submit",
            "jobs",
            "fetch",
            "attach",
            "stop",
            "nonsense",
        ]
    )
    return [command, *_ARGUMENTS.get(command, _strangers)(rng)]


def _strangers(rng: Random) -> list[str]:
    return [
        *_some(rng, [[values.text(rng)], ["--" + values.text(rng)], ["--help"]], 1),
        *(["--nonsense"] * rng.randint(0, 1)),
    ]


def _some(rng: Random, parts: list[list[str]], least: int = 0) -> list[str]:
    return [each for part in rng.sample(parts, rng.randint(least, len(parts))) for each in part]


def _show(rng: Random) -> list[str]:
    flags = [
        ["--last", values.text(rng)],
        ["--last", "-3"],
        ["--all"],
        ["--trial", rng.choice(["3", "-1", "29", "99", "x"])],
    ]
    return [rng.choice(JOURNALS), *_some(rng, [*flags, ["--replay"], ["--context", f"x={values.text(rng)}"]])[:4]]


def _export(rng: Random) -> list[str]:
    form = rng.choice(["csv", "json", "optuna", "mlflow", "tensorboard", values.text(rng)])
    where = {"tensorboard": ["made", "job.py", "missing/made"], "mlflow": ["zz://q", "job.py/x", "http://127.0.0.1:1"]}
    places = where.get(form, ["made.out", ".", "missing/x.csv", "made\x1b.csv"])
    return [rng.choice(JOURNALS), "--to", form, "-o", rng.choice(places)]


def _plot(rng: Random) -> list[str]:
    return [
        rng.choice(JOURNALS[1:]),
        *_some(rng, [["-o", rng.choice(["made.html", "made.xyz", ".", "missing/x.html"])]]),
    ]


def _enqueue(rng: Random) -> list[str]:
    pairs = [
        f"lr={values.text(rng)}",
        "lr=0.1",
        "layers=2",
        "layers=2.5",
        "optimiser=sgd",
        "optimiser=x",
        values.text(rng),
    ]
    return [rng.choice(JOURNALS), *rng.sample(pairs, rng.randint(0, 5)), *_some(rng, [["--value", values.text(rng)]])]


def _tune(rng: Random) -> list[str]:
    """Lines that must be refused before anything is started: each holds something wrong."""
    wrong = [
        ["--trials", rng.choice(["0", "-1", "x", "1.5", values.text(rng)])],
        ["--method", rng.choice(["foo", "EI", values.text(rng)])],
        ["--seed", rng.choice(["-1", "x", values.text(rng)])],
        ["--option", rng.choice(["kappa", "kappa=x", "nobody=1", "trials=3", values.text(rng)])],
        ["--set", rng.choice(["offset", "offset=x", "nobody=1", values.text(rng)])],
        ["--storage", rng.choice(["notes.txt", ".", "missing/x.db", "job.py", "study.db"])],
        ["--workers", rng.choice(["0", "-2", "x"])],
        ["--max-minutes", rng.choice(["0", "-1", "nan", "x"])],
        ["--trial-seconds", rng.choice(["0", "-1", "nan", "x"])],
        ["--retries", rng.choice(["-1", "x"])],
        ["--enqueue", rng.choice(["missing.json", "deep.json", "wrong.json", "notes.txt", "."])],
        ["--from", rng.choice(["missing.db", "notes.txt", "."])],
        ["--log", rng.choice(["csv", "nobody=x", "tensorboard=job.py", "mlflow=zz://q", values.text(rng)])],
    ]
    target = rng.choice(TARGETS[3:])
    least = 0 if target != "job.py" else 1
    return [
        target,
        "--quiet",
        "--trials",
        "1",
        *_some(rng, wrong, least)[:6],
        "--address",
        "127.0.0.1:1",
        "--option",
        "nobody=1",
    ]


def _compare(rng: Random) -> list[str]:
    return [rng.choice(TARGETS[3:]), "--methods", rng.choice(["foo", "ei,foo", "", values.text(rng)]), "--repeats", "1"]


def _cluster(rng: Random) -> list[str]:
    return [
        rng.choice(["job.py", "missing.py", values.text(rng)]),
        "--address",
        rng.choice(["http://127.0.0.1:1", "x", "http://"]),  # never somebody's
    ]


_ARGUMENTS = {
    "show": _show,
    "export": _export,
    "plot": _plot,
    "enqueue": _enqueue,
    "tune": _tune,
    "compare": _compare,
    "submit": _cluster,
    "fetch": _cluster,
    "jobs": lambda rng: _cluster(rng)[1:],
    "attach": lambda rng: [*_strangers(rng), *_cluster(rng)[1:]],  # never without an address: it might be found
    "stop": lambda rng: [*_strangers(rng), *_cluster(rng)[1:]],
}
