"""Earlier studies have a study begin where they expect the best; its journal alone keeps what they know."""

from __future__ import annotations

import contextlib
import json
import math
import re
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import raybo
from raybo import methods
from raybo.common.errors import JournalError, RayboError, SpaceError
from raybo.journal import Journal
from raybo.journal.checks import Checker, Nonsense
from raybo.methods.parts.earlier_studies import expectations, weights
from raybo.methods.parts.prior_points import as_methods_see_it, hold, same_job
from raybo.record.description import Description
from raybo.record.events import EarlierStudy, Pruned, Reported, Stopped, Told
from raybo.record.origin import Origin
from raybo.reporting.priors_view import priors_view
from raybo.searcher import Searcher
from raybo.searcher.earlier_study import MOST, _place
from raybo.searcher.priors import new_priors
from raybo.searcher.wanted import Wanted, identity_of
from raybo.space import Space
from raybo.study import warm_start
from raybo.study.replay import replay
from raybo.study.study import Study, load
from tests.priors import run, study, written

SPACE = {
    "rate": raybo.Float(1e-5, 1, log=True),
    "depth": raybo.Integer(1, 10),
    "kind": raybo.Categorical(["a", "b", "c"]),
}


def job(best=-2.5):
    def value(config):
        return (math.log10(config["rate"]) - best) ** 2 + (config["depth"] - 5) ** 2 / 20 + (config["kind"] != "b")

    return value


@pytest.fixture(scope="module")
def earlier():
    return [study(SPACE, job(best), method="sobol", trials=40, seed=k) for k, best in enumerate((-2.4, -2.5, -2.6))]


def wanted(space=SPACE, mode="max", **more):
    return Wanted.by(Searcher(space, mode=mode, **more).description)


def firsts(searcher, trials=4):
    run(searcher, job(), trials)
    return [trial.config for trial in searcher.trials if trial.origin is Origin.PRIOR]


def test_the_first_points_are_where_earlier_ones_were_best(earlier):
    searcher = Searcher(SPACE, mode="min", seed=9, prior=earlier)
    first, second = firsts(searcher)
    assert [config["kind"] for config in (first, second)] == ["b", "b"]
    assert job()(first) < 0.5
    assert first != second
    assert searcher.explain(0) == "like 3 earlier studies (0.33, 0.33, 0.33): expected among the best 1%"
    assert [trial.origin for trial in searcher.trials] == [Origin.PRIOR, None, Origin.PRIOR, None]
    assert "acquisition" in searcher.trials[3].tags  # they have taken the place of two points of the design


def test_one_earlier_study_has_one_first_point(earlier):
    searcher = Searcher(SPACE, mode="min", seed=9, prior=earlier[0])
    assert len(firsts(searcher)) == 1
    assert searcher.explain(0).startswith("like an earlier study: expected")
    assert "middle" in searcher.trials[1].tags


@pytest.mark.parametrize(("method", "trials"), [("auto", 12), ("gp-ucb", 12), ("ei", 12), ("random", 4), ("turbo", 8)])
def test_a_misleading_prior_costs_its_one_trial(method, trials):
    wrong = [study(SPACE, lambda config: -job()(config), 40, "sobol", seed=k) for k in range(3)]
    searcher, alone = (Searcher(SPACE, method, "min", 2, trials=40, prior=prior) for prior in (wrong, ()))
    assert len(firsts(searcher, trials + 1)) == 1
    run(alone, job(), trials)
    there, here = ([trial.config for trial in each.trials] for each in (searcher, alone))
    assert there[1:] == here  # to the digit what is proposed without priors


def test_a_misleading_prior_does_not_shift_when_auto_looks_far(earlier):
    def rough(config):
        return zlib.crc32(repr(sorted(config.items())).encode()) / 2**32

    searcher, alone = (Searcher(SPACE, "auto", "min", 2, trials=40, prior=prior) for prior in (earlier[0], ()))
    run(searcher, lambda config: 10.0, 1)
    run(searcher, rough, 18)
    run(alone, rough, 18)
    assert "wide" in [trial.tags.get("acquisition") for trial in alone.trials]
    assert [trial.config for trial in searcher.trials[1:]] == [trial.config for trial in alone.trials]


def test_a_study_with_misleading_priors_is_replayed():
    wrong = [study(SPACE, lambda config: -job()(config), 40, "sobol", seed=k) for k in range(3)]
    searcher = Searcher(SPACE, mode="min", seed=2, prior=wrong)
    whole = Study(searcher.description, [*searcher.history.priors, *run(searcher, job(), 7)])
    assert hold(whole.history) is False
    assert not any(each.differs for each in replay(whole))


def test_pruned_trials_are_judged_by_their_reports(earlier):
    searcher = Searcher(SPACE, mode="min", seed=9, steps=5, prior=earlier)
    for better in (2.0, 5.0, 4.0):  # of the first point, and of two of the design
        trial = searcher.ask()
        for step in (1, 2)[: 1 + (better == 5.0)]:
            searcher.report(trial, better - step / 10, step)
        searcher.prune(trial)
    assert hold(searcher.history) is True
    assert searcher.trials[2].origin is Origin.PRIOR


