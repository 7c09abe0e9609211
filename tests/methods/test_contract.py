"""What every registered method promises, whatever it is. A new method joins by its name in the registry."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import json
import math
import typing

import numpy as np
import pytest

from raybo import methods
from raybo.common.errors import MethodError
from raybo.record.events import KINDS, Asked, Kind, Origin, Planned, State, Told
from raybo.record.goals import Goals
from raybo.record.history import History, Proposal
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Ordinal, Space

NAMES = [name for name, home in methods.METHODS.items() if importlib.util.find_spec(home.partition(":")[0])]

SPACES = {
    "mixed": Space(
        {
            "lr": Float(1e-4, 1, log=True),
            "n": Integer(1, 12),
            "c": Categorical(["a", "b", "c"]),
            "s": Float(0, 1, step=0.1),
            "big": Integer(1, 10**9, log=True),
        }
    ),
    "one float": Space({"x": Float(-5, 5)}),
    "one integer": Space({"n": Integer(0, 4)}),
    "one choice": Space({"c": Categorical(["a", "b"])}),
    "a single choice": Space({"c": Categorical(["only"])}),
    "a single choice beside a float": Space({"x": Float(0, 1), "c": Categorical([None])}),
    "six floats": Space({f"x{i}": Float(0, 1) for i in range(6)}),
    "an order and a logit": Space({"n": Ordinal([8, 16, 32, 64]), "x": Float(0.5, 0.9999, scale="logit")}),
    "ruled": Space(
        {
            "depth": Integer(1, 64),
            "width": Integer(1, 64),
            "c": Categorical(["a", "b", "c"]),
            "lr": Float(1e-4, 1, log=True),
            "size": Ordinal([8, 16, 32, 64]),
            "free": Float(0, 1),
        },
        where=["depth * width <= 64", "c != 'a' or lr < 1e-2", "size <= 2 * depth + 8"],
    ),
    "hardly anything is allowed": Space(
        {**{f"x{i}": Float(0, 1) for i in range(5)}, "m": Categorical(["off", {"kind": "l2", "w": Float(0, 1)}])},
        where=["x0 + x1 + x2 + x3 + x4 < 0.3", "m.l2.w > x0"],
    ),
}


CONTEXT = Space({"load": Float(0, 10)})  # declared where a method works with nothing else


def declared(name):
    """The keyword argument that declares a context, where the method needs one."""
    return {"context": CONTEXT} if methods.needs_context(name) else {}


def met(name, number):
    """The keyword argument that tells of it."""
    return {"context": {"load": 5.0 + 4.0 * math.sin(number)}} if methods.needs_context(name) else {}


def variants(name):
    """The method once for each value, beside the default, of every option that is a choice of words."""
    hints, default = typing.get_type_hints(methods.load(name)), methods.make(name)
    for option, _, _ in methods.describe(name)[1]:
        for hint in (hints[option], *typing.get_args(hints[option])):
            for word in typing.get_args(hint):
                if isinstance(word, str) and word != getattr(default, option):
                    slow = marked(name) or marked(word)
                    yield pytest.param(name, {option: word}, id=f"{name} {option}={word}", marks=slow)


def stream(*key):
    return np.random.default_rng(np.random.SeedSequence(7, spawn_key=key))


LAST = 3  # trials of a history whose tags are always the method's own
ROUNDS = ("many_dimensions", "exp3")  # of methods whose every proposal goes on from the tags of the one before
PROPOSED = {}  # the tags of every proposal on which a history was built, as text: its method and all that came before


def tags_of(method, history, *before):
    """What a method would say of the next trial, asked once for all the tests whose histories begin alike."""
    if before not in PROPOSED:
        PROPOSED[before] = json.dumps(method.propose(history, stream(len(history))).tags)
    return json.loads(PROPOSED[before])


def history_of(space, points, ends, *, sign=1.0, planned=None, method=None, begun=None):
    """A history of trials: `ends` holds a value, "failed", "lost", "stopped" or None for pending.

    Tags are the method's own where one is given: it may rely on having asked for its trials itself. All but the last
    three are those of `begun`, where that is given: a study whose options were changed. Once its design is over, a
    method that does not play in rounds is not asked for each trial before these: its last tags stand for those of all.
    """
    cube = CONTEXT.cube if getattr(method, "needs_context", False) else None
    history = History(space.cube, Goals(modes=("max" if sign > 0 else "min",)), cube)
    if planned is not None:
        history.apply(Planned(trials=planned))
    X, told = space.snap(np.array(points, dtype=float)), tuple(map(repr, ends))
    asking = [method if begun is None or left <= LAST else begun for left in range(len(X), 0, -1)]
    is_design, in_rounds = True, any(name in type(method).__module__ for name in ROUNDS)
    for number, (x, end) in enumerate(zip(X, ends, strict=True)):
        if method is None:
            tags = {}
        elif is_design or in_rounds or number >= len(X) - LAST:
            before = (tuple(asking[: number + 1]), space, sign, planned, X[:number].tobytes(), told[:number])
            tags = tags_of(asking[number], history, *before)
            is_design = "sobol" in tags
        history.apply(Asked(number, x=x.tolist(), tags=tags))
        if end is not None:
            kind, data = {
                "failed": (Kind.FAILED, {"reason": "raised"}),
                "lost": (Kind.FAILED, {"reason": "gone", "kind": "lost"}),
                "stopped": (Kind.STOPPED, {"reason": "by the user"}),
            }.get(end if isinstance(end, str) else "", (Kind.TOLD, {"value": end}))
            c = {"c": [0.5 + 0.4 * math.sin(number)]} if cube is not None and number % 6 else {}
            history.apply(KINDS[kind].of(number, {**data, **c}))
    return history


def frozen(history):
    """Everything a method could have changed."""
    records = [(r.x.tobytes(), json.dumps(r.tags), r.state, r.y) for r in history.records]
    return history.planned, history.last_event, history.goals, records


def check(method, history, number=99):
    """One proposal: in the cube, plain tags, repeatable, explained, the history untouched."""
    before = frozen(history)
    proposal = method.propose(history, stream(number))
    assert isinstance(proposal, Proposal)
    x = proposal.x
    assert x.shape == (history.d,)
    assert x.dtype == np.float64
    assert np.isfinite(x).all()
    assert ((x >= 0) & (x <= 1)).all()
    snapped = history.cube.snap(x[None, :])[0]
    np.testing.assert_array_equal(history.cube.snap(snapped[None, :])[0], snapped)
    assert json.loads(json.dumps(proposal.tags, allow_nan=False)) == json.loads(json.dumps(proposal.tags))
    assert frozen(history) == before
    again = method.propose(history.copy(), stream(number))
    assert again.x.tobytes() == x.tobytes()
    assert again.tags == proposal.tags
    told = method.explain(json.loads(json.dumps(proposal.tags)))
    assert told
    assert "\n" not in told
    return proposal


SLOW = {"mcmc"}  # a second per proposal


def marked(name):
    """Marks of a method's tests."""
    return [pytest.mark.slow] if name in SLOW else []


