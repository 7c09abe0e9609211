"""A study's results as HTML: the facts, the best configuration, the best trials, what was asked for, failures."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from raybo.common.messages import counted, time_in_words
from raybo.record.states import FAILURES, State
from raybo.record.trial import Trial, saved_share
from raybo.reporting.formatting import config_values, exact, shown
from raybo.reporting.tables import furthest_in_words, of_planned
from raybo.reporting.timeline import pauses_of, seconds_of
from raybo.space import Categorical, Float, Integer, Ordinal, Parameter, choice_names
from raybo.study.study import Study

LEADERS = 10  # trials in the table of the best
TILES = 7  # facts in a row at most
REASONS = 8  # in the table of failures
REASON_CHARACTERS = 160


def summary(study: Study) -> str:
    """A study in a notebook: one line about it, and its best trials."""
    return f"<p>{html.escape(repr(study))}</p>{best_trials(study)}"


def facts(study: Study) -> str:
    """A heading, and the numbers that matter."""
    d = study.description
    better = "the larger the better" if study.goal.larger_is_better else "the smaller the better"
    done, failed = study.count(State.FINISHED), study.count(*FAILURES)
    facts = [
        _reached(study),
        ("", f"finished{of_planned(study)}", str(done)),
        ("failed" if failed else "", "failed", str(failed)),
    ]
    if lacking := sum(trial.out_of_memory for trial in study.trials):
        facts.append(("failed", "of them out of memory", str(lacking)))
    if study.incumbent is not None and (expected := study.expected(study.recommended)) is not None:
        over = " over contexts" if study.context is not None else ""
        facts.append(("", f"expected of the recommended trial{over}", shown(expected[0])))
    if done and (found := study.confirmed):
        why = (
            "which broke the fewest constraints in further runs"
            if found[0].infeasible
            else "recommended after further runs"
        )
        facts.append(("", f"mean of trial {found[0].trial.number}, {why}", shown(found[0].mean)))
    if running := study.count(State.PENDING):
        facts.append(("", "running or enqueued", str(running)))
    if pruned := study.count(State.PRUNED):
        facts.append(("", "pruned" if d.fidelity is None else "of them no whole runs", str(pruned)))
        if saved := saved_share(study.trials, study.steps):
            facts.append(("", "of the steps saved", f"{100 * saved:.0f}%"))
    if waiting := study.count(State.PAUSED):
        facts.append(("", "paused", str(waiting)))
    if stopped := study.count(State.STOPPED):
        facts.append(("", "stopped", str(stopped)))
    seconds = sum(trial.seconds or 0.0 for trial in study.trials)
    facts.append(("", "total trial time", time_in_words(seconds)))
    if elapsed := _elapsed(study):
        paused = sum(end - begin for begin, end in pauses_of(study))
        facts.append(("", "elapsed, without pauses" if paused else "elapsed", time_in_words(elapsed - paused)))
    cards = "".join(
        f'<div class="fact {kind}"><b>{html.escape(value)}</b><span>{html.escape(name)}</span></div>'
        for kind, name, value in facts
    )
    wanted = f"{d.metric}, {better}" if study.goals.is_plain else str(study.goals)
    what = f"{wanted}; method {d.method}, {counted(study.space.d, 'parameter')}"
    what += f"; ended: {study.ended}" if study.ended else ""
    what += f"; {study.other_code}" if study.other_code else ""
    columns = math.ceil(len(facts) / math.ceil(len(facts) / TILES))  # rows as equal as they can be
    heading = f"<h1>{html.escape(d.objective)}</h1><p class=what>{html.escape(what)}</p>"
    return f'{heading}<div class=facts style="--columns: {columns}">{cards}</div>'


def _reached(study: Study) -> tuple[str, str, str]:
    """Return the result of the study: the best value, or with several metrics the size of the front."""
    if study.goals.k > 1:
        return "best", f"on the front, hypervolume {shown(study.hypervolume())}", str(len(study.front))
    best = study.incumbent
    if best is None and study.count(State.FINISHED):
        return "failed", "satisfies all constraints", "none yet"
    return "best", f"best {study.description.metric}", "none yet" if best is None else shown(study.best.value)


def best_configuration(study: Study) -> str:
    """The recommended trial's parameters; with several metrics those of the front.

    Where nothing is feasible, the nearest; where none has finished, those of the pruned one that came furthest.
    """
    if (furthest := study.furthest) is not None:
        rows = config_values(study, furthest)
        words = html.escape(f"{furthest_in_words(study, furthest)}.")
        return f"<section><h2>No trial has finished</h2><p class=what>{words}</p>{_table((), rows)}</section>"
    if not study.count(State.FINISHED):
        return ""
    if study.goals.k > 1 and study.front:
        head = ("trial", *study.goals.needed, *study.space.names)
        front = [
            (
                str(trial.number),
                *(shown(trial.values[name]) for name in study.goals.needed),
                *_cells(study, trial),
            )
            for trial in study.front
        ]
        return f"<section class=whole><h2>On the Pareto front</h2><div class=wide>{_table(head, front)}</div></section>"
    if study.incumbent is None:
        return f"<section><h2>Nothing is feasible yet</h2><p class=what>{html.escape(study.nearest)}</p></section>"
    used = study.recommended
    rows = config_values(study, used)
    words = html.escape(f"{study.recommendation}.")
    return f"<section><h2>Recommended: trial {used.number}</h2><p class=what>{words}</p>{_table((), rows)}</section>"


def settings(study: Study) -> str:
    """Return how the study was made, method, seed and settings of the objective, and beside it the space."""
    d = study.description
    rows = [("method", d.method), *((f"option {key}", str(value)) for key, value in d.options.items())]
    if d.scheduler is not None:
        rows += [
            ("scheduler", d.scheduler),
            *((f"scheduler option {key}", str(value)) for key, value in d.scheduler_options.items()),
        ]
    rows += [("steps per trial", str(d.steps))] if d.steps is not None else []
    rows += [(f"fidelity {name}", str(fidelity)) for name, fidelity in (d.fidelity or {}).items()]
    rows += [("seed", str(d.seed)), *((f"setting {key}", str(value)) for key, value in d.settings.items())]
    space = [
        (name, range_in_words(parameter))
        for name, parameter in zip(study.space.names, study.space.parameters.values(), strict=True)
    ]
    space += [("rule", rule.text) for rule in study.space.rules]
    return "".join(
        f"<section><h2>{title}</h2>{_table((), [(a, b[:REASON_CHARACTERS]) for a, b in table])}</section>"
        for title, table in (("Settings", rows), ("Search space", space))
    )


def range_in_words(parameter: Parameter) -> str:
    """Return the domain of a parameter, in a few words."""
    if isinstance(parameter, Categorical):
        names = choice_names(parameter.choices)
        order = ", in this order" if isinstance(parameter, Ordinal) else ""
        guesses = [names[parameter.position(guess, "guess")] for guess in _guesses_of(parameter)]
        guess = f", guessed {', then '.join(map(shown, guesses))}" if guesses else ""
        return ", ".join(map(shown, names)) + order + guess
    guesses = _guesses_of(parameter)
    guess = f", guessed {', then '.join(map(shown, guesses))}" if guesses else ""
    step = f", in steps of {shown(parameter.step)}" if parameter.step not in (None, 1) else ""
    whole = ", integers" if isinstance(parameter, Integer) else ""
    logit = isinstance(parameter, Float) and parameter.scale == "logit"
    scale = ", logarithmic" if parameter.log else ", on a logit scale" if logit else ""
    return f"{exact(parameter.low)} to {exact(parameter.high)}{whole}{step}{scale}{guess}"


def _guesses_of(parameter: Parameter) -> list[Any]:
    return [parameter.guess, *parameter.next_guesses] if parameter.has_guess else []


def failure_reasons(study: Study, characters: int) -> list[tuple[str, int, int]]:
    """Return why trials failed, how many for each reason and the first of them; the most frequent reason first.

    Args:
        characters: the length to which reasons are cut before they are counted.
    """
    failed = [(trial.reason[:characters], trial.number) for trial in study.trials if trial.state in FAILURES]
    first = dict(reversed(failed))
    return [(reason, count, first[reason]) for reason, count in Counter(why for why, _ in failed).most_common()]


def failures(study: Study) -> str:
    """Return the reasons for which trials failed, and how often; nothing if none did."""
    reasons = failure_reasons(study, REASON_CHARACTERS)
    if not reasons:
        return ""
    rows = [(str(count), reason, str(first)) for reason, count, first in reasons[:REASONS]]
    rest = len(reasons) - len(rows)
    more = f"<p class=what>and {rest} more reasons</p>" if rest else ""
    head = ("trials", "reason", "first trial")
    return f"<section><h2>Failures</h2>{_table(head, rows)}{more}</section>"


def best_trials(study: Study) -> str:
    """Return the feasible trials with the best values; nothing if there are none, or several metrics."""
    done = [trial for trial in study.trials if trial.feasible]
    if not done or study.goals.k > 1:
        return ""
    values = [cast(float, trial.value) for trial in done]
    best = [done[i] for i in study.goal.best_first(values)[:LEADERS]]
    rows = [
        (
            str(trial.number),
            shown(trial.value),
            "" if trial.seconds is None else f"{trial.seconds:.3g}",
            *_cells(study, trial),
            study.explain(trial),
        )
        for trial in best
    ]
    head = ("trial", study.description.metric, "seconds", *study.space.names, "reason")
    return f"<section><h2>The best trials</h2><div class=wide>{_table(head, rows)}</div></section>"


def _cells(study: Study, trial: Trial) -> list[str]:
    """A trial's configuration in a row of a table; nothing for a parameter that is not open in it."""
    values = dict(study.space.named_values(trial.config))
    return [shown(values[name]) if name in values else "" for name in study.space.names]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = f"<tr>{''.join(f'<th>{html.escape(name)}</th>' for name in head)}</tr>" if head else ""

    def cells(row: Sequence[str]) -> str:
        kinds = ["td" if head or i else "th" for i in range(len(row))]
        return "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for kind, cell in zip(kinds, row, strict=True))

    body = "".join(f"<tr>{cells(row)}</tr>" for row in rows)
    return f"<table>{top}{body}</table>"


def _elapsed(study: Study) -> float:
    return max(seconds_of(study.events).values(), default=0.0)
