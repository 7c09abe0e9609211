"""Tables for a terminal hold every fact, and take nothing that a user wrote for markup."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from raybo import methods
from raybo.record.description import Description
from raybo.record.events import KINDS, Kind
from raybo.record.goals import Goals
from raybo.reporting.formatting import config_line, config_values, shown
from raybo.reporting.tables import best_view, options_table, study_view
from raybo.reporting.trials_table import trials_table
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Space
from raybo.study.study import Study
from tests.reporting.studies import run

SPACE = Space({"lr": Float(1e-4, 1, log=True), "m": {"n": Integer(1, 9), "c": Categorical(["[bold]", None])}})


def study_of(*events, mode="max"):
    description = Description("[red]job", Goals(("[i]score",), (mode,)), SPACE, "random", 3)
    return Study(
        description, [KINDS[kind].of(trial, data, number=n) for n, (kind, trial, data) in enumerate(events, 1)]
    )


def asked(number, **tags):
    return Kind.ASKED, number, {"x": [0.5] * 3, "values": [0.00012345678, 3, 0], "tags": tags}


EVERY_STATE = (
    (Kind.PLANNED, None, {"trials": 9}),
    *(asked(n) for n in range(6)),
    asked(6, origin="added"),
    asked(7, fallback="no factor"),
    (Kind.TOLD, 0, {"value": 0.123456789, "seconds": 1.234}),
    (Kind.FAILED, 1, {"reason": "ValueError: [bold]bad[/bold] [rate]"}),
    (Kind.RETRIED, 2, {"reason": "died", "attempt": 2}),
    (Kind.FAILED, 2, {"reason": "its worker died", "kind": "lost", "attempt": 2}),
    (Kind.STOPPED, 3, {"reason": "stopped by the user"}),
    (Kind.RETRIED, 4, {"reason": "its node was lost", "attempt": 2}),
    (Kind.TOLD, 6, {"value": -1e-7}),
)


def text_of(view, width=200, **console):
    console = Console(width=width, record=True, force_terminal=False, **console)
    with console.capture() as capture:
        console.print(view)
    return capture.get()


def test_study_view_shows_every_trial_and_the_best():
    text = text_of(study_view(study_of(*EVERY_STATE), 20))
    heading, *lines = text.splitlines()
    assert "[i]score" in lines[1]
    assert heading.startswith("[red]job: max [i]score, method random, seed 3; ")
    assert heading.endswith("2 finished, 2 failed, 1 stopped, 3 pending of 9 planned")
    rows = {line.split()[0]: line for line in lines if line.split() and line.split()[0].isdigit()}
    assert set(rows) == set("01234567")
    for number, facts in {
        "0": ["recommended", "0.123457", "1.23", "0.000123457", "[bold]", "a uniform random point"],
        "1": ["failed", "ValueError: [bold]bad[/bold] [rate]"],
        "2": ["lost (2 attempts)", "its worker died"],
        "3": ["stopped", "stopped by the user"],
        "4": ["pending (2 attempts)", "its node was lost"],
        "5": ["pending", "a uniform random point"],
        "6": ["finished", "-1e-07", "added by the user"],
        "7": ["pending", "a random point, because the model failed: no factor"],
    }.items():
        for fact in facts:
            assert fact in rows[number]
    best = text[text.index("recommended: ") :]
    assert best.splitlines()[0] == (
        "recommended: trial 0, [i]score 0.123457, the best so far; there are too few trials for a model"
    )
    assert [line.split() for line in best.splitlines()[1:4]] == [["lr", "0.000123457"], ["m.n", "3"], ["m.c", "[bold]"]]


def test_only_the_last_trials_are_listed_where_wanted():
    study = study_of(*EVERY_STATE)
    text = text_of(trials_table(study, study.trials[-2:]))
    assert [line.split()[0] for line in text.splitlines()[3:] if line.strip()] == ["6", "7"]


def test_a_study_without_results_is_shown_too():
    text = text_of(study_view(study_of((Kind.PLANNED, None, {"trials": 9}), asked(0)), 20))
    assert "0 finished" in text
    assert "best" not in text
    assert "0 finished, 0 failed, 0 stopped, 0 pending" in text_of(study_view(study_of(), 20))


def test_on_a_narrow_terminal_nothing_is_lost():
    columns = [line.split() for line in text_of(study_view(study_of(*EVERY_STATE), 20), width=80).splitlines()]
    text = "".join(word for words in columns for word in words)
    for fact in ("[red]job", "[i]score", "0.123457", "finished", "lost", "pending"):
        assert fact in text


def test_the_best_is_named_with_its_configuration():
    assert text_of(best_view(study_of(*EVERY_STATE, mode="min"))).startswith("recommended: trial 6, [i]score -1e-07, ")


def test_values_have_six_figures():
    assert [shown(value) for value in (1 / 3, 1e-9 / 3, 5, "a", None, True)] == [
        "0.333333",
        "3.33333e-10",
        "5",
        "a",
        "None",
        "True",
    ]


def test_a_configuration_fits_on_a_line():
    study = study_of(*EVERY_STATE)
    assert config_line(study, study.trials[0]) == "lr=0.000123457, m.n=3, m.c=[bold]"


@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_is_listed_with_its_options(name):
    text = text_of(options_table([name], methods.describe))
    assert text.startswith(f"{name}  ")
    for option, _, meaning in methods.describe(name)[1]:
        assert f"{option}=" in text
        assert "".join(meaning.split()) in "".join(text.split())


def test_inactive_parameters_are_not_shown():
    models = [{"kind": "svm", "C": Float(1e-3, 1e3, log=True)}, {"kind": "knn", "k": Integer(1, 30)}]
    searcher = Searcher({"model": Categorical(models), "z": Float(0, 1)}, "random", seed=0)
    events = []
    apply = searcher.apply
    searcher.apply = lambda event: events.append(apply(event)) or events[-1]
    for _ in range(8):
        searcher.tell(searcher.ask(), 1.0)
    study = Study(Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0), events)
    rows = [dict(config_values(study, trial)) for trial in study.trials]
    assert {tuple(row) for row in rows} == {("model", "model.svm.C", "z"), ("model", "model.knn.k", "z")}
    assert {row["model"] for row in rows} == {"svm", "knn"}  # as exports, rules and `raybo enqueue` have it
    frame = study.to_dataframe()
    assert [*frame["model"]] == [row["model"] for row in rows]
    assert (frame["model.svm.C"].notna() != frame["model.knn.k"].notna()).all()


def test_varying_parameters_have_columns_where_they_fit():
    study = run("random", 12, failing=0.0)
    wide, narrow = (text_of(trials_table(study, study.trials[:9]), width) for width in (120, 60))
    head, _, *rows = wide.splitlines()[1:12]
    assert head.split() == ["trial", "state", "accuracy", "s", "lr", "depth", "kind", "momentum", "reason"]
    for row, trial in zip(rows, study.trials, strict=False):
        for name, value in config_values(study, trial):
            end = head.index(name.rsplit(".", 1)[-1]) + len(name.rsplit(".", 1)[-1])
            assert value in row
            assert name == "net.kind" or row[:end].endswith(value)  # numbers end where the column's name does
    assert "momentum=" in narrow
    assert "momentum=" not in wide


def test_parameters_that_do_not_vary_are_named_once():
    study = run("random", 9, space={"x": Float(0, 1), "c": Integer(7, 7)}, failing=0.0)
    text = text_of(trials_table(study, study.trials[:5]))
    assert text.splitlines()[1].split() == ["trial", "state", "accuracy", "s", "x", "reason"]
    assert "the same in each:\n  c=7" in text


def test_the_best_trials_are_listed_best_first():
    study = run("random", 30)
    text = text_of(study_view(study, 4, best=True))
    numbers = [int(line.split()[0]) for line in text.splitlines() if re.match(r" *\d+ +(finished|recommended)", line)]
    done = [trial for trial in study.trials if trial.value is not None]
    assert numbers == [trial.number for trial in sorted(done, key=lambda trial: -trial.value)[:4]]
    marked = [int(line.split()[0]) for line in text.splitlines() if re.match(r" *\d+ +recommended", line)]
    assert marked == [study.recommended.number]