@pytest.fixture(params=[pytest.param(name, marks=marked(name)) for name in NAMES])
def name(request):
    return request.param


@pytest.fixture
def method(name):
    return methods.make(name)


def numbers(name, value):
    """Each option that is a number, or numbers, with that value; beside every choice of words."""
    hints, words = typing.get_type_hints(methods.load(name)), [{}]
    words += [variant.values[1] for variant in variants(name) if not variant.marks]
    small = {"initial": 3} if "initial" in hints else {}
    for option, _, _ in methods.describe(name)[1]:
        kinds = {hints[option], *typing.get_args(hints[option])}
        given = [value] if kinds & {int, float} else []
        given += [(value, 1.0), (1.0, value)] if any(typing.get_origin(kind) is tuple for kind in kinds) else []
        for each in given:
            yield from ({**small, **variant, option: each} for variant in words)


@pytest.mark.parametrize("value", [-1, 0, math.nan, math.inf])
def test_a_number_at_or_beyond_the_end_of_its_range_is_refused_by_name_or_works(name, value):
    """Refused when the method is made, or good for proposals at the next points of a study that had its defaults."""
    space, default, rng = Space({"a": Float(0, 1), "b": Float(0, 1)}), methods.make(name), np.random.default_rng(1)
    whole = history_of(space, rng.random((10, 2)), rng.random(10), planned=40, method=default)
    histories = [whole]
    for end in (8, 9):  # where methods that work in iterations explore, and where they move
        histories.append(whole.plain(whole.records[:end]))
    for options in numbers(name, value):
        try:
            method, refusal = methods.make(name, **options), ""
        except MethodError as error:
            refusal = str(error)
        assert refusal == "" or refusal.startswith(f"{name}: "), options
        assert "\n" not in refusal, options
        for history in () if refusal else histories:
            x = method.propose(history, stream(1)).x
            assert np.isfinite(x).all(), options
            assert ((x >= 0.0) & (x <= 1.0)).all(), options


