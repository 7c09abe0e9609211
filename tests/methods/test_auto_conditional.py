"""auto where choices open parameters of their own: expected improvement, but for studies that raybo 0.1 began."""

from __future__ import annotations

import numpy as np

from raybo import Categorical, Float, Space
from raybo.events import Event, Kind
from raybo.history import History
from raybo.methods import make
from raybo.methods.default import auto
from raybo.searcher import Searcher

CONDITIONAL = {"model": Categorical([{"a": Float(0, 1)}, {"b": Float(0, 1), "c": Float(0, 1)}])}
PLAIN = {"a": Float(0, 1), "b": Float(0, 1), "c": Categorical(["x", "y"])}


def studied(space, trials=24, add=False):
    searcher = Searcher(space, "auto", "max", 0)
    if add:
        searcher.add({"model": {"a": 0.5}}, 0.2)
    for _ in range(trials):
        trial = searcher.ask()
        point = searcher.history.records[-1].x
        searcher.tell(trial, -float(np.sum((point - 0.3) ** 2)))
    return searcher


def test_conditional_spaces_are_searched_by_expected_improvement_and_marked_from_the_first_proposal():
    for add in (False, True):
        trials = [trial for trial in studied(CONDITIONAL, add=add).trials if trial.origin is None]
        assert {trial.tags["outputs"] for trial in trials} == {"standardised"}
        assert "ucb" not in {trial.tags.get("acquisition") for trial in trials}


def test_other_spaces_have_the_mixture_and_no_mark():
    tags = [trial.tags for trial in studied(PLAIN).trials]
    assert not any("outputs" in each for each in tags)
    assert {"ucb", "log-ei"} <= {each.get("acquisition") for each in tags}


def test_the_model_sees_values_that_are_only_standardised(monkeypatch):
    seen = []
    known = auto.fitted

    def spied(history, *args, outputs, **options):
        seen.append((type(outputs).__name__, outputs.apply(history.y)))
        return known(history, *args, outputs=outputs, **options)

    monkeypatch.setattr(auto, "fitted", spied)
    values = studied(CONDITIONAL, 14).history.y[:-1]
    name, last = seen[-1]
    assert name == "Standardised"
    np.testing.assert_allclose(last, (values - values.mean()) / values.std())
    studied(PLAIN, 12)
    assert seen[-1][0] == "Tamed"


def test_a_study_that_0_1_began_goes_on_with_the_mixture():
    """None of its proposals is marked, from the first one on."""
    history, method = History(Space(CONDITIONAL).cube), make("auto")
    names = set()
    for number in range(24):
        proposal = method.propose(history, np.random.default_rng(number))
        tags = {name: value for name, value in proposal.tags.items() if name != "outputs"}
        assert number == 0 or tags == proposal.tags
        names.add(tags.get("acquisition"))
        x = history.cube.snap(proposal.x[None, :])[0]
        history.apply(Event(Kind.ASKED, number, {"x": x.tolist(), "tags": tags}))
        history.apply(Event(Kind.TOLD, number, {"value": -float(np.sum((x - 0.3) ** 2))}))
    assert {"ucb", "log-ei"} <= names
