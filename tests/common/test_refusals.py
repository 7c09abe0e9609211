"""Public calls refuse whatever they are given in one line; a small part of `python -m tests.adversary`."""

from __future__ import annotations

import zlib
from random import Random

import numpy as np
import pytest

import raybo
from raybo.common.errors import MethodError, ObjectiveError, SpaceError, TrialError
from raybo.common.refusals import refusing
from tests.adversary import api
from tests.adversary.values import Unrepresentable

X = {"x": raybo.Float(0, 1), "n": raybo.Integer(1, 9)}


@pytest.mark.parametrize("case", range(2))
def test_hostile_calls_are_refused_in_a_line(case, tmp_path):
    found = api.attack(Random(zlib.crc32(f"calls {case}".encode())), tmp_path)
    assert (found.tried, found.faults) == (api.MANY, [])


@pytest.mark.parametrize(
    ("call", "error", "why"),
    [
        (lambda: raybo.Space(api.looped(dict)), SpaceError, "Space: a space is a dict .* holds itself"),
        (lambda: raybo.Space(api.nested(dict, 3_000)), SpaceError, "nested too deep"),
        (lambda: raybo.Integer(1, 9).accept(Unrepresentable(), "n"), SpaceError, "n: a whole number is needed"),
        (lambda: raybo.Integer(1, 9).accept(api.Evasive(), "n"), SpaceError, "n: a whole number is needed"),
        (lambda: raybo.Space(X).encode(3), SpaceError, "Space.encode: a configuration is a dict"),
        (lambda: raybo.Space(X).decode("ab"), SpaceError, "Space.rows: points of the cube"),
        (
            lambda: raybo.Space(X).decode(np.zeros((2, 3))),
            SpaceError,
            r"points of the cube are \(n, 2\) finite numbers",
        ),
        (lambda: raybo.Space(X).snap([[0.5, np.nan]]), SpaceError, r"points of the cube are \(n, 2\) finite numbers"),
        (lambda: raybo.Space(X).rows(None), SpaceError, "points of the cube"),
        (lambda: raybo.Space(X).points([1]), SpaceError, "Space.points: a row holds"),
        (lambda: raybo.Space(X).unpack([0.5]), SpaceError, "a row holds .*: 2 of them, got 1"),
        (lambda: raybo.Space(X).unpack(None), SpaceError, "Space.unpack: a row holds"),
        (lambda: raybo.Space(X).sample(None, 3), SpaceError, "Space.sample: sample takes a numpy Generator"),
        (lambda: raybo.Space.from_json([]), SpaceError, "a space's description is what to_json returns"),
        (lambda: raybo.Searcher.of("job.db"), MethodError, "a searcher is made of a study's description"),
        (lambda: raybo.spaces.svm(leave_out=3), SpaceError, "leave_out must be a list of names"),
        (lambda: raybo.spaces.random_forest(is_regression=[]), SpaceError, "is_regression must be True or False"),
        (lambda: searcher().fail(0, Unrepresentable()), TrialError, "Searcher.fail: .*RuntimeError: no repr"),
        (
            lambda: searcher().hypervolume(api.Endless(loss=1)),
            TrialError,
            "a reference is a dict with a number for each metric",
        ),
        (lambda: job().wanting({}, api.Endless(a="< 1")), ObjectiveError, "constraints must be a dict of bounds"),
        (lambda: raybo.objective(space=X)(api.Evasive()), ObjectiveError, "an objective must be a function"),
    ],
)
def test_known_faults_are_refused(call, error, why):
    with pytest.raises(error, match=why) as refused:
        call()
    assert "\n" not in str(refused.value)


def searcher():
    made = raybo.Searcher(X, "random", "min", seed=0)
    made.ask()
    return made


def job():
    return raybo.objective(space=X)(lambda config: config["x"])


def test_errors_of_a_signature_and_raybos_own_pass():
    @refusing(SpaceError, "numbers only")
    def half(number):
        if number == 0:
            raise TrialError("none of it")
        return number / 2

    assert half(4) == 2
    assert half.__name__ == "half"
    with pytest.raises(TypeError, match="missing 1 required"):
        half()
    with pytest.raises(TrialError, match="none of it"):
        half(0)
    with pytest.raises(SpaceError, match=r"half: numbers only; got TypeError: unsupported operand") as refused:
        half("x")
    assert isinstance(refused.value.__cause__, TypeError)


def test_long_reasons_are_shortened():
    with pytest.raises(raybo.SpaceError, match="could not convert string to float") as caught:
        raybo.Space({"x": raybo.Float(0, 1)}).decode("a" * 10_000)
    assert len(str(caught.value)) < 600
