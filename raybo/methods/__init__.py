"""The methods by name. A method is a frozen dataclass of options, derived from `Method`, that proposes trials.

It keeps nothing between calls: what it must remember, it writes into the proposal's tags and reads back from the
history. So a journal's prefix always gives the proposal that followed it.

Each family of methods has a folder, named after its page in docs/, with the code that only that family shares. A file
there whose docstring begins with its own name ("gp-ucb: ...") is a method, and needs no other registration. Beside the
families:

method       what every method is
keywords     the options of all methods, for type checkers
findings     what a study's trials show: the part that `Study` and `Searcher` have in common
explaining   why a trial was proposed
story        what a method's tags show about a study, for a report to draw
parts/       what methods of several families are built on

A paper is cited in the class's docstring, which users read; notes at the top of a file are about that paper.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from raybo.common.errors import MethodError
from raybo.common.options import option
from raybo.common.registry import Registry, discover
from raybo.methods.method import Method
from raybo.record.events import Tags
from raybo.record.goals import Goals
from raybo.record.history import History, Proposal

METHODS = discover(Path(__file__).parent, __name__)  # "module:Class" by name; imported when used
RETIRED = {  # home and reason: journals and experiments have them, and nothing lists them
    "uhe-checked": (
        f"{__name__}.unknown_hyperparameters.uhe_checked:UheChecked",
        "on Deceptive it ends above map; use map, or uhe on a rough function",
    )
}
REGISTRY: Registry[Method] = Registry("method", Method, METHODS, RETIRED)  # type: ignore[type-abstract]
AnyMethod: TypeAlias = str | type[Method] | Method  # a name, "package.module:Class", a class, or a method

__all__ = [
    "METHODS",
    "AnyMethod",
    "History",
    "Method",
    "Proposal",
    "Tags",
    "describe",
    "kept",
    "label",
    "load",
    "make",
    "name_of",
    "needs_context",
    "option",
    "options_of",
    "require_goals",
    "seen",
]

load = REGISTRY.load
kept = REGISTRY.kept
label = REGISTRY.label
name_of = REGISTRY.name_of
options_of = REGISTRY.options_of
describe = REGISTRY.describe


def make(method: AnyMethod, /, **options: Any) -> Method:
    """Return a method with its options; one that is made already is returned as it is.

    Args:
        method: a name, "package.module:Class", a class derived from `Method`, or one made of it.
        options: by name; text is read as their type. A method that is made already takes none.
    Raises:
        MethodError: there is no such method, it cannot be imported, or an option or a value is wrong.
    """
    return REGISTRY.make(method, options)


def needs_context(method: AnyMethod) -> bool:
    """Return True if a method works only on a study that declares a context."""
    return load(method).needs_context


def seen(method: Method, history: History) -> History:
    """Return the history as a method sees it: with values predicted for unfinished trials, unless it models reports.

    Such a model needs to know how many steps a whole run has. The results of the very same job are there, and what
    earlier studies have led to in vain is left out.
    """
    if history.priors:
        from raybo.methods.parts.prior_points import as_methods_see_it

        history = as_methods_see_it(history)
    models_reports = method.models_reports and history.steps is not None
    if models_reports or not (history.reports_in_order and history.goals.is_plain):
        return history
    from raybo.methods.parts.running_trials import predicted

    return predicted(history)


def require_goals(method: Method, goals: Goals, *, has_context: bool) -> None:
    """MethodError if a method needs a context, or it or a study with contexts does not take such goals."""
    if method.needs_context and not has_context:
        raise MethodError(f"{label(method)} needs a context; declare one beside the space, or use gp-ucb")
    if goals.is_plain:
        return
    if has_context and goals.k > 1:
        raise MethodError("a context needs a single metric; leave out the context, or the other metrics")
    if goals.k == 1 and method.takes_constraints:
        return
    if not method.takes_goals:
        those = [other for other in METHODS if load(other).takes_goals]
        raise MethodError(
            f"{label(method)} takes one metric and no constraints; {', '.join(those[:-1])} and {those[-1]} take "
            "several metrics and constraints"
        )
    method.check_goals(goals)
