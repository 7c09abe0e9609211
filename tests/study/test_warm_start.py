"""Earlier results enter a study once, as what they are; those that do not fit are refused with the reason."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import replace

import pytest

import raybo
from raybo.common.errors import JournalError, SpaceError, TrialError
from raybo.journal import Journal
from raybo.record.description import Description
from raybo.record.events import KINDS, Begun, Kind, Stopped
from raybo.record.goals import Goals
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Space
from raybo.study import enqueueing, warm_start
from raybo.study.from_text import read_row
from raybo.study.replay import replay
from raybo.study.study import Study, load

GOALS = Goals.of(metric="score")
SPACE = Space({"x": raybo.Float(0, 1), "m": {"n": raybo.Integer(1, 9), "c": raybo.Categorical(["a", None])}})


def describe(space=SPACE, goals=GOALS, **changes):
    return Description("job", goals, space, "random", 3, **changes)


def config(x=0.5, n=3, c="a"):
    return {"x": x, "m": {"n": n, "c": c}}


def other_study(space=SPACE, configs=(), description=None):
    searcher = Searcher(space, "random", seed=0)
    for i, each in enumerate(configs):
        searcher.add(each, float(i))
    failed = searcher.ask()
    searcher.fail(failed, "no")
    events = []
    replay = Searcher(space, "random", seed=0)
    for trial in searcher.trials:
        events.append(replay.apply(replay.known(trial.config)))
        data = {"value": trial.value} if trial.value is not None else {"reason": "no"}
        kind = Kind.TOLD if trial.value is not None else Kind.FAILED
        events.append(replay.apply(KINDS[kind].of(trial.number, data)))
    return Study(describe(space) if description is None else description, events)


def enter(path, description, known):
    """Return how many trials that added to the journal."""
    with contextlib.closing(Journal(path, description)) as journal:
        events = warm_start.enter(journal, Searcher.of(description), known)
    return warm_start.count_added(events) + sum("enqueued" in str(event.data.get("tags")) for event in events)


@pytest.fixture
def path(tmp_path):
    Journal(tmp_path / "job.db", describe()).close()
    return tmp_path / "job.db"


def test_results_and_configurations_enter_once(path):
    known = warm_start.known_of(
        [config(0.1), (config(0.2), 7), {"config": config(0.3), "value": 8.0}, {"config": config(0.4)}], SPACE
    )
    assert enter(path, describe(), known) == 4
    assert enter(path, describe(), known) == 0
    study = load(path)
    assert [(t.config["x"], t.value, str(t.state), t.tags["origin"]) for t in study.trials] == [
        (0.1, None, "pending", "enqueued"),
        (0.2, 7.0, "finished", "added"),
        (0.3, 8.0, "finished", "added"),
        (0.4, None, "pending", "enqueued"),
    ]
    assert warm_start.count_added(study.events) == 2
    assert study.explain(study.trials[0]) == "enqueued by the user"
    assert study.explain(study.trials[1]) == "added by the user"


def test_known_results_enter_a_journal_only_once(path):
    known = warm_start.known_of([(config(0.5), v) for v in (1.0, 3, 3.0)] + [config(0.5), config(0.5)], SPACE)
    assert enter(path, describe(), known[:2] + known[3:4]) == 3
    assert enter(path, describe(), known) == 2
    assert enter(path, describe(), known) == 0
    assert sorted(trial.value for trial in load(path).trials if trial.value is not None) == [1.0, 3.0, 3.0]
    assert load(path).count(State.PENDING) == 2
    assert "knows its result" in enqueueing.enqueue(path, config(0.5), 2.0)
    with pytest.raises(TrialError, match="added with this result before, as trial 5; change"):
        enqueueing.enqueue(path, config(0.5), 2)


def test_results_of_several_metrics_enter_too(tmp_path):
    described = describe(goals=Goals.of({"score": "max", "cost": "min"}, {"memory": "<= 3"}))
    path, numbers = tmp_path / "two.db", {"score": 1.0, "cost": 2.0, "memory": 1}
    results = [numbers, {**numbers, "cost": 2.5}, {**numbers, "memory": 4}, {**numbers, "more": 1.0}, numbers]
    known = warm_start.known_of([(config(0.5), result) for result in results], SPACE, described.goals)
    assert enter(path, described, known) == 5
    assert enter(path, described, known) == 0


def test_finished_trials_of_another_study_keep_their_origin(path):
    other = other_study(configs=[config(0.1), config(0.2)])
    known = warm_start.known_from(other, GOALS, SPACE)
    assert enter(path, describe(), known) == 2
    grown = other_study(configs=[config(0.1), config(0.2), config(0.3)])
    assert enter(path, describe(), warm_start.known_from(grown, GOALS, SPACE)) == 1
    study = load(path)
    assert [trial.value for trial in study.trials] == [0.0, 1.0, 2.0]
    assert [trial.tags["trial"] for trial in study.trials] == [0, 1, 2]
    assert study.explain(study.trials[0]) == "known from job"
    searcher = Searcher(SPACE, "random", seed=3)
    for event in study.events:
        searcher.apply(event)
    assert searcher.best.value == 2.0
    assert len(searcher.history.y) == 3


def test_an_overlapping_space_takes_what_fits():
    wider = Space(
        {
            "x": raybo.Float(-1, 2),
            "m": {"n": raybo.Integer(1, 20), "c": raybo.Categorical(["a", "b", None])},
            "more": raybo.Float(0, 1),
        }
    )
    configs = [
        {**config(0.5, 3, "a"), "more": 0.1},
        {**config(1.5, 3, "a"), "more": 0.2},
        {**config(0.5, 15, "a"), "more": 0.3},
        {**config(0.5, 3, "b"), "more": 0.4},
        {**config(0.25, 4, None), "more": 0.5},
    ]
    known = warm_start.known_from(other_study(wider, configs), GOALS, SPACE)
    assert [(SPACE.unpack(entry.row), entry.value) for entry in known] == [
        (config(0.5), 0.0),
        (config(0.25, 4, None), 4.0),
    ]


def test_invalid_warm_starts_are_refused_with_the_reason(tmp_path):
    with pytest.raises(JournalError, match="it optimises max score, this study min score"):
        warm_start.known_from(other_study(configs=[config()]), replace(GOALS, modes=("min",)), SPACE)
    with pytest.raises(JournalError, match="it has no results yet"):
        warm_start.known_from(other_study(), GOALS, SPACE)
    elsewhere = Space({"y": raybo.Float(0, 1)})
    with pytest.raises(JournalError, match="none of its 1 results fits the space: x: missing"):
        warm_start.known_from(other_study(elsewhere, [{"y": 0.5}]), GOALS, SPACE)
    with pytest.raises(JournalError, match="no such file"):
        warm_start.known_from(tmp_path / "none.db", GOALS, SPACE)
    with pytest.raises(SpaceError, match="enqueue: entry 1 is not a configuration, got 3"):
        warm_start.known_of([config(), 3], SPACE)
    with pytest.raises(SpaceError, match=r"^enqueue: entry 1: x: 2\.0 lies outside"):
        warm_start.known_of([config(), config(2.0)], SPACE)
    whose = "enqueue: the value of entry 1: "
    with pytest.raises(TrialError, match=f"^{whose}a finite number is needed, got nan$"):
        warm_start.known_of([config(), (config(), float("nan"))], SPACE)
    with pytest.raises(TrialError, match=f"^{whose}a number is needed, got 'much'$"):
        warm_start.known_of([config(), (config(), "much")], SPACE)
    bounded = Goals.of(None, {"memory": "<= 3"}, metric="score")
    with pytest.raises(TrialError, match=f"^{whose}its result has no memory; give a number for each of score, memory$"):
        warm_start.known_of([config(), (config(), {"score": 1.0})], SPACE, bounded)


def test_contexts_come_along_where_they_are_declared(tmp_path):
    context = Space({"load": raybo.Float(0, 1)})
    description = describe(context=context)
    path = tmp_path / "c.db"
    known = [
        warm_start.Known(SPACE.pack(config()), 1.0, {"load": 0.25}),
        warm_start.Known(SPACE.pack(config(0.7)), 2.0),
    ]
    enter(path, description, known)
    assert [trial.context for trial in load(path).trials] == [{"load": 0.25}, None]
    assert [entry.context for entry in warm_start.known_from(path, GOALS, SPACE)] == [{"load": 0.25}, None]
    elsewhere = describe(context=Space({"wind": raybo.Float(0, 1)}))
    with pytest.raises(TrialError, match=r"^c\.db, trial 0: 'load' is not a declared context; the study declares wind"):
        enter(tmp_path / "w.db", elsewhere, warm_start.known_from(path, GOALS, SPACE))
    plain = tmp_path / "p.db"
    enter(plain, describe(), known)
    assert [trial.context for trial in load(plain).trials] == [None, None]


def test_a_configuration_is_read_from_text():
    assert SPACE.unpack(read_row(SPACE, {"x": "0.25", "m.n": "4", "m.c": "None"})) == config(0.25, 4, None)
    large = raybo.Space({"n": raybo.Integer(0, 2**60)})
    assert read_row(large, {"n": "9007199254740993"}) == [2**53 + 1]  # which no float is
    assert read_row(SPACE, {"x": "0.25", "m.n": "4"}) == [0.25, 4, None]  # the rest is proposed
    for texts, message in (
        ({}, "at least one parameter must be given: x, m.n, m.c"),
        ({"y": "1"}, "y: not a parameter of the space; available: x, m.n, m.c"),
        ({"x": "much", "m.n": "4", "m.c": "a"}, "x: a number is needed, got 'much'"),
        ({"x": "0.25", "m.n": "4.5", "m.c": "a"}, "m.n: a whole number"),
        ({"x": "0.25", "m.n": "4", "m.c": "z"}, "m.c: 'z' is not one of a, None"),
    ):
        with pytest.raises(SpaceError, match=message):
            read_row(SPACE, texts)


# ---- in a study that runs


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="score")
def job(config):
    return {"score": config["x"]}


@pytest.mark.slow
@pytest.mark.ray
def test_enqueued_configurations_run_first_and_known_results_count(ray_session, tmp_path):
    first = raybo.tune(job, trials=4, method="random", seed=0, storage=tmp_path / "first.db", workers=1)
    again = {
        "trials": 3,
        "method": "random",
        "seed": 1,
        "storage": tmp_path / "second.db",
        "workers": 1,
        "known_from": tmp_path / "first.db",
        "enqueue": [{"x": 0.125}, ({"x": 0.25}, 0.9)],
    }
    second = raybo.tune(job, **again)
    assert [trial.value for trial in second.trials[:4]] == [trial.value for trial in first.trials]
    assert [trial.tags.get("origin") for trial in second.trials] == [*["added"] * 4, "enqueued", "added", None, None]
    assert second.trials[4].value == 0.125
    assert second.trials[4].attempt == 1
    assert [event.trial for event in second.events if event.kind is Kind.RETRIED] == []
    assert second.count(State.FINISHED) == 8
    assert second.planned == 3 + 5
    assert raybo.tune(job, **again).trials == second.trials  # the same command has nothing left to do


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="score", steps=3)
def stepping(config):
    kept = raybo.checkpoint()
    first = 1 if kept is None else int((kept / "step").read_text()) + 1
    print(f"attempt {raybo.current_trial().attempt} from step {first}")  # noqa: T201  # which is kept
    for step in range(first, 4):
        with raybo.saving() as directory:
            (directory / "step").write_text(str(step))
        yield config["x"] * step


@pytest.mark.slow
@pytest.mark.ray
def test_an_enqueued_trial_reruns_only_if_it_began(ray_session, tmp_path):
    path, again = tmp_path / "killed.db", {"trials": 3, "method": "random", "seed": 1, "workers": 1}
    raybo.tune(stepping, **again, storage=tmp_path / "whole.db", enqueue=[{"x": 0.25}, {"x": 0.5}, {"x": 0.75}])
    whole = load(tmp_path / "whole.db")
    assert [(e.trial, e.data["attempt"]) for e in whole.events if e.kind is Kind.BEGUN] == [(0, 1), (1, 1), (2, 1)]
    asked = [event for event in whole.events if event.kind is Kind.ASKED]
    reported = next(event for event in whole.events if event.report is not None)
    events = [*asked, Begun(0, attempt=1), reported, Begun(1, attempt=1)]
    with contextlib.closing(Journal(path, whole.description)) as journal:  # as a command that was killed leaves it
        journal.append([replace(event, number=n) for n, event in enumerate(events, 1)])
    saved = tmp_path / "killed.trials" / "0" / "checkpoints" / "1-1"
    saved.mkdir(parents=True)
    (saved / "step").write_text("1")
    (tmp_path / "killed.trials" / "0" / "output.txt").write_text("what it had printed\n")

    study = raybo.tune(stepping, **again, storage=path)
    assert [(trial.value, trial.attempt) for trial in study.trials] == [(0.75, 2), (1.5, 2), (2.25, 1)]
    assert [event.trial for event in study.events if event.kind is Kind.RETRIED] == [0, 1]
    printed = (tmp_path / "killed.trials" / "0" / "output.txt").read_text()
    assert printed.startswith("what it had printed\n")
    assert "attempt 2 from step 2" in printed


@pytest.mark.slow
@pytest.mark.ray
def test_a_stopped_study_keeps_its_enqueued_trials(ray_session, tmp_path):
    hang, begun = tmp_path / "hang", tmp_path / "begun"
    hang.touch()

    @raybo.objective(space={"x": raybo.Float(0, 1)}, metric="score")
    def job(config):
        begun.touch()
        while hang.exists():
            time.sleep(0.05)
        return config["x"]

    def interrupt(status):
        if begun.exists():
            raise KeyboardInterrupt

    wished = [{"x": 0.125}, {"x": 0.25}, {"x": 0.5}]
    command = {"trials": 4, "method": "random", "seed": 1, "workers": 1, "storage": tmp_path / "s.db"}
    with pytest.raises(KeyboardInterrupt):
        raybo.tune(job, **command, enqueue=wished, watch=interrupt)
    assert [str(trial.state) for trial in load(tmp_path / "s.db").trials] == ["stopped", "pending", "pending"]
    assert load(tmp_path / "s.db").ended == "stopped by the user"
    with pytest.raises(TrialError, match="enqueued before, as trial 2"):
        enqueueing.enqueue(tmp_path / "s.db", wished[2])
    begun.unlink()
    with pytest.raises(KeyboardInterrupt):  # and once more, without the list: the next is stopped, the other stays
        raybo.tune(job, **command, watch=interrupt)
    assert [str(trial.state) for trial in load(tmp_path / "s.db").trials] == ["stopped", "stopped", "pending"]
    hang.unlink()
    study = raybo.tune(job, **command, enqueue=wished)
    assert [trial.config["x"] for trial in study.trials[:5]] == [0.125, 0.25, 0.5, 0.125, 0.25]
    assert [str(trial.state) for trial in study.trials] == ["stopped", "stopped", *["finished"] * 4]
    assert [trial.attempt for trial in study.trials] == [1] * 6
    assert [event for event in study.events if event.kind is Kind.RETRIED] == []
    assert raybo.tune(job, **command, enqueue=wished).trials == study.trials


@pytest.mark.ray
def test_stopping_rules_wait_for_all_enqueued_trials(ray_session, tmp_path):
    command = {"trials": 2, "method": "random", "seed": 1, "workers": 1, "storage": tmp_path / "s.db", "target": 0.1}
    study = raybo.tune(job, **command, enqueue=[{"x": 0.25}, {"x": 0.5}, {"x": 0.75}])
    assert [trial.value for trial in study.trials] == [0.25, 0.5, 0.75]


def test_what_was_stopped_may_be_enqueued_again(path):
    assert enter(path, describe(), warm_start.known_of([config(0.1)], SPACE)) == 1
    with contextlib.closing(Journal(path)) as journal:
        journal.begin(journal.description)
        journal.append([Stopped(0, reason="stopped by the user", attempt=1, number=2)])
    study = load(path)
    searcher = Searcher.of(study.description)
    for event in study.events:
        searcher.apply(event)
    assert warm_start.wanted(searcher, SPACE.pack(config(0.1))) is not None  # of a study that runs
    assert "starts with it" in enqueueing.enqueue(path, config(0.1))
    with pytest.raises(TrialError, match="enqueued before, as trial 1"):
        enqueueing.enqueue(path, config(0.1))
    assert enter(path, describe(), warm_start.known_of([config(0.1)], SPACE)) == 0


def test_parts_enter_once_and_are_proposed(path):
    parts = [{"x": 0.25}, {"m": {"c": None}}, {"x": 0.25}]
    assert enter(path, describe(), warm_start.known_of(parts, SPACE)) == 3
    assert enter(path, describe(), warm_start.known_of(parts, SPACE)) == 0
    trials = load(path).trials
    assert [trial.tags["given"] for trial in trials] == [["x"], ["m.c"], ["x"]]
    assert [trials[0].config["x"], trials[1].config["m"]["c"], trials[2].config["x"]] == [0.25, None, 0.25]
    assert len({trial.config["m"]["n"] for trial in trials}) > 1
    assert [each.differs for each in replay(load(path))] == [(), (), ()]
    with pytest.raises(TrialError, match="this configuration was enqueued before, as trial 0"):
        enqueueing.enqueue(path, {"x": 0.25})


def test_a_part_has_no_result(path):
    with pytest.raises(SpaceError, match="enqueue: entry 0: m: missing from the configuration"):
        warm_start.known_of([({"x": 0.5}, 1.0)], SPACE)
    with pytest.raises(
        SpaceError, match=r"m\.n: missing from the configuration; what has a result is given as a whole"
    ):
        enqueueing.enqueue(path, {"x": 0.5}, 1.0)
    assert load(path).trials == []


def test_a_part_that_breaks_a_rule_is_refused(tmp_path):
    space = Space({"a": Float(0, 1), "b": Float(0, 1), "c": Float(0, 1)}, where="a + b <= 1")
    with pytest.raises(SpaceError, match=r"enqueue: the configuration breaks the rule 'a \+ b <= 1': a=0.9, b=0.8"):
        enter(tmp_path / "r.db", describe(space), warm_start.known_of([{"a": 0.9, "b": 0.8}], space))
    enter(tmp_path / "r.db", describe(space), warm_start.known_of([{"a": 0.9}], space))
    (trial,) = load(tmp_path / "r.db").trials
    assert trial.config["b"] <= 0.1


def test_the_command_line_reads_enqueued_lists_from_files(tmp_path):
    from raybo.cli.arguments import read_list

    (tmp_path / "k.json").write_text(json.dumps([config(), {"config": config(), "value": 1}]))
    assert len(warm_start.known_of(read_list(tmp_path / "k.json"), SPACE)) == 2


def test_a_configuration_as_text_names_conditional_parameters():
    space = raybo.Space(
        {
            "model": raybo.Categorical(
                [{"kind": "svm", "C": raybo.Float(0, 1)}, {"kind": "knn", "k": raybo.Integer(1, 9)}]
            )
        }
    )
    assert read_row(space, {"model": "knn", "model.knn.k": "3"}) == [1, None, 3]
    assert read_row(space, {"model.knn.k": "3"}) == [1, None, 3]  # which says the model
    assert read_row(space, {"model": "knn"}) == [1, None, None]
    with pytest.raises(SpaceError, match=r"model\.svm\.C: it has no meaning with the other choices"):
        read_row(space, {"model": "knn", "model.knn.k": "3", "model.svm.C": "0.5"})
    with pytest.raises(SpaceError, match="model: 'tree' is not one of svm, knn"):
        read_row(space, {"model": "tree"})


# ---- a space that has grown


def study_of(space, configs, path=None):
    searcher = Searcher(space, "random", seed=0)
    events = []
    apply = searcher.apply
    searcher.apply = lambda event: events.append(apply(event)) or events[-1]
    for i, config in enumerate(configs):
        searcher.add(config, float(i))
    description = Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0)
    return Study(description, events)


def test_results_of_a_narrower_space_take_defaults():
    old = study_of({"lr": Float(0, 1)}, [{"lr": 0.2}, {"lr": 0.7}])
    wide = Space({"lr": Float(-1, 2), "model": {"dropout": Float(0, 1)}, "act": Categorical(["relu", "tanh"])})
    for defaults in ({"model.dropout": 0.0, "act": "tanh"}, {"model.dropout": "0", "act": "tanh"}):
        found = warm_start.known_from(old, Goals(), wide, defaults)
        assert [wide.unpack(known.row) for known in found] == [
            {"lr": lr, "model": {"dropout": 0.0}, "act": "tanh"} for lr in (0.2, 0.7)
        ]
        assert [known.value for known in found] == [0.0, 1.0]


def test_defaults_fill_only_missing_values():
    small, large = {"C": Float(0, 1)}, {"C": Float(0, 1), "d": Float(0, 1)}
    old = study_of({"m": Categorical([small, large])}, [{"m": {"C": 0.2}}, {"m": {"C": 0.3, "d": 0.7}}])
    space = Space({"m": Categorical([large, "none"])})
    found = warm_start.known_from(old, Goals(), space, {"m.d": 0.5})
    assert [space.unpack(known.row)["m"] for known in found] == [{"C": 0.2, "d": 0.5}, {"C": 0.3, "d": 0.7}]


def test_a_configuration_is_enqueued_only_once(path):
    searcher = Searcher.of(describe())
    row = SPACE.pack(config())
    asked = searcher.apply(searcher.enqueued(searcher.history, warm_start.wanted(searcher, row)))
    assert warm_start.wanted(searcher, row) is None
    assert warm_start.wanted(searcher, SPACE.pack(config(0.6))) is not None
    searcher.apply(Stopped(asked.trial, reason="by the user"))
    assert warm_start.wanted(searcher, row) is not None
    with pytest.raises(SpaceError, match="3 values are needed, one for each parameter, got 2"):
        warm_start.wanted(searcher, row[:-1])


def test_without_a_default_the_refusal_says_so():
    old = study_of({"lr": Float(0, 1)}, [{"lr": 0.2}])
    wide = Space({"lr": Float(0, 1), "dropout": Float(0, 1)})
    with pytest.raises(
        JournalError, match=r"dropout: missing .*; --default dropout=... \(defaults=\) gives its value there"
    ):
        warm_start.known_from(old, Goals(), wide)


@pytest.mark.parametrize(
    ("defaults", "told"),
    [
        ({"dropuot": 0.0}, "default dropuot: not a parameter of the space; did you mean 'dropout'?"),
        ({"dropout": 2.0}, "dropout: 2.0 lies outside"),
        ({"dropout": "much"}, "dropout: a number is needed, got 'much'"),
        ({"lr": 0.5}, "default lr: all results of job have a value there; leave it out"),
        ({"m": "l2"}, "default m: {'kind': 'l2'} fits none of the choices (m.l2.w: missing from the configuration)"),
        ({"m": "l2", "m.l2.w": 2.0}, "m.l2.w: 2.0 lies outside"),
        ({"m": {"kind": "l2", "w": 2.0}}, "default m: {'kind': 'l2', 'w': 2.0} fits none of the choices (m.l2.w: 2.0"),
        ({"m": {"kind": "l1"}}, "default m: {'kind': 'l1'} fits none of the choices"),
    ],
)
def test_a_default_is_a_value_of_a_parameter(defaults, told):
    old = study_of({"lr": Float(0, 1)}, [{"lr": 0.2}])
    branch = Categorical(["off", {"kind": "l2", "w": Float(0, 1)}])
    wide = Space({"lr": Float(0, 1), "dropout": Float(0, 1), "m": branch})
    with pytest.raises(SpaceError) as refused:
        warm_start.known_from(old, Goals(), wide, defaults)
    assert str(refused.value).startswith(told)


BRANCHES = [
    {"kind": "svm", "C": Float(0, 1), "inner": Categorical(["none", {"kernel": "rbf", "gamma": Float(0, 1)}])},
    {"kind": "knn", "k": Integer(1, 9), "inner": {"p": Integer(1, 9)}},
]


@pytest.mark.parametrize(
    "defaults",
    [
        {"m": {"kind": "svm", "C": 0.5, "inner": {"kernel": "rbf", "gamma": 0.25}}},
        {"m": {"kind": "svm", "inner": {"kernel": "rbf"}}, "m.svm.C": 0.5, "m.svm.inner.rbf.gamma": "0.25"},
        {"m": "svm", "m.svm.C": "0.5", "m.svm.inner": "rbf", "m.svm.inner.rbf.gamma": "0.25", "m.knn.k": 3},
    ],
)
def test_a_new_choice_brings_its_conditional_parameters(defaults):
    old = study_of({"lr": Float(0, 1)}, [{"lr": 0.2}])
    space = Space({"lr": Float(0, 1), "m": Categorical(BRANCHES)})
    (known,) = warm_start.known_from(old, Goals(), space, defaults)
    assert space.unpack(known.row) == {
        "lr": 0.2,
        "m": {"kind": "svm", "C": 0.5, "inner": {"kernel": "rbf", "gamma": 0.25}},
    }


def test_a_branch_may_grow():
    """A parameter that is new in a branch has its default in the results that chose this branch."""
    narrow = {"m": Categorical([{"kind": "svm", "C": Float(0, 1)}, {"kind": "knn", "k": Integer(1, 9)}])}
    told = [{"m": {"kind": "svm", "C": 0.5}}, {"m": {"kind": "knn", "k": 3}}]
    old, wide = study_of(narrow, told), Space({"m": Categorical(BRANCHES)})
    with pytest.raises(JournalError, match=r"; --default m\.svm\.inner=\.\.\. \(defaults=\) gives its value there$"):
        warm_start.known_from(old, Goals(), wide)
    found = warm_start.known_from(old, Goals(), wide, {"m.svm.inner": "none", "m.knn.inner.p": "2"})
    assert [wide.unpack(known.row)["m"] for known in found] == [
        {"kind": "svm", "C": 0.5, "inner": "none"},
        {"kind": "knn", "k": 3, "inner": {"p": 2}},
    ]


def test_results_that_break_a_rule_are_left_out():
    old = study_of({"a": Float(0, 1), "b": Float(0, 1)}, [{"a": 0.2, "b": 0.5}, {"a": 0.7, "b": 0.1}])
    ruled = Space({"a": Float(0, 1), "b": Float(0, 1)}, where="a < b")
    assert [known.row[0] for known in warm_start.known_from(old, Goals(), ruled)] == [0.2]
    with pytest.raises(JournalError, match=r"breaks the rule 'a > 2 \* b': a=0.2, b=0.5"):
        warm_start.known_from(study_of({"a": Float(0, 1), "b": Float(0, 1)}, [{"a": 0.2, "b": 0.5}]), Goals(),
                   Space({"a": Float(0, 1), "b": Float(0, 1)}, where="a > 2 * b"))  # fmt: skip
    with pytest.raises(SpaceError, match=r"breaks the rule 'a < b': a=0.7, b=0.1"):
        warm_start.known_of([{"a": 0.7, "b": 0.1}], ruled)
    with pytest.raises(SpaceError, match=r"breaks the rule 'a < b'"):
        Searcher(ruled, "random").add({"a": 0.7, "b": 0.1}, 1.0)
