"""Figures of large studies leave points out, and keep all that matters."""

from __future__ import annotations

import numpy as np

from raybo.record.states import State
from raybo.reporting.report_figure import ReportFigure
from raybo.reporting.run_figures import best_so_far
from raybo.reporting.subsample import subsample, subsample_note
from raybo.reporting.timeline import Span, joined
from tests.reporting.studies import run


def test_the_best_are_drawn_and_the_others_evenly():
    study = run("random", 60)
    chosen = subsample(study, study.trials, most=20)
    numbers = [trial.number for trial in chosen]
    assert len(set(numbers)) == len(chosen) == 20
    assert numbers == sorted(numbers)
    values = [trial.value for trial in study.trials if trial.value is not None]
    best = {trial.number for trial in study.trials if trial.value in sorted(values, reverse=study.mode == "max")[:4]}
    assert best <= set(numbers)
    assert np.diff(numbers).max() <= 6
    assert subsample(study, study.trials, most=60) == study.trials
    assert subsample_note(study.trials, most=60) == ""
    assert subsample_note(study.trials, most=20) == (
        " Of the 60 trials 20 are drawn: the best, and an even choice of the others."
    )


def test_trials_without_a_value_are_drawn_evenly():
    study = run("random", 60)
    pending = [trial for trial in study.trials if trial.value is None][:1] * 30
    assert len(subsample(study, pending, most=10)) == min(10, len(pending))


def test_best_so_far_line_has_only_its_corners():
    study = run("random", 60)
    panel = best_so_far(study)
    assert isinstance(panel, ReportFigure)
    line = next(trace for trace in panel.figure.data if trace.name == "best so far")
    done = [trial for trial in study.trials if trial.state is State.FINISHED]
    best = study.goal.best_so_far(np.array([trial.value for trial in done]))
    drawn_at = {x: y for x, y in zip(line.x, line.y, strict=True)}
    for i, trial in enumerate(done):  # what the line says at each trial: the value of its last corner
        corner = max(x for x in drawn_at if x <= trial.number)
        assert drawn_at[corner] == best[i]
    assert len(line.x) == 1 + len(np.unique(best))


def test_adjacent_spans_share_a_bar():
    lane = [Span(i, i * 1.0, i + 0.9999, 0, "a", State.FINISHED) for i in range(1_000)]
    other = [Span(2_000, 10.0, 11.0, 1, "a", State.FAILED), Span(2_001, 500.0, 501.0, 1, "a", State.FAILED)]
    bars = joined(sorted(lane + other, key=lambda span: span.begin))
    assert [(span.trial, span.lane) for span in bars] == [(0, 0), (2_000, 1), (2_001, 1)]
    assert (bars[0].begin, bars[0].end) == (0.0, 999.9999)
