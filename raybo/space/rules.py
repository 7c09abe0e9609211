"""Rules between parameters, such as `depth * width <= 64`: text that raybo's own parser reads, never run as code.

    names          parameters, nested ones dotted as tables show them; `in backquotes` if a name is not a word
    numbers        + - * / % **, min, max, abs, log, exp
    comparisons    < <= > >= == !=, chained too; a choice with one of its values: kernel == 'rbf'
    logic          and, or, not

A rule applies only to configurations in which all its parameters are open. If an operation has no finite result (a
division by zero, the logarithm of a negative number, a choice that is not a number), its comparison is undefined;
`and`, `or` and `not` follow Kleene's logic, so `b == 0 or a / b < 2` is true where b is 0; and a rule that is undefined
as a whole is broken.
"""

from __future__ import annotations

import ast
import operator
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from keyword import iskeyword
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from raybo.common.arguments import a_list, is_real
from raybo.common.errors import SpaceError
from raybo.common.messages import nearest, shortened, shown
from raybo.space.branches import branches_of, choice_names
from raybo.space.parameters import Array, Categorical, Ordinal, Parameter

LONGEST = 4_000  # characters of a rule
DEEPEST = 150  # levels of its nesting

Columns: TypeAlias = Mapping[int, Array]  # per axis, the parameter's values (m,); of a choice, the positions


class Truth(NamedTuple):
    """The truth of a condition at each of m points.

    Attributes:
        holds: (m,), 1 or 0, NaN if it is undefined.
        lack, excess: functions that give (m,), how far each point is from making it true, and from making it false; 0
            if it already is. They are seldom called.
    """

    holds: Array
    lack: Callable[[], Array]
    excess: Callable[[], Array]