def test_the_very_same_job_goes_on_from_the_earlier_results(earlier):
    searcher = Searcher(SPACE, mode="min", seed=9, prior=earlier[1])
    events = run(searcher, job(), 1)
    best = min(event.value for event in earlier[1].events if type(event) is Told)
    assert searcher.trials[0].value == pytest.approx(best, abs=1e-9)
    assert same_job(searcher.history) is searcher.history.priors[0]
    seen = methods.seen(searcher.method, searcher.history)
    assert len(seen.y) == 41
    assert seen.y.max() == pytest.approx(-best)
    events += run(searcher, job(), 3)
    assert [trial.origin for trial in searcher.trials] == [Origin.PRIOR, None, None, None]
    assert all("acquisition" in trial.tags for trial in searcher.trials[1:])  # no design: there is a model already
    assert not any(each.differs for each in replay(Study(searcher.description, [*searcher.history.priors, *events])))


@pytest.mark.parametrize("method", ["ei", "turbo", "uhe", "ars"])
def test_every_method_sees_the_results_of_the_very_same_job(method, earlier):
    searcher = Searcher(SPACE, method, "min", 9, prior=earlier[1])
    run(searcher, job(), 5)
    assert len(methods.seen(searcher.method, searcher.history).y) == 45


def test_another_value_at_the_same_point_is_another_job(earlier):
    searcher = Searcher(SPACE, mode="min", seed=9, prior=earlier[1])
    run(searcher, lambda config: job()(config) + 1e-3, 2)
    assert same_job(searcher.history) is None
    assert "middle" in searcher.trials[1].tags


def test_a_value_that_many_points_have_says_nothing():
    flat = study(SPACE, lambda config: round(job()(config) / 8), 20, "sobol")
    searcher = Searcher(SPACE, mode="min", seed=9, prior=flat)
    run(searcher, lambda config: round(job()(config) / 8), 1)
    assert searcher.trials[0].value == 0.0
    assert same_job(searcher.history) is None


@pytest.mark.parametrize(
    "other",
    [{"mode": "max"}, {"scheduler": "median", "steps": 5}, {"space": SPACE | {"depth": raybo.Integer(1, 11)}}],
    ids=str,
)
def test_only_a_study_that_may_be_the_same_keeps_its_results(other, earlier):
    searcher = Searcher(**{"space": SPACE, "mode": "min", "seed": 9} | other)
    events = run(searcher, job(), 4)
    assert new_priors(Study(searcher.description, events), wanted(mode="min"))[0].results == []
    assert len(new_priors(earlier[0], wanted(mode="min"))[0].results) == 40


def test_a_journal_without_results_goes_on_by_its_own_rule(earlier):
    """Neighbours of the earlier study's points are candidates too, and no results are taken over."""
    now = new_priors(earlier[1], wanted(mode="min"))[0]

    def away(prior, seed):
        searcher = Searcher(SPACE, mode="min", seed=seed)
        searcher.apply(prior)
        run(searcher, job(), 2)
        assert ("middle" in searcher.trials[1].tags) is (not prior.results)
        return np.abs(prior.X - searcher.history.X[0]).max(axis=1).min() > 1e-3

    assert any(away(replace(now, results=[]), seed) for seed in range(8))
    assert not any(away(now, seed) for seed in range(8))


def test_priors_are_judged_by_the_design_alone(earlier):
    searcher = Searcher(SPACE, mode="min", seed=9, prior=earlier[0])
    run(searcher, job(), 4)
    run(searcher, lambda config: job()(config) - 100.0, 6)  # the search has come far
    assert hold(searcher.history) is True


def test_what_failed_at_a_first_point_misleads(earlier):
    searcher = Searcher(SPACE, mode="min", seed=9, prior=earlier)
    run(searcher, job(), 5, fails=lambda config: len(searcher.trials) == 1)
    assert [trial.origin for trial in searcher.trials] == [Origin.PRIOR, None, None, None, None]
    assert "sobol" in searcher.trials[3].tags


def test_second_points_wait_for_the_first(earlier):
    searcher = Searcher(SPACE, mode="min", seed=9, prior=earlier)
    asked = [searcher.ask() for _ in range(5)]
    assert [trial.origin for trial in asked] == [Origin.PRIOR, *[None] * 4]
    searcher.tell(asked[1], job()(asked[1].config))
    assert searcher.ask().origin is None
    searcher.tell(asked[0], job()(asked[0].config))
    assert searcher.ask().origin is Origin.PRIOR


@pytest.fixture(scope="module")
def many():
    return [study(SPACE, job(-4.4 + k / 10), 15, "sobol", seed=k) for k in range(9)]


def test_every_three_studies_vouch_for_a_first_point_and_one_more_follows_if_these_hold(many):
    searcher = Searcher(SPACE, mode="min", seed=9, prior=many)
    run(searcher, job(-4.05), 9)
    origins = [trial.origin is Origin.PRIOR for trial in searcher.trials]
    assert origins == [True] * 3 + [False] + [True] + [False] * 4
    assert len({tuple(trial.config.values()) for trial in searcher.trials}) == 9


def test_many_misleading_studies_cost_the_points_that_they_vouched_for(many):
    searcher, alone = (Searcher(SPACE, "auto", "min", 2, trials=40, prior=prior) for prior in (many, ()))
    run(searcher, lambda config: -job(-4.05)(config), 9)
    run(alone, lambda config: -job(-4.05)(config), 6)
    there, here = ([trial.config for trial in each.trials] for each in (searcher, alone))
    assert there[3:] == here


