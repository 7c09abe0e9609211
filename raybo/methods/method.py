"""Defines the contract of methods: two functions that each needs, and optional ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from raybo.common.options import Options
from raybo.record.events import Tags
from raybo.record.goals import Goals
from raybo.record.history import History, Proposal
from raybo.record.trial import Trial
from raybo.space import Array

if TYPE_CHECKING:
    from raybo.methods.story import Story

EXPECTS = "expects"  # the tag of what models expect in the metrics' units
IN_UNITS = "in_units"  # the same in words, which whoever knows the metrics adds to the tags


@dataclass(frozen=True, kw_only=True)
class Method(Options, ABC):
    """A way to choose the next trial: derive a frozen dataclass from it, whose fields are the method's options.

    `propose` and `explain` are needed; all else has a default. A method keeps nothing between calls, reads nothing but
    the history, and writes nothing but tags, so that a journal gives the same proposals again.

    Attributes:
        needs_context: True if it works only on a study that declares a context.
        takes_goals: True if it supports several metrics and constraints.
        takes_constraints: True if it supports constraints beside a single metric.
        models_reports: True if it models the reports of running trials itself; otherwise it is given predicted values.
        uses_guesses: True if it searches near a space's guesses after the first trial.
        chooses_fidelity: True if it proposes cheap versions of a job, if `history.fidelity` says that there are any.
    Example:
        >>> import dataclasses
        >>> from raybo.methods import Method, Proposal, option
        >>> @dataclasses.dataclass(frozen=True, kw_only=True)
        ... class Corners(Method):
        ...     share: float = option(0.5, "how often the upper end of an axis is tried", at_least=0, at_most=1)
        ...     def propose(self, history, rng):
        ...         return Proposal((rng.random(history.d) < self.share).astype(float), {})
        ...     def explain(self, tags):
        ...         return "a corner at random"
        >>> raybo.Searcher({"x": raybo.Float(0, 1)}, Corners(share=1.0)).ask().config
        {'x': 1.0}
    """

    needs_context: ClassVar[bool] = False
    takes_goals: ClassVar[bool] = False
    takes_constraints: ClassVar[bool] = False
    models_reports: ClassVar[bool] = False
    uses_guesses: ClassVar[bool] = False
    chooses_fidelity: ClassVar[bool] = False

    @abstractmethod
    def propose(self, history: History, rng: np.random.Generator) -> Proposal:
        """Return the next point to try, a pure function of the history and the random stream.

        Args:
            history: all trials so far, maximised, in the unit cube: `history.X` (n, d) and `history.y` (n,) hold those
                that have finished.
            rng: the trial's own stream, seeded by the study's seed and the trial's number.
        Returns:
            the point, with the tags by which `explain` and later proposals know what was done.
        Raises:
            NumericalError: no model can be fitted. A uniform point is run in its place, with the reason as its tag
                `fallback`. Any other exception ends the study, which the same command continues; `Searcher.ask`
                raises it. If the trials have tags, a LookupError, TypeError, ValueError, AttributeError or
                ArithmeticError is raised as a TrialError that names the line.
        """

    @abstractmethod
    def explain(self, tags: Tags) -> str:
        """Return why a proposal with these tags was made: a few words on one line, without a newline."""

    def check_goals(self, goals: Goals) -> None:
        """Raise MethodError if an option does not work with these several metrics or constraints."""

    def story(self, trials: Sequence[Trial], names: Sequence[str]) -> Story | None:
        """Return a picture of what the tags say of a study whose space has these axes; None if they show nothing."""
        return None

    def recommendation(self, tags: Tags) -> Array | None:  # (d,)
        """Return the point by which experiments judge a search that ends here; None for the best trial so far."""
        return None

    def fitted_hyperparameters(self, tags: Tags) -> Array | None:  # (s, p)
        """Return the proposal's hyperparameters of `surrogate.uhe_model`, a row for each sample; None without a fit."""
        return None

    def share_reached(self, tags: Tags) -> float | None:
        """Return the share of the acquisition's maximum that the solver reached in a step with these tags.

        NaN if it was not measured, None if no acquisition was maximised.
        """
        return None