@dataclass(frozen=True, eq=False)
class Rule:
    """A condition on parameters.

    Attributes:
        text: the rule as its user wrote it.
        axes: those of the parameters that it names, ascending.
        condition: the condition as a function of these parameters' values.
        read_among: names and parameters of the space that it was read for.
    """

    text: str
    axes: tuple[int, ...]
    condition: Callable[[Columns], Truth]
    read_among: tuple[Sequence[str], Sequence[Parameter]]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it as text, to be parsed again: the condition is made of nested functions."""
        return read_rule, (self.text, *self.read_among)

    def __repr__(self) -> str:
        return repr(self.text)

    def holds(self, columns: Columns) -> np.ndarray[Any, np.dtype[np.bool_]]:  # (m,)
        """Return which rows satisfy it; an undefined rule is broken."""
        with np.errstate(all="ignore"):
            return np.asarray(self.condition(columns).holds == 1.0)

    def lack(self, columns: Columns) -> Array:  # (m,)
        """Return how far each row is from satisfying it, on a scale of its own; 0 if it is satisfied."""
        with np.errstate(all="ignore"):
            found = self.condition(columns)
            lack = np.nan_to_num(found.lack(), nan=UNDEFINED)
        return np.where(found.holds == 1.0, 0.0, np.maximum(lack, TINY))


SHOWN = 100  # characters of a rule in an error message
UNDEFINED = 2.0  # lack of an undefined comparison
TINY = 1e-12  # least lack of a broken rule


def read_rules(where: Any, names: Sequence[str], parameters: Sequence[Parameter]) -> tuple[Rule, ...]:
    """Parse the rules that a user gives as `where`: one string, or several.

    Raises:
        SpaceError: one is not a rule; says which one, and what is wrong with it.
    """
    if where is None:
        return ()
    if isinstance(where, str):
        where = [where]
    return tuple(read_rule(text, names, parameters) for text in a_list(where, "where", "rules as strings", SpaceError))


def read_rule(text: Any, names: Sequence[str], parameters: Sequence[Parameter]) -> Rule:
    """Parse one rule; raise SpaceError if it is not a rule."""
    if not isinstance(text, str) or not text.strip():
        raise SpaceError(f"where: a rule is a string such as 'depth * width <= 64', got {shown(text)}")
    text = text.strip()
    reader = _Reader(text, names, parameters)
    if len(text) > LONGEST:
        raise reader.refusal(f"it is longer than {LONGEST:,} characters")
    condition = reader.truth(reader.tree(), 0)
    if not reader.named:
        raise reader.refusal("it names no parameter")
    return Rule(text, tuple(sorted(reader.named)), condition, (names, parameters))


# ---- reading

Number: TypeAlias = Callable[[Columns], Array]

OPERATIONS: dict[type[ast.operator], Callable[[Array, Array], Array]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
FUNCTIONS: dict[str, Callable[..., Array]] = {"abs": np.abs, "log": np.log, "exp": np.exp}
SEVERAL: dict[str, Callable[..., Array]] = {"min": np.minimum, "max": np.maximum}
ROUNDING = 1e-12  # numbers that differ by less, of the larger one, are equal: 0.1 + 0.2 is 0.3
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
ALLOWED = "+ - * / % **, comparisons, and, or, not, min, max, abs, log and exp"


class _Reader:
    """Reads one rule: what is not expressly allowed is refused."""

    def __init__(self, text: str, names: Sequence[str], parameters: Sequence[Parameter]) -> None:
        self.text = text
        self.axes = {name: axis for axis, name in enumerate(names)}
        self.parameters = parameters
        self.quoted: dict[str, str] = {}
        self.named: set[int] = set()

    def refusal(self, problem: str) -> SpaceError:
        return SpaceError(f"where {shown(self.text[:SHOWN] + '...' * (len(self.text) > SHOWN))}: {shortened(problem)}")

    def tree(self) -> ast.expr:
        def word(quoted: re.Match[str]) -> str:
            return self.quoted.setdefault(quoted[1], f"quoted_name_{len(self.quoted)}_")

        plain = re.sub(r"`([^`]*)`", word, self.text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what Python thinks of code that is never run
                return ast.parse(plain, mode="eval").body
        except SyntaxError as error:
            odd = [part for name in self.axes for part in name.split(".") if not part.isidentifier() or iskeyword(part)]
            named = next((part for part in odd if part in plain), "")
            remedy = f"; write `{named}` in backquotes" if named else ""
            raise self.refusal(f"it cannot be read ({error.msg}){remedy}") from None
        except (ValueError, MemoryError, RecursionError):
            raise self.refusal("it cannot be read") from None

    # conditions

    def truth(self, node: ast.expr, depth: int) -> Callable[[Columns], Truth]:
        self._require_shallow(depth)
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(value, depth + 1) for value in node.values]
            combine = _both if isinstance(node.op, ast.And) else _either
            return lambda columns: reduce(combine, (part(columns) for part in parts))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inside = self.truth(node.operand, depth + 1)
            return lambda columns: _opposite(inside(columns))
        if isinstance(node, ast.Compare):
            ends = [node.left, *node.comparators]
            pairs = [self._comparison(a, op, b, depth + 1) for a, op, b in zip(ends, node.ops, ends[1:], strict=False)]
            return lambda columns: reduce(_both, (pair(columns) for pair in pairs))
        if (axis := self._axis(node)) is not None and isinstance(parameter := self.parameters[axis], Categorical):
            choices = parameter.choices
            if all(isinstance(choice, bool) for choice in choices):
                return self._one_of(axis, {i for i, choice in enumerate(choices) if choice})
        raise self.refusal(f"{self._part(node)} is not a condition; compare it with something")

    def _comparison(self, a: ast.expr, op: ast.cmpop, b: ast.expr, depth: int) -> Callable[[Columns], Truth]:
        if type(op) not in COMPARISONS:
            raise self.refusal("the comparisons are < <= > >= == and !=")
        for left, right, is_turned in ((a, b, False), (b, a, True)):
            axis = self._axis(left)
            parameter = None if axis is None else self.parameters[axis]
            if axis is None or not isinstance(parameter, Categorical) or _is_numeric(parameter):
                continue
            if isinstance(right, ast.Constant) or _is_negative(right):
                return self._with_choice(axis, parameter, op, ast.literal_eval(right), is_turned)
            other = self._axis(right)
            if other is not None and isinstance(op, (ast.Eq, ast.NotEq)):
                return self._alike(axis, other, isinstance(op, ast.Eq))
        left_side, right_side = self.number(a, depth), self.number(b, depth)
        return lambda columns: _compared(left_side(columns), right_side(columns), op)

    def _with_choice(
        self, axis: int, parameter: Categorical, op: ast.cmpop, value: Any, is_turned: bool
    ) -> Callable[[Columns], Truth]:
        """Compare a choice with one of its values."""
        names = choice_names(parameter.choices) if branches_of(parameter) else list(parameter.choices)
        try:
            place = Categorical(names).position(value, self._name(axis))
        except SpaceError as error:
            raise self.refusal(str(error)) from None
        if isinstance(op, (ast.Eq, ast.NotEq)):
            others = set(range(len(names))) - {place}
            return self._one_of(axis, {place} if isinstance(op, ast.Eq) else others)
        if not isinstance(parameter, Ordinal):
            raise self.refusal(f"{self._name(axis)} is a choice without an order; compare it with == or !=")
        compare = COMPARISONS[type(op)]
        places = range(len(names))
        return self._one_of(axis, {i for i in places if (compare(place, i) if is_turned else compare(i, place))})

    def _one_of(self, axis: int, places: set[int]) -> Callable[[Columns], Truth]:
        self.named.add(axis)
        wanted = np.array(sorted(places), dtype=np.float64)
        return lambda columns: _plain(np.isin(columns[axis], wanted))

    def _alike(self, axis: int, other: int, wanted: bool) -> Callable[[Columns], Truth]:
        """Compare two choices for equality."""
        mine, theirs = self.parameters[axis], self.parameters[other]
        if not isinstance(mine, Categorical) or not isinstance(theirs, Categorical):
            raise self.refusal(f"{self._name(axis)} and {self._name(other)} are a choice and a number")
        self.named |= {axis, other}
        table = np.array([[a == b and isinstance(a, bool) == isinstance(b, bool) for b in theirs.choices]
                          for a in mine.choices])  # fmt: skip

        def same(columns: Columns) -> Truth:
            found = table[columns[axis].astype(np.int64), columns[other].astype(np.int64)]
            return _plain(found if wanted else ~found)

        return same

    # numbers

    def number(self, node: ast.expr, depth: int) -> Number:
        self._require_shallow(depth)
        before = set(self.named)
        self.named = set()
        found = self._number(node, depth)
        if not self.named:  # a constant expression: evaluate it once
            with np.errstate(all="ignore"):
                value = np.asarray(found({}))
            if not np.isfinite(value):
                raise self.refusal(f"{self._part(node)} is not a finite number")
            found = lambda columns: value  # noqa: E731
        self.named |= before
        return found

    def _number(self, node: ast.expr, depth: int) -> Number:
        if isinstance(node, ast.Constant):
            value = node.value
            if not is_real(value):
                raise self.refusal(f"a number is needed in place of {shown(value)}")
            try:
                constant = np.asarray(float(value))
            except OverflowError:
                constant = np.asarray(np.inf)
            return lambda columns: constant
        if (axis := self._axis(node)) is not None:
            return self._value_of(axis)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inside, sign = self.number(node.operand, depth + 1), -1.0 if isinstance(node.op, ast.USub) else 1.0
            return lambda columns: np.asarray(sign * inside(columns))
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            operation = OPERATIONS[type(node.op)]
            left, right = self.number(node.left, depth + 1), self.number(node.right, depth + 1)
            return lambda columns: _finite(operation(left(columns), right(columns)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self._call(node.func.id, node.args, depth)
        raise self.refusal(f"{self._part(node)} is not allowed; there are parameters, numbers, {ALLOWED}")

    def _call(self, name: str, given: Sequence[ast.expr], depth: int) -> Number:
        few = 1 if name in FUNCTIONS else 2
        if name not in FUNCTIONS and name not in SEVERAL:
            raise self.refusal(f"{name}() is not allowed; there are {ALLOWED}")
        if len(given) < few or (name in FUNCTIONS and len(given) > 1):
            raise self.refusal(f"{name}() takes {'one number' if few == 1 else 'two numbers or more'}")
        parts = [self.number(part, depth + 1) for part in given]
        if name in FUNCTIONS:
            function, inside = FUNCTIONS[name], parts[0]
            return lambda columns: _finite(function(inside(columns)))
        several = SEVERAL[name]
        return lambda columns: reduce(several, (part(columns) for part in parts))

    def _value_of(self, axis: int) -> Number:
        parameter = self.parameters[axis]
        self.named.add(axis)
        if not isinstance(parameter, Categorical):
            return lambda columns: columns[axis]
        numbers = np.array([float(c) if is_real(c) else np.nan for c in parameter.choices])
        if np.isnan(numbers).all():
            raise self.refusal(f"{self._name(axis)} is a choice without numbers; compare it with one of its values")
        return lambda columns: numbers[columns[axis].astype(np.int64)]

    # names

    def _axis(self, node: ast.expr) -> int | None:
        """Return the axis of the parameter that a name, perhaps dotted, refers to; None if the node is not a name."""
        words: list[str] = []
        while isinstance(node, ast.Attribute):
            words.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            if words:
                raise self.refusal("a dot may only join the names of nested parameters")
            return None
        back = {word: quoted for quoted, word in self.quoted.items()}
        name = ".".join(back.get(word, word) for word in (node.id, *reversed(words)))
        if name not in self.axes:  # Python's names are normalised
            name = next((each for each in self.axes if unicodedata.normalize("NFKC", each) == name), name)
        if name not in self.axes:
            raise self.refusal(f"{name} is not a parameter of the space{nearest(name, list(self.axes))}")
        return self.axes[name]

    def _name(self, axis: int) -> str:
        return next(name for name, each in self.axes.items() if each == axis)

    def _part(self, node: ast.expr) -> str:
        """Return a part of the rule for an error message."""
        try:
            text = ast.unparse(node)
        except (RecursionError, ValueError):
            return "a part of it"
        for quoted, word in self.quoted.items():
            text = text.replace(word, f"`{quoted}`")
        return text if len(text) <= 60 else f"{text[:57]}..."

    def _require_shallow(self, depth: int) -> None:
        if depth > DEEPEST:
            raise self.refusal(f"it is nested more than {DEEPEST} levels deep")


# ---- computing


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)


def _compared(a: Array, b: Array, op: ast.cmpop) -> Truth:
    is_known = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore"):
        is_rounding = np.abs(a - b) <= ROUNDING * np.maximum(np.abs(a), np.abs(b))
        a = np.where(is_rounding & ((a % 1.0 != 0.0) | (b % 1.0 != 0.0)), b, a)  # whole numbers are exact
    holds = np.where(is_known, COMPARISONS[type(op)](a, b), np.nan)

    def above() -> Array:
        return np.asarray(np.maximum(a - b, 0.0) / (1.0 + np.abs(a) + np.abs(b)))

    def below() -> Array:
        return np.asarray(np.maximum(b - a, 0.0) / (1.0 + np.abs(a) + np.abs(b)))

    def apart() -> Array:
        return above() + below()

    def together() -> Array:
        return np.where(a == b, 1.0, 0.0)

    if isinstance(op, (ast.Lt, ast.LtE)):
        return Truth(holds, above, below)
    if isinstance(op, (ast.Gt, ast.GtE)):
        return Truth(holds, below, above)
    return Truth(holds, apart, together) if isinstance(op, ast.Eq) else Truth(holds, together, apart)


def _plain(found: Any) -> Truth:
    holds = np.asarray(found, dtype=np.float64)
    return Truth(holds, lambda: 1.0 - holds, lambda: holds)


def _both(a: Truth, b: Truth) -> Truth:
    is_false = (a.holds == 0.0) | (b.holds == 0.0)
    return Truth(
        np.where(is_false, 0.0, a.holds + b.holds - 1.0),
        lambda: a.lack() + b.lack(),
        lambda: np.fmin(a.excess(), b.excess()),
    )


def _either(a: Truth, b: Truth) -> Truth:
    return _opposite(_both(_opposite(a), _opposite(b)))


def _opposite(a: Truth) -> Truth:
    return Truth(1.0 - a.holds, a.excess, a.lack)


def _is_numeric(parameter: Categorical) -> bool:
    return all(is_real(choice) for choice in parameter.choices)


def _is_negative(node: ast.expr) -> bool:
    if not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)):
        return False
    return is_real(node.operand.value)
