"""An axis without width, a parameter of one value: every method and the report take it for what it is."""

from __future__ import annotations

import pytest

import raybo
from raybo import methods
from raybo.reporting.image import write_image
from raybo.reporting.page import write_report
from tests.reporting.studies import run

CONSTANT = {"c": raybo.Float(1.0, 1.0), "scale": raybo.Float(2.0, 2.0, log=True), "n": raybo.Integer(3, 3)}
SPACES = {"alone": CONSTANT, "beside a float": {"x": raybo.Float(0, 1), **CONSTANT}}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=pytest.mark.slow if name == "mcmc" else ()) for name in methods.METHODS]
)
def test_every_method_proposes_the_constant(method, space):
    context = {"load": raybo.Float(0, 1), "grade": raybo.Float(2, 2)} if methods.needs_context(method) else None
    searcher = raybo.Searcher(SPACES[space], method, seed=0, trials=14, context=context)
    for i in range(14):
        trial = searcher.ask()
        assert [trial.config[name] for name in ("c", "scale", "n")] == [1.0, 2.0, 3]
        met = {"context": {"load": i / 14, "grade": 2.0}} if context else {}
        searcher.tell(trial, trial.config.get("x", 0.0) + 0.1 * (i % 5), **met)
    assert searcher.best.config == searcher.trials[searcher.best.number].config


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_a_report_draws_it(tmp_path):
    space = {
        "lr": raybo.Float(1e-4, 1, log=True),
        "net": {"depth": raybo.Integer(6, 6), "kind": raybo.Categorical(["tanh"])},
        "momentum": raybo.Float(0.8, 0.8),
    }
    study = run("ei", 16, space=space)
    write_report(study, tmp_path / "report.html")
    write_image(study, tmp_path / "report.png")
    assert "momentum" in (tmp_path / "report.html").read_text(encoding="utf-8")