def test_the_registry_has_the_methods_of_this_version():
    assert set(NAMES) >= {"random", "sobol"}


# ---- what it is


def test_a_method_is_a_frozen_dataclass_whose_options_say_what_they_mean(name, method):
    text, options = methods.describe(name)
    assert text
    assert dataclasses.is_dataclass(method)
    assert all(meaning for _, _, meaning in options)
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.anything = 1
    assert methods.make(name, **{option: default for option, default, _ in options}) == method


def test_unknown_options_are_refused(name):
    with pytest.raises(MethodError, match=f"^{name} has no option 'nonsense_of_mine'"):
        methods.make(name, nonsense_of_mine=1)


# ---- on every space and every history


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("n", [0, 1, 2, 25])
def test_it_proposes_on_every_space(name, method, space, n):
    n = min(n, 8) if name in SLOW else min(n, 12) if space.rules else n  # with rules a solver looks around at length
    points = stream(0).random((n, space.d))
    values = np.sin(5 * points).sum(axis=1).tolist()
    check(method, history_of(space, points, values, planned=40, method=method))


RULED = [space for space in SPACES.values() if space.rules]


@pytest.mark.parametrize("space", RULED)
@pytest.mark.parametrize("n", [0, 6, 12])
def test_no_proposal_breaks_a_rule(name, method, space, n):
    n = min(n, 6) if name in SLOW else n
    points = stream(0).random((n, space.d))
    values = np.sin(5 * points).sum(axis=1).tolist()
    history = history_of(space, points, values, planned=40, method=method)
    searcher = Searcher(space, name, seed=4, **declared(name))
    for trial in range(3):
        searcher.method = method
        asked = searcher.propose(history)
        space.require_allowed(asked.data["values"])
        assert space.cube.allows(np.array([asked.data["x"]])).all()
        history.apply(Asked(len(history), x=asked.data["x"], tags=asked.data["tags"]))
        if trial:
            history.apply(Told(len(history) - 1, value=0.1 * trial))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [variant for name in NAMES for variant in variants(name)])
def test_no_proposal_under_any_of_its_options_breaks_a_rule(name, options):
    space = SPACES["ruled"]
    searcher = Searcher(space, name, seed=4, **declared(name), **options)
    points, ends = stream(3).random((12, space.d)), [*stream(3).random(9).tolist(), "failed", "lost", None]
    history = history_of(space, points, ends, planned=20, method=searcher.method, begun=methods.make(name))
    space.require_allowed(searcher.propose(history).data["values"])