def test_a_study_begun_by_the_first_rule_goes_on_by_it(many):
    searcher = Searcher(SPACE, mode="min", seed=9)
    for prior in new_priors(many, wanted(mode="min")):
        searcher.apply(replace(prior, results=[], first_points=1))
    run(searcher, job(-4.05), 6)
    assert [trial.origin is Origin.PRIOR for trial in searcher.trials] == [True, False, True] + [False] * 3


KNOWN = {name: SPACE[name] for name in ("depth", "kind")}


@pytest.fixture(scope="module")
def half_known():
    return [study(KNOWN, lambda config: job()({**config, "rate": 0.003}), 20, "sobol", seed=k) for k in range(9)]


@pytest.mark.parametrize(("method", "trials"), [("auto", 12), ("gp-ucb", 12), ("ei", 12), ("random", 4), ("turbo", 8)])
def test_studies_of_some_parameters_have_one_first_point_that_methods_are_not_shown(method, trials, half_known):
    """However many they are, and though it is better than all others."""
    searcher, alone = (Searcher(SPACE, method, "min", 2, trials=40, prior=prior) for prior in (half_known, ()))
    run(searcher, lambda config: -1.0, 1)
    run(searcher, job(), trials)
    run(alone, job(), trials)
    assert hold(searcher.history) is True
    there, here = ([trial.config for trial in each.trials] for each in (searcher, alone))
    assert there[1:] == here  # to the digit what is proposed without priors
    assert searcher.trials[0].origin is Origin.PRIOR


def test_a_study_with_priors_of_some_parameters_is_replayed_and_shown(half_known):
    searcher = Searcher(SPACE, mode="min", seed=2, prior=half_known)
    first = run(searcher, lambda config: -1.0, 1)
    whole = Study(searcher.description, [*searcher.history.priors, *first, *run(searcher, job(), 6)])
    assert whole.best.number == 0
    assert not any(each.differs for each in replay(whole))
    assert "but each lacks more than a quarter of the parameters" in priors_view(whole).renderables[-1].plain


def test_one_study_of_all_parameters_is_enough_for_the_rule_of_those(earlier, half_known):
    searcher = Searcher(SPACE, mode="min", seed=9, prior=[earlier[0], *half_known[:2]])
    assert len(firsts(searcher)) == 2


@pytest.mark.parametrize(("new", "points"), [(1, 2), (2, 1)])
def test_studies_that_lack_at_most_a_quarter_of_the_parameters_are_as_those_that_know_all(new, points, earlier):
    more = {f"new {i}": raybo.Float(0, 1) for i in range(new)}
    assert len(firsts(Searcher(SPACE | more, mode="min", seed=9, prior=earlier))) == points


def test_a_parameter_of_one_value_need_not_be_known(earlier):
    fixed = {f"layers {i}": raybo.Integer(2, 2) for i in range(3)}
    searcher = Searcher(SPACE | fixed, mode="min", seed=9, prior=earlier)
    assert len(firsts(searcher)) == 2


def test_studies_of_some_parameters_go_on_by_the_rule_under_which_they_began(half_known):
    searcher = Searcher(SPACE, mode="min", seed=9)
    for prior in new_priors(half_known, wanted(mode="min")):
        searcher.apply(replace(prior, first_points=2))
    run(searcher, job(), 6)
    assert [trial.origin is Origin.PRIOR for trial in searcher.trials] == [True] * 3 + [False] + [True] + [False]


def test_every_method_begins_at_the_first_points(earlier):
    for method in ("random", "gp-ucb", "turbo", "uhe"):
        assert len(firsts(Searcher(SPACE, method, "min", 9, prior=earlier))) == 2, method


def test_only_the_order_of_values_counts(earlier):
    rescaled = Study(
        Searcher(SPACE, "sobol", "max", 0).description,
        [
            Told(event.trial, value=-math.exp(3.0 * event.value), number=event.number) if type(event) is Told else event
            for event in earlier[0].events
        ],
    )
    here, there = (new_priors(each, wanted())[0] for each in (earlier[0], rescaled))
    assert (here.points, here.scores, here.theta) == (there.points, there.scores, there.theta)
    assert here.counts["mode"] != there.counts["mode"]


def test_parameters_are_matched_by_name_and_value(earlier):
    other = {
        "kind": raybo.Categorical(["c", "b", "a", "d"]),
        "new": raybo.Float(0, 1),
        "rate": raybo.Float(1e-4, 1e-1),  # narrower, and linear
        "depth": raybo.Categorical([1, 5]),  # of another kind
    }
    prior = new_priors(earlier[0], wanted(other))[0]
    assert prior.axes == [0, 2]
    names = list(other)
    assert [names[axis] for axis in prior.axes] == ["kind", "rate"]
    assert prior.counts["only_there"] == []
    beyond = prior.X[:, 1]
    assert beyond.min() < 0.0
    assert beyond.max() > 1.0
    assert len(beyond) < 40  # those far outside are left out
    first = firsts_of(other, earlier[0])
    assert first["kind"] == "b"
    assert 1e-4 <= first["rate"] <= 1e-1


def firsts_of(space, prior):
    searcher = Searcher(space, mode="min", seed=1, prior=prior)
    return searcher.ask().config


def test_closed_parameters_are_no_reason_to_leave_out():
    space = {"model": raybo.Categorical([{"name": "svm", "C": raybo.Float(0.01, 100, log=True)}, "tree"])}

    def value(config):
        return 3.0 if config["model"] == "tree" else math.log10(config["model"]["C"]) ** 2

    old = study(space, value, method="sobol", trials=30)
    prior = new_priors(old, wanted(space))[0]
    assert (prior.axes, len(prior.scores)) == ([0, 1], 30)
    assert abs(math.log10(firsts_of(space, old)["model"]["C"])) < 0.7


