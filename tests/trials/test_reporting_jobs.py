"""The jobs that report: whole curves, the same again, and the same from a checkpoint."""

from __future__ import annotations

import numpy as np
import pytest

from raybo.job.reports import reports_sent_to
from tests.integrations.listener import Listener
from trials.boosting_rounds import boosting_rounds
from trials.network_epochs import network_epochs


def run(job, listener, **settings):
    with reports_sent_to(listener):
        (middle,) = job.space.decode(np.full((1, job.space.d), 0.5))
        middle |= {"colsample_bytree": 1.0} if job is boosting_rounds else {}  # columns are sampled anew after a loss
        reports = job(middle, **settings)
        if not isinstance(reports, dict):
            for metrics in reports:
                listener.report(metrics, None)
        return reports


def test_reporting_jobs_declare_their_steps():
    assert boosting_rounds.steps == 40
    assert network_epochs.steps == 52


@pytest.mark.parametrize(
    ("job", "settings", "steps"), [(boosting_rounds, {"rounds": 60}, 6), (network_epochs, {"epochs": 6}, 6)]
)
def test_lost_trials_keep_complete_curves(tmp_path, job, settings, steps):
    whole, lost = Listener(tmp_path / "a"), Listener(tmp_path / "b", die_at=4)
    for listener in (whole, lost):
        listener.directory.mkdir()
    run(job, whole, **settings)
    assert list(whole.reports) == list(range(1, steps + 1))
    with pytest.raises(KeyboardInterrupt):
        run(job, lost, **settings)
    run(job, lost, **settings)
    for step, metrics in whole.reports.items():
        assert lost.reports[step][job.metric] == pytest.approx(metrics[job.metric], rel=1e-5)


def test_what_boosting_returns_is_its_last_report(tmp_path):
    listener = Listener(tmp_path)
    assert run(boosting_rounds, listener, rounds=50)["logloss"] == pytest.approx(
        listener.reports[5]["logloss"], rel=1e-5
    )


def test_more_epochs_make_a_better_network(tmp_path):
    listener = Listener(tmp_path)
    run(network_epochs, listener, epochs=20)
    assert listener.reports[20]["accuracy"] > listener.reports[1]["accuracy"] + 0.1