POINTS = stream(1).random((14, SPACES["mixed"].d))
GRID = np.tile([0.5, 0.5, 0.5, 0.5, 0.5], (14, 1))
VALUES = np.cos(4 * POINTS).sum(axis=1).tolist()
HISTORIES = {
    "nothing planned": (POINTS, VALUES, None),
    "all pending": (POINTS, [None] * 14, 20),
    "all failed": (POINTS, ["failed"] * 14, 20),
    "all lost": (POINTS, ["lost"] * 14, 20),
    "all stopped": (POINTS, ["stopped"] * 14, 20),
    "one finished, others failed": (POINTS, [1.0] + ["failed"] * 13, 20),
    "one finished, others pending": (POINTS, [1.0] + [None] * 13, 20),
    "every kind": (POINTS, [*VALUES[:10], "failed", "lost", "stopped", None], 20),
    "failed first": (POINTS, ["failed", "failed", *VALUES[2:]], 20),
    "constant values": (POINTS, [3.25] * 14, 20),
    "all zero": (POINTS, [0.0] * 14, 20),
    "ties": (POINTS, [float(i % 2) for i in range(14)], 20),
    "the same point": (GRID, VALUES, 20),
    "the same point and value": (GRID, [1.0] * 14, 20),
    "the same point pending": (GRID, [*VALUES[:7], *[None] * 7], 20),
    "the same point failed": (GRID, [*VALUES[:7], *["failed"] * 7], 20),
    "huge values": (POINTS, [1e300 * v / 8 for v in VALUES], 20),
    "huge of both signs": (POINTS, [1.7e308, -1.7e308, *VALUES[2:]], 20),
    "tiny values": (POINTS, [1e-300 * v for v in VALUES], 20),
    "denormal values": (POINTS, [5e-324 * (i % 3) for i in range(14)], 20),
    "one outlier": (POINTS, [*VALUES[:13], -1e12], 20),
    "nearly constant": (POINTS, [1e9 + 1e-7 * v for v in VALUES], 20),
    "corners": (np.round(POINTS), VALUES, 20),
    "more than planned": (POINTS, VALUES, 5),
    "the only one planned": (POINTS[:1], VALUES[:1], 1),
}


@pytest.mark.parametrize(("points", "ends", "planned"), HISTORIES.values(), ids=HISTORIES)
def test_it_proposes_after_every_history(method, points, ends, planned):
    check(method, history_of(SPACES["mixed"], points, ends, planned=planned, method=method))


@pytest.mark.parametrize("history", ["every kind", "the same point pending"])
@pytest.mark.parametrize(("name", "options"), [variant for name in NAMES for variant in variants(name)])
def test_it_proposes_under_each_of_its_options(name, options, history):
    points, ends, planned = HISTORIES[history]
    method = methods.make(name, **options)
    begun = methods.make(name)
    check(method, history_of(SPACES["mixed"], points[:5], ends[:5], planned=planned, method=method))
    check(method, history_of(SPACES["mixed"], points, ends, planned=planned, method=method, begun=begun))


@pytest.mark.parametrize("space", [SPACES["one integer"], SPACES["one choice"], SPACES["a single choice"]])
def test_it_goes_on_when_every_point_has_been_tried(method, space):
    levels = np.concatenate([space.cube.levels[0]] * 5)[:, None]
    for ends in ([float(i % 3) for i in range(len(levels))], [None] * len(levels)):
        check(method, history_of(space, levels, ends, planned=50, method=method))


def test_trials_that_the_user_added_carry_no_tags_and_do_no_harm(name):
    space = SPACES["mixed"]
    searcher = Searcher(space, name, seed=3, trials=30, **declared(name))
    for i, config in enumerate(space.sample(stream(2), 15)):
        searcher.add(config, float(config["n"]), **met(name, i))
    for i in range(4):
        searcher.tell(searcher.ask(), float(i), **met(name, i))
    check(searcher.method, searcher.history)


# ---- purity, by replay