def test_failed_trials_are_the_worst():
    old = study({"x": raybo.Float(0, 1)}, lambda c: c["x"], 30, "sobol", fails=lambda c: c["x"] < 0.4)
    prior = new_priors(old, wanted({"x": raybo.Float(0, 1)}))[0]
    scores = np.array(prior.scores)
    assert scores[prior.X[:, 0] < 0.4].max() < scores[prior.X[:, 0] >= 0.4].min()
    assert prior.counts["failed"] == sum(prior.X[:, 0] < 0.4)


def test_pruned_trials_count_as_predicted():
    searcher = Searcher({"x": raybo.Float(0, 1)}, "sobol", "max", 0, steps=3)
    events = []
    for i in range(30):
        events.append(searcher.apply(searcher.propose(searcher.history)))
        x = searcher.trials[i].config["x"]
        events.append(searcher.apply(Reported(i, step=1, value=x)))
        end = Told(i, value=10 * x) if i % 2 else Pruned(i, reason="slow", rule="asha", step=1)
        events.append(searcher.apply(end))
    prior = new_priors(Study(searcher.description, events), wanted({"x": raybo.Float(0, 1)}))[0]
    assert (prior.counts["pruned"], prior.counts["taken"]) == (15, 30)
    assert np.corrcoef(prior.X[:, 0], prior.scores)[0, 1] > 0.9


def test_best_trials_of_a_long_prior_are_taken():
    old = study({"x": raybo.Float(0, 1)}, lambda c: -c["x"], 1_000, "random")
    prior = new_priors(old, wanted({"x": raybo.Float(0, 1)}))[0]
    assert (prior.counts["trials"], len(prior.scores)) == (1_000, MOST)
    assert sum(prior.X[:, 0] > 0.96) >= 35
    assert prior.X[:, 0].min() < 0.05


def test_a_misleading_study_loses_its_weight(earlier):
    wrong = study(SPACE, lambda config: -job()(config), method="sobol", trials=40, seed=5)
    searcher = Searcher(SPACE, "sobol", "min", 2, prior=[*earlier, wrong])
    before = weights(searcher.history, expectations(searcher.history))
    run(searcher, job(), 12)
    after = weights(searcher.history, expectations(searcher.history))
    assert before.tolist() == [0.25] * 4
    assert after[3] == 0.0
    assert after[:3].min() > 0.2


def begun(path, description, prior, trials=0):
    """The journal of a study, begun with a prior, after so many more trials."""
    with contextlib.closing(Journal(path)) as opened:
        known = [event for event in opened.events if isinstance(event, EarlierStudy)]
        priors = new_priors(prior, Wanted.by(description, path), known)
        opened.begin(description)
        searcher = Searcher.of(description)
        warm_start.enter(opened, searcher, [], priors)
        if not priors:
            for event in opened.events:
                searcher.apply(event)
        opened.append(run(searcher, job(), trials))
        return len(priors)


