"""The fingerprint of a job's code: what changes it and what does not, and what a continued study says."""

from __future__ import annotations

import importlib
import importlib.metadata
import linecache
import logging
import sys
from functools import partial

import pytest

import raybo
from raybo.common.errors import JournalError
from raybo.job.code_fingerprint import code_of
from raybo.job.loading import load_objective
from raybo.record.code_changes import codes_of, differences, last_code, other_code
from raybo.record.events import Failed, Planned, Told
from tests.command_line import raybo_command

JOB = '''
import raybo
from train import loss

ESTIMATORS = 50
UNUSED = 1
NAMES = {"b", "a", "c"}


class Model:
    depth = 3

    def fit(self):
        return third()


def third():
    return 3


def second(config):
    return ESTIMATORS * loss(config) + Model().fit() + len(NAMES)


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
def job(config):
    """Return the loss."""
    return second(config)


if __name__ == "__main__":
    raybo.tune(job, trials=50)
'''
TRAIN = """
from nested import model


def loss(config):
    return model.predict(config["x"])


if __name__ == "__main__":
    print("tried")
"""
MODEL = """
import numpy as np


def predict(x):
    return np.sqrt(x)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which hides an edit of equal size within a second
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "__init__.py").write_text("")
    (tmp_path / "nested" / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "job.py").write_text(JOB)
    yield tmp_path
    forget()


def forget():
    for name in ("train", "nested", "nested.model", "raybo_objective_job"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    linecache.clearcache()


def code_at(place):
    forget()
    return code_of(load_objective(str(place / "job.py")))


def edited(place, file, old, new):
    path = place / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return code_at(place)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("job.py", "ESTIMATORS = 50", "ESTIMATORS = 1000"),
        ("job.py", "return second(config)", "return 2 * second(config)"),
        ("job.py", "return 3", "return 4"),
        ("job.py", "depth = 3", "depth = 4"),
        ("train.py", 'config["x"]', '1 - config["x"]'),
        ("nested/model.py", "np.sqrt(x)", "np.sqrt(x) + 1"),
    ],
)
def test_changes_of_the_job_are_told(place, file, old, new):
    before = code_at(place)
    assert differences(before, edited(place, file, old, new)) == [f"{file} differs"]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("job.py", "UNUSED = 1", "UNUSED = 1000"),
        ("job.py", "trials=50", "trials=6200"),
        ("job.py", "Return the loss.", "Return the loss of a configuration."),
        ("job.py", "return 3", "return (\n        3  # a comment\n    )"),
        ("job.py", "raybo.Float(0, 1)", "raybo.Float(0, 20)"),  # refused by the description
        ("train.py", '"tried"', '"tried it all"'),
        ("nested/model.py", "def predict(x):", "def predict(x):  # of a fit\n"),
    ],
)
def test_unrelated_changes_keep_the_fingerprint(place, file, old, new):
    before = code_at(place)
    assert edited(place, file, old, new) == before


def test_versions_of_imported_packages_count(place, monkeypatch):
    before = code_at(place)
    assert before["packages"] == {"numpy": importlib.metadata.version("numpy")}
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99.1")
    assert differences(before, code_at(place)) == [f"numpy was {before['packages']['numpy']} and is 99.1"]


def test_new_and_unused_modules_are_named(place):
    before = code_at(place)
    (place / "more.py").write_text("LIMIT = 3\n")
    after = edited(place, "train.py", "from nested import model", "import more\nfrom nested import model")
    assert differences(before, after) == ["more.py is new", "train.py differs"]
    assert differences(after, before) == ["more.py is not used now", "train.py differs"]


def defined(text, **names):
    """A function without a file, as a notebook without sources would have it."""
    space = {"x": raybo.Float(0, 1)}
    scope = {"__name__": "__main__", "raybo": raybo, "space": space, **names}
    exec(text, scope)
    return scope["job"]


LOOSE = (
    "@raybo.objective(space=space)\ndef job(config):\n    return helper(config['x']) * N\ndef helper(x):\n    return x"
)


def test_functions_without_a_file_are_told_apart():
    first = code_of(defined(LOOSE, N=1))
    assert list(first["sources"]) == ["job"]
    assert code_of(defined(LOOSE, N=1)) == first
    assert code_of(defined(LOOSE, N=2)) != first
    assert code_of(defined(LOOSE.replace("return x", "return x + 1"), N=1)) != first


def test_closures_partials_and_callables_are_read():
    space = {"x": raybo.Float(0, 1)}

    def made(n):
        return raybo.objective(space=space)(lambda config: n * config["x"])

    def scaled(scale, config):
        return scale * config["x"]

    class Callable:
        def __call__(self, config):
            return config["x"]

    assert code_of(made(1)) == code_of(made(1)) != code_of(made(2))
    fixed = [raybo.objective(space=space)(partial(scaled, scale)) for scale in (1, 1, 2)]
    assert code_of(fixed[0]) == code_of(fixed[1]) != code_of(fixed[2])
    assert code_of(raybo.objective(space=space)(Callable()))["sources"]


class Hostile:
    """Raises at whatever is asked."""

    def __getattribute__(self, name):
        raise RuntimeError(name)


def test_what_cannot_be_read_is_left_out(place):
    loop = []
    loop.append(loop)
    text = LOOSE.replace("* N", "* len(A) * len(B)")
    assert code_of(defined(text, A=Hostile(), B=loop))["sources"].keys() == {"job"}
    (place / "broken.py").write_text("def loss(:\n")
    code = edited(
        place, "train.py", "from nested", "try:\n    import broken\nexcept SyntaxError:\n    pass\nfrom nested"
    )
    assert [name for name in code["sources"] if "b" in name.removesuffix(".py")] == ["broken.py", "job.py"]
    assert differences(code, edited(place, "broken.py", "loss", "gain")) == ["broken.py differs"]


def test_trials_know_the_code_they_ended_under():
    a, b = ({"sources": {"job.py": each}, "packages": {}} for each in "ab")
    events = [
        Planned(trials=4, number=1),
        Told(0, value=1.0, attempt=1),  # of an earlier release
        Planned(trials=9, code=a),
        Told(1, value=1.0, attempt=1),
        Failed(2, reason="no", attempt=1),
        Told(3, value=1.0),  # known from elsewhere
        Planned(trials=9, code=b),
        Told(2, value=1.0, attempt=2),
        Told(4, value=1.0, attempt=1),
    ]
    assert codes_of(events) == {1: a, 2: b, 4: b}
    assert last_code(events) == b
    assert other_code(events, b) == "trial 1 ran under other code (job.py differs)"
    assert other_code(events, a) == "trials 2, 4 ran under other code (job.py differs)"
    assert other_code(events, None) == other_code(events[:2], a) == ""


def tune(place, trials, **more):
    forget()
    objective = load_objective(str(place / "job.py"))
    return raybo.tune(
        objective, trials=trials, method="random", storage=place / "job.db", in_process=True, watch=False, **more
    )


def test_continued_study_says_that_its_code_changed(place, caplog, capsys, monkeypatch):
    caplog.set_level(logging.WARNING, "raybo")
    assert tune(place, 3).other_code == ""
    assert tune(place, 4).other_code == ""
    assert not caplog.records
    edited(place, "job.py", "ESTIMATORS = 50", "ESTIMATORS = 10")
    with pytest.raises(
        JournalError, match=r"job\.db: trials 0-3 ran under other code \(job\.py differs\); restore that"
    ):
        tune(place, 6, same_code=True)
    assert len(raybo.load(place / "job.db").trials) == 4
    study = tune(place, 6)
    told = "trials 0-3 ran under other code (job.py differs)"
    assert [record.getMessage() for record in caplog.records] == [
        f"job.db: {told}; the study continues and flags these trials"
    ]
    assert study.other_code == told
    assert study.code_of(3) != study.code_of(4) == study.code_of(study.trials[5])
    run = raybo_command(capsys, monkeypatch)
    code, shown, _ = run("show", place / "job.db")
    assert (code, told in " ".join(shown.split())) == (0, True)
    assert "ran under other code than the last run: job.py differs" in run("show", place / "job.db", "--trial", 2)[1]
    assert run("plot", place / "job.db", "-o", place / "job.html")[0] == 0
    assert told in (place / "job.html").read_text()
    caplog.clear()
    tune(place, 7, same_code=True)  # it is that of the last run
    assert not caplog.records


def test_journals_without_code_continue_silently(place, caplog):
    tune(place, 2)
    path = place / "old.db"
    description, events = raybo.load(place / "job.db").description, raybo.load(place / "job.db").events
    from raybo.journal import Journal

    journal = Journal(path, description)
    journal.append([type(e).of(e.trial, {k: v for k, v in e.data.items() if k != "code"}, e.number) for e in events])
    journal.close()
    edited(place, "job.py", "ESTIMATORS = 50", "ESTIMATORS = 10")
    forget()
    study = raybo.tune(load_objective("job.py"), trials=3, storage=path, in_process=True, watch=False, same_code=True)
    assert (len(study.trials), study.other_code, caplog.records) == (3, "", [])
    assert study.code_of(1) is None
    assert study.code_of(2) is not None


def test_forged_codes_are_refused():
    for code in ("x", ["x"], {"sources": "x"}, {"sources": {"job.py": 3}}):
        with pytest.raises(ValueError, match="its code is invalid"):
            Planned.require({"trials": 3, "code": code})
    Planned.require({"trials": 3, "code": {"sources": {"job.py": "x"}, "packages": {}}})