@functools.cache
def events_of(name, count=18):
    """A study with everything in it: waves of three, told out of order, failures, an added trial; its events."""
    searcher = Searcher(SPACES["mixed"], name, seed=5, **declared(name))
    events, apply = [], searcher.apply

    def keep(event):
        events.append(apply(event))
        return events[-1]

    searcher.apply = keep
    searcher.plan(count)
    searcher.add({"lr": 0.1, "n": 3, "c": "b", "s": 0.3, "big": 77}, 1.0, **met(name, 1))
    while len(searcher.trials) < count:
        wave = [searcher.ask() for _ in range(3)]
        for trial in reversed(wave):
            if trial.number % 5 == 4:
                searcher.fail(trial, "unlucky", **met(name, trial.number))
            elif trial.number % 7 != 6:  # the sevenths stay pending
                value = trial.config["s"] - math.log10(trial.config["lr"]) ** 2
                searcher.tell(trial, value, **met(name, trial.number))
    return searcher, events


def test_replaying_the_events_gives_the_same_proposals(name):
    searcher, events = events_of(name)
    replayed = Searcher(SPACES["mixed"], name, seed=5, **declared(name))
    for written in events:
        event = type(written).of(written.trial, json.loads(json.dumps(written.data)), written.number)
        if isinstance(event, Asked) and event.origin is not Origin.ADDED:
            assert event.seen == replayed.history.last_event
            proposed = replayed.propose(replayed.history)
            untimed = {"suggest_seconds": 0, "suggest_processor_seconds": 0}
            assert {**proposed.data, **untimed} == {**event.data, **untimed}
        replayed.apply(event)
    assert [(t.state, t.value, t.tags) for t in replayed.trials] == [
        (t.state, t.value, t.tags) for t in searcher.trials
    ]


def test_another_process_would_propose_the_same(name):
    """Nothing is kept in the method: proposals asked out of order agree with those asked in order."""
    searcher, events = events_of(name)
    prefixes, history = [], History(searcher.space.cube, context_cube=searcher.history.context_cube)
    for event in events:
        if event.kind is Kind.ASKED and event.data["tags"].get("origin") != "added":
            prefixes.append((history.copy(), event))
        history.apply(event)
    fresh = Searcher(searcher.space, name, seed=5, **declared(name))
    for prefix, event in reversed(prefixes):
        assert fresh.propose(prefix).data["x"] == event.data["x"]


def test_minimising_is_maximising_the_negative(name):
    searcher = {
        mode: Searcher(SPACES["six floats"], name, mode=mode, seed=1, trials=16, **declared(name))
        for mode in ("max", "min")
    }
    for i in range(16):
        up, down = searcher["max"].ask(), searcher["min"].ask()
        assert up.config == down.config
        value = -sum((v - 0.3) ** 2 for v in up.config.values())
        searcher["max"].tell(up, value, **met(name, i))
        searcher["min"].tell(down, -value, **met(name, i))
    assert searcher["max"].best.number == searcher["min"].best.number


def test_another_seed_gives_another_study(name):
    a, b = (Searcher(SPACES["six floats"], name, seed=seed, trials=10, **declared(name)) for seed in (0, 1))
    assert a.ask().config != b.ask().config


def test_many_pending_trials_are_kept_apart(name):
    """All of a wave are asked before any is told: a method that forgets the pending ones proposes one point again."""
    searcher = Searcher(SPACES["six floats"], name, seed=2, trials=40, **declared(name))
    for _ in range(12):
        trial = searcher.ask()
        searcher.tell(trial, -sum((v - 0.3) ** 2 for v in trial.config.values()), **met(name, trial.number))
    X = np.array([list(searcher.ask().config.values()) for _ in range(8)])
    distances = np.linalg.norm(X[:, None] - X[None, :], axis=2)[np.triu_indices(8, 1)]
    assert distances.min() > 1e-6
    assert searcher.history.count(State.PENDING) == 8