def test_a_study_is_replayed_without_the_old_journals(earlier, tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    for k, each in enumerate(earlier):
        written(old / f"{k}.db", each)
    description, path = Searcher(SPACE, "auto", "min", 3).description, tmp_path / "new.db"
    assert begun(path, description, str(old / "*.db"), trials=4) == 3
    shutil.copy(old / "0.db", tmp_path / "named.db")
    shutil.rmtree(old)
    assert begun(path, description, str(old / "*.db"), trials=2) == 0  # the same command continues
    assert begun(path, description, old) == 0
    assert begun(path, description, [old / "0.db", tmp_path / "named.db"]) == 0
    opened = load(path)
    assert [prior.study for prior in opened.history.priors] == ["0.db", "1.db", "2.db"]
    again = list(replay(opened))
    assert len(again) == len(opened.trials) == 6
    assert not any(each.differs for each in again)


def test_journals_beside_the_study_that_fit_are_its_priors(earlier, tmp_path):
    written(tmp_path / "a.db", earlier[0])
    written(tmp_path / "b.db", study({"other": raybo.Float(0, 1)}, lambda c: c["other"], 5, "random"))
    (tmp_path / "c.db").write_text("no journal")
    path = tmp_path / "new.db"
    description = Searcher(SPACE, "auto", "min", 3).description
    assert begun(path, description, "auto", trials=1) == 1
    assert begun(path, description, "auto") == 0
    with pytest.raises(JournalError, match='prior "auto" takes the journals next to the study'):
        Searcher(SPACE, prior="auto")


def test_a_running_study_counts_as_far_as_it_is(earlier, tmp_path):
    with contextlib.closing(Journal(tmp_path / "old.db", earlier[0].description)) as running:
        running.append(earlier[0].events[:20])
        assert new_priors(tmp_path / "old.db", wanted())[0].counts["finished"] == 10


def test_a_journal_of_0_1_can_be_a_prior(tmp_path):
    path = tmp_path / "gp-ucb.db"
    shutil.copy(Path(__file__).parents[1] / "journal" / "journals_of_0_1" / "gp-ucb.sqlite", path)
    old = load(path)
    assert new_priors(path, Wanted.by(old.description))[0].counts["taken"] >= 3


def bad_priors(tmp_path, earlier):
    """Priors that are refused, with the errors."""
    damaged = written(tmp_path / "damaged.db", earlier[0])
    content = bytearray(damaged.read_bytes())
    place = content.find(b'"suggest_seconds"')
    content[place + 1 : place + 8] = b"SUGGEST"
    damaged.write_bytes(content)
    (tmp_path / "text.db").write_text("no journal")
    (tmp_path / "empty.db").write_bytes(b"")
    (tmp_path / "none").mkdir()
    one = study(SPACE, job(), 1, "random")
    same = study(SPACE, lambda config: 1.0, 5, "random")
    other = study({"momentum": raybo.Float(0, 1)}, lambda c: c["momentum"], 5, "random")
    return [
        (damaged, JournalError, "damaged.db: it is damaged"),
        (tmp_path / "text.db", JournalError, "text.db: "),
        (tmp_path / "empty.db", JournalError, "empty.db"),
        (tmp_path / "missing.db", JournalError, "missing.db"),
        (tmp_path / "none", JournalError, "no journal there can serve as a prior for this study"),
        (str(tmp_path / "x*.db"), JournalError, "no journal there can serve as a prior for this study"),
        (written(tmp_path / "one.db", one), JournalError, "one.db: it has 1 result, and a prior needs at least 3"),
        (written(tmp_path / "same.db", same), JournalError, "same.db: all its results are equal"),
        (written(tmp_path / "other.db", other), SpaceError, "other.db: it has no parameter in common with this study"),
        (tmp_path / "new.db", JournalError, "new.db: it is this study's own journal"),
        (5, JournalError, "prior must be a study, a journal, or a list of them, got 5"),
    ]


def test_bad_priors_are_refused_in_one_line(earlier, tmp_path):
    here = Wanted.by(Searcher(SPACE, mode="min", seed=0).description, tmp_path / "new.db")
    for given, error, text in bad_priors(tmp_path, earlier):
        with pytest.raises(RayboError, match=text) as raised:
            new_priors(given, here)
        assert (raised.type, "\n" in str(raised.value)) == (error, False), given


def test_contexts_must_be_the_same(earlier):
    with pytest.raises(JournalError, match="it does not observe the same contexts"):
        Searcher(SPACE, "sbo-kde", context={"demand": raybo.Float(0, 1)}, prior=earlier)


def test_several_metrics_count_by_name():
    space = {"x": raybo.Float(0, 1)}
    old = study(space, lambda c: (c["x"] - 0.7) ** 2, 20, "sobol")
    two = {"value": "min", "seconds": "min"}
    searcher = Searcher(space, metrics=two, seed=0, prior=old)
    assert abs(searcher.ask().config["x"] - 0.7) < 0.15
    with pytest.raises(JournalError, match="it has none of this study's metrics"):
        Searcher(space, metrics={"loss": "min", "seconds": "min"}, prior=old)


def test_a_broken_constraint_counts_as_a_failure():
    space = {"x": raybo.Float(0, 1)}
    searcher = Searcher(space, "sobol", metric="score", constraints={"memory": "<= 0.5"}, seed=0)
    events = []
    for i in range(30):
        events.append(searcher.apply(searcher.propose(searcher.history)))
        x = searcher.trials[i].config["x"]
        events.append(searcher.apply(Told(i, value=x, metrics={"memory": x})))
    old = Study(searcher.description, events)
    same = Searcher(space, metric="score", constraints={"memory": "<= 0.5"}, seed=0, prior=old)
    free = Searcher(space, seed=0, prior=old)
    assert same.ask().config["x"] < 0.6 < free.ask().config["x"]


def test_a_journal_with_a_broken_prior_is_damaged(earlier, tmp_path):
    data = new_priors(earlier[0], wanted())[0].data
    for broken in (
        {"axes": [3]},
        {"axes": []},
        {"scores": data["scores"][1:]},
        {"theta": [0.0]},
        {"spread": 0.0},
        {"points": [[0.5]]},
        {"points": [[0.5, "x", 1.0]]},
    ):
        with pytest.raises(Nonsense):
            Checker(Space(SPACE), None).read(1, "prior", None, "", json.dumps({**data, **broken}))
    assert Checker(Space(SPACE), None).read(1, "prior", None, "", json.dumps(data)).study == data["study"]


def test_old_names_of_options_are_read():
    said = Searcher(SPACE, "uhe", "min", 3, gamma_prior=(1e-3, 0.1)).description.to_json()
    said["options"] = {"prior": said["options"]["gamma_prior"]}
    assert Searcher.of(Description.from_json(said)).method.gamma_prior == (1e-3, 0.1)
    own = {**said, "method": "mine:Own"}
    assert list(Description.from_json(own).options) == ["prior"]


def test_the_report_draws_where_priors_point(earlier):
    pytest.importorskip("plotly")
    from raybo.reporting.prior_figures import prior_profiles, prior_weights
    from raybo.reporting.priors_view import priors_in_use

    searcher = Searcher(SPACE, "sobol", "min", 2, prior=earlier)
    events = [*searcher.history.priors, *run(searcher, job(), 12)]
    begun = Study(searcher.description, events)
    profiles, over_trials = prior_profiles(begun), prior_weights(begun)
    assert profiles is not None
    assert over_trials is not None
    assert next(profiles.figure.select_xaxes()).title.text == "rate"  # along which most changes
    line = profiles.figure.data[0]
    assert abs(math.log10(line.x[np.argmax(line.y)]) + 2.5) < 0.4
    lines = over_trials.figure.data
    assert [line.name for line in lines] == ["a study"] * 3
    now = sorted((each.weight for each in priors_in_use(begun)), reverse=True)
    assert [line.y[-1] for line in lines] == pytest.approx(now, abs=1e-3)
    nothing = Study(earlier[0].description, earlier[0].events)
    assert prior_profiles(nothing) is prior_weights(nothing) is None


def test_show_says_what_priors_know(earlier, tmp_path, monkeypatch, capsys):
    from raybo import cli

    searcher = Searcher(SPACE, "sobol", "min", 2, prior=earlier[0])
    events = [*searcher.history.priors, *run(searcher, job(), 6)]
    path = written(tmp_path / "job.db", Study(searcher.description, events))
    bare = written(tmp_path / "bare.db", earlier[0])

    def say(*words):
        monkeypatch.setattr("sys.argv", ["raybo", *words])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *capsys.readouterr()

    _, out, _ = say("show", str(path), "--priors", "--json")
    (found,) = json.loads(out)
    assert (found["knows"], found["taken"], found["weight"]) == (list(SPACE), 40, 1.0)
    shown = say("show", str(path), "--priors")[1]
    assert "like an earlier study: expected among" in shown
    assert "the priors hold: the best of these was better than the median of the design" in shown
    assert say("show", str(bare), "--priors")[::2] == (
        1,
        "Error: the study has no priors; `raybo tune ... --prior OLD.db` begins one with them\n",
    )
    _, out, _ = say("priors", str(tmp_path), "--for", str(path), "--json")
    found, own = json.loads(out)
    assert (found["name"], found["knows"], found["trials"], found["problem"]) == ("bare.db", list(SPACE), 40, None)
    assert (own["name"], own["trials"], own["problem"]) == ("job.db", None, "the job's own journal, which is continued")
    _, out, _ = say("priors", str(tmp_path), "--for", str(path))
    assert re.search(r"job\.db +the job's own journal, which is continued", out)


@raybo.objective(space=SPACE, metric="loss", mode="min")
def tuned(config):
    return job()(config)


def test_tune_begins_with_the_priors_that_it_names(earlier, tmp_path, caplog):
    old = written(tmp_path / "old.db", earlier[0])
    notes = []

    def watch(status):
        notes.extend(status.notes)

    named = {"in_process": True, "seed": 1, "storage": tmp_path / "new.db", "watch": watch}
    begun = raybo.tune(tuned, trials=1, prior="auto", **named)
    assert [trial.origin for trial in begun.trials] == [Origin.PRIOR]
    assert "prior: old.db (40 of 40 trials; knows all parameters)" in notes
    old.unlink()
    longer = raybo.tune(tuned, trials=2, prior=old, **named)
    assert (len(longer.trials), len(longer.history.priors)) == (2, 1)
    for prior in ("auto", ("auto",)):  # in Python, and as the command line has it
        alone = nothing_beside(tmp_path / str(prior))
        raybo.tune(tuned, trials=1, prior=prior, in_process=True, seed=1, storage=alone, watch=False)
    assert caplog.messages == 2 * ["job.db: no journal in its directory can serve as a prior for this study"]
    many = [study(SPACE, job(), 3, "random", seed=seed) for seed in range(10)]
    notes.clear()
    raybo.tune(tuned, trials=1, prior=many, in_process=True, seed=1, watch=watch)
    assert "and 2 more, see `raybo show --priors`" in notes


def nothing_beside(tmp_path):
    """The path of a journal in a directory of its own."""
    (tmp_path / "alone").mkdir(parents=True)
    return tmp_path / "alone" / "job.db"


def test_a_searcher_keeps_its_priors_in_its_journal(earlier, tmp_path):
    path = tmp_path / "loop.db"
    with Searcher(SPACE, mode="min", seed=1, storage=path, prior=earlier) as searcher:
        first = searcher.ask()
    with Searcher(storage=path, prior=earlier) as searcher:
        assert searcher.trials[0].config == first.config
        assert len(searcher.history.priors) == 3
        second = searcher.ask()
        for trial in (first, second):
            searcher.tell(trial, job()(trial.config))
        third = searcher.ask()
    assert [trial.origin for trial in (first, second, third)] == [Origin.PRIOR, None, Origin.PRIOR]
    assert not any(each.differs for each in replay(load(path)))


def of_two_numbers(space, numbers, **goals):
    """A study whose trials end as `numbers` says of their x: with a value and other numbers, or pruned."""
    searcher = Searcher(space, "sobol", seed=0, steps=3, **goals)
    events = []
    for i in range(12):
        events.append(searcher.apply(searcher.propose(searcher.history)))
        events += [searcher.apply(event) for event in numbers(i, searcher.trials[i].config["x"])]
    return Study(searcher.description, events)


def test_results_that_all_break_a_constraint_are_refused(earlier, tmp_path):
    """In a line, and beside others they are left out."""
    space = {"x": raybo.Float(0, 1)}
    goals = {"metric": "score", "constraints": {"memory": "<= 0.5"}}
    bad = written(tmp_path / "bad.db", of_two_numbers(
        space, lambda i, x: [Told(i, value=x, metrics={"memory": 1.0 + x})], **goals
    ))  # fmt: skip
    with pytest.raises(JournalError, match=r"^bad.db: all its results break a constraint of this study"):
        Searcher(space, prior=bad, **goals)
    good = of_two_numbers(space, lambda i, x: [Told(i, value=x, metrics={"memory": 0.1})], **goals)
    written(tmp_path / "good.db", good)
    assert len(new_priors(tmp_path, wanted(space, mode=None, **goals))) == 1


def test_pruned_trials_need_not_have_reported_every_metric(tmp_path):
    space, metrics = {"x": raybo.Float(0, 1)}, {"a": "max", "b": "min"}

    def ends(i, x):
        end = Told(i, value=x, metrics={"b": 1 - x}) if i % 2 else Pruned(i, reason="slow", rule="asha", step=1)
        return [Reported(i, step=1, value=x), end]

    old = written(tmp_path / "old.db", of_two_numbers(space, ends, metrics=metrics))
    searcher = Searcher(space, metrics=metrics, seed=0, prior=old)
    assert searcher.ask().config["x"] > 0.7


def test_of_many_journals_one_must_be_modelled(earlier, tmp_path, monkeypatch):
    """Else none of a directory is a prior, which is said; of those beside the study nobody expects it."""

    def fails(prior, space):
        raise JournalError(f"{prior.study}: its results cannot be modelled")

    for name, each in zip("ab", earlier, strict=False):
        written(tmp_path / f"{name}.db", each)
    monkeypatch.setattr("raybo.searcher.earlier_study.modelled", fails)
    with pytest.raises(JournalError, match=r"b\.db: its results cannot be modelled"):
        new_priors(tmp_path, wanted(SPACE))
    description = Searcher(SPACE, mode="min", seed=0).description
    assert new_priors("auto", Wanted.by(description, tmp_path / "new.db")) == []


# ---- what is taken of a study, and what it is judged by

LINE = {"x": raybo.Float(0, 10)}
LOSS = {"metric": "loss", "mode": "min"}


def line(config):
    return {"loss": (config["x"] - 8) ** 2, "lat": config["x"]}


def ran(path, values, **goals):
    """A kept study that has run these values of x."""
    job, known = raybo.objective(space=LINE, **goals)(line), [{"x": x} for x in values]
    return raybo.tune(job, in_process=True, method="random", enqueue=known, trials=len(known), storage=path)


@pytest.mark.parametrize(
    ("theirs", "mine", "best"),
    [
        ({**LOSS, "constraints": {"lat": "<= 9"}}, "<= 3", 2.0),
        ({**LOSS, "constraints": {"lat": "<= 3"}}, "<= 9", 7.8),
        ({**LOSS, "constraints": {"lat": "<= 3"}}, ">= 7", 7.8),
        ({"metrics": {"loss": "min", "lat": "min"}}, "<= 3", 2.0),
        (LOSS, "<= 3", 2.0),  # it returned the number, and bounded it nowhere
    ],
)
def test_this_studys_bound_decides_what_is_feasible(tmp_path, theirs, mine, best):
    old = ran(tmp_path / "old.db", (0.5, 2.0, 4.5, 7.8, 9.5), **theirs)
    prior = new_priors(old, wanted(LINE, constraints={"lat": mine}, mode="min", metric="loss"))[0]
    assert prior.X[int(np.argmax(prior.scores)), 0] == pytest.approx(best / 10)


@pytest.mark.parametrize(("bound", "best"), [("<= 10", 7.8), ("<= 10 at every step", 4.5)])
def test_what_a_trial_reported_counts_where_every_step_does(tmp_path, bound, best):
    path, theirs = tmp_path / "old.db", {"constraints": {"lat": "<= 9 at every step"}}
    searcher = Searcher(LINE, "random", seed=0, storage=path, **theirs, **LOSS)
    for x in (0.5, 2.0, 4.5, 7.8):
        searcher.enqueue({"x": x})
        trial = searcher.ask()
        searcher.report(trial, {"loss": 50.0, "lat": 12.0 if x == 7.8 else 1.0})
        searcher.tell(trial, {"loss": (x - 8) ** 2, "lat": 2.0})
    prior = new_priors(load(path), wanted(LINE, constraints={"lat": bound}, **LOSS))[0]
    assert prior.X[int(np.argmax(prior.scores)), 0] == pytest.approx(best / 10)


def judged_by(ends, **goals):
    """Return whether the priors hold after the first point has ended so, and which of two trials they led to."""
    old = [study(LINE, lambda c: (c["x"] - 8) ** 2, seed=k, method="sobol") for k in range(3)]
    searcher = Searcher(LINE, "random", seed=0, prior=old, **LOSS, **goals)
    for number in range(5):
        trial = searcher.ask()
        event = ends(trial) if number == 0 else Told(number, value=1.0 + number, metrics={"lat": 1.0})
        searcher.apply(event)
    return hold(searcher.history), [trial.origin is Origin.PRIOR for trial in searcher.trials[:2]]


def test_an_infeasible_first_point_holds_nothing():
    bound = {"constraints": {"lat": "<= 3"}}
    assert judged_by(lambda trial: Told(trial.number, value=0.0, metrics={"lat": 5.0}), **bound)[0] is False
    assert judged_by(lambda trial: Told(trial.number, value=0.0, metrics={"lat": 2.0}), **bound)[0] is True


def test_another_trial_takes_the_place_of_a_first_point_that_was_stopped():
    assert judged_by(lambda trial: Stopped(trial.number, reason="stopped by the user")) == (True, [True, True])
    assert judged_by(lambda trial: Told(trial.number, value=0.0)) == (True, [True, False])


def test_values_of_the_same_job_stay_with_their_configurations(tmp_path):
    def value(config):
        return (config["x"] - 8) ** 2

    with Searcher(LINE, "random", mode="min", seed=0, storage=tmp_path / "old.db") as searcher:
        for number in range(8):
            trial = searcher.ask()
            searcher.report(trial, value(trial.config) + 1)
            if number in (2, 4):
                searcher.prune(trial)
            elif number == 5:
                searcher.fail(trial, "broken")
            else:
                searcher.tell(trial, value(trial.config))
    prior = new_priors(load(tmp_path / "old.db"), wanted(LINE, mode="min"))[0]
    assert len(prior.results) == 5
    assert -np.array(prior.results) == pytest.approx([value({"x": 10 * x}) for x in prior.X[:5, 0]])


def test_a_study_with_cheap_versions_takes_no_results_of_another():
    old = study(LINE, lambda c: (c["x"] - 8) ** 2, 8, method="random")
    assert new_priors(old, wanted(LINE, mode="min"))[0].results
    assert not new_priors(old, wanted(LINE, mode="min", fidelity={"rows": raybo.Fidelity(1, 9)}))[0].results


def test_a_study_is_no_prior_of_itself(tmp_path):
    path = tmp_path / "own.db"
    own = ran(path, (1.0, 2.0, 3.0, 8.0), **LOSS)
    shutil.copy(path, tmp_path / "copy.db")
    again = raybo.objective(space=LINE, **LOSS)(line)
    for given in (tmp_path / "copy.db", load(path)):
        with pytest.raises(JournalError, match="it is this study's own journal or a copy of it"):
            new_priors(given, Wanted.by(own.description, path, identity_of(own.description, own.events)))
        with pytest.raises(JournalError, match="it is this study's own journal or a copy of it"):
            raybo.tune(again, in_process=True, storage=path, trials=5, method="random", prior=given)
    ran(tmp_path / "other.db", (1.5, 2.5, 3.5, 8.5), **LOSS)
    more = raybo.tune(again, in_process=True, storage=path, trials=5, method="random", prior="auto")
    assert not more.history.priors  # it has begun without


def test_results_that_were_entered_count_once():
    def line(config):
        return (config["x"] - 8) ** 2

    old = study(LINE, lambda config: (config["x"] - 8) ** 2, 8, method="random")
    searcher = Searcher(LINE, "random", mode="min", seed=1, prior=old)
    for trial in old.trials[:3]:
        searcher.add(trial.config, trial.value)
    assert same_job(searcher.history) is None  # what was entered may be from that study itself
    searcher.enqueue(old.trials[5].config)
    searcher.tell(searcher.ask(), old.trials[5].value)
    assert same_job(searcher.history) is not None
    assert len(as_methods_see_it(searcher.history).y) == len(old.trials) + 1  # and that of this study's own trial


def test_results_of_ones_own_journal_cannot_be_entered(tmp_path):
    job = raybo.objective(space=LINE, **LOSS)(lambda config: config["x"])
    for source in (tmp_path / "a.db", None):
        own = raybo.tune(job, in_process=True, trials=3, method="random", storage=tmp_path / "a.db")
        with pytest.raises(JournalError, match=r"a\.db: it is this study's own journal, which has its results"):
            raybo.tune(job, in_process=True, trials=4, storage=tmp_path / "a.db", known_from=source or own)


def test_choices_that_have_nothing_in_common_are_left_out():
    old = study({**LINE, "c": raybo.Categorical(["a", "b"])}, lambda c: c["x"], 12, method="random")
    assert new_priors(old, wanted({**LINE, "c": raybo.Categorical(["p", "q"])}))[0].axes == [0]
    assert new_priors(old, wanted({**LINE, "c": raybo.Categorical(["b", "q"])}))[0].axes == [0, 1]


def test_a_constant_of_an_earlier_study_is_not_known():
    old = study({**LINE, "y": raybo.Float(5, 5)}, lambda c: c["x"], 5, method="random")
    assert new_priors(old, wanted({**LINE, "y": raybo.Float(0, 10)}))[0].axes == [0]


@pytest.mark.parametrize(("step", "value", "nearest"), [(1, 4.9, 5), (32, 31.5, 32), (32, 47.0, 32), (1, 4.0, 4)])
def test_numbers_between_two_integers_go_to_the_nearest(step, value, nearest):
    parameter = raybo.Integer(0, 96, step=step)
    assert parameter.decode(np.array([_place(parameter, value)])) == [nearest]


def test_a_metric_that_was_wanted_the_other_way_round_is_named():
    old = study(LINE, lambda c: c["x"], 5, method="random", mode="max")
    prior = new_priors(old, wanted(LINE, mode="min"))[0]
    assert prior.in_words(["x"]).endswith("knows all parameters; it optimised value in the other direction)")


def test_names_and_patterns_of_priors(tmp_path):
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    ran(tmp_path / "a.db", (1.0, 2.0, 8.0), **LOSS)
    ran(tmp_path / "sub" / "deep" / "b.db", (1.5, 2.5, 8.5), **LOSS)
    assert len(new_priors(f"{tmp_path}/**/*.db", wanted(LINE, **LOSS))) == 2
    with pytest.raises(JournalError, match="prior is empty; name a journal or a directory of journals"):
        new_priors("", wanted(LINE))
    with pytest.raises(JournalError, match="prior must be a study, a journal, or a list of them, got Searcher"):
        new_priors([Searcher(LINE)], wanted(LINE))
