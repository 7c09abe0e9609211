"""The callbacks of Lightning, Keras, the Trainer of transformers, LightGBM and skorch, in real trainings.

Those of Keras run on the backend that KERAS_BACKEND names, by default torch.
"""

from __future__ import annotations

import importlib
import os
import signal
from types import SimpleNamespace

import pytest

import raybo
from raybo.integrations.trainer_reports import TrainerReports
from raybo.job.reports import reports_sent_to
from raybo.record.states import State
from tests.integrations.listener import Listener
from tests.integrations.trainers import METRICS, data, train

NEEDED = {
    "lightning": ["lightning"],
    "keras": [os.environ["KERAS_BACKEND"], "keras"],
    "transformers": ["torch", "transformers", "accelerate"],
    "lightgbm": ["lightgbm"],
    "skorch": ["torch", "skorch"],
}
REAL = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of the trainers, among themselves
of_each_trainer = pytest.mark.parametrize("trainer", [pytest.param(name, marks=REAL) for name in METRICS])
EPOCHS = 5


def require(trainer):
    for package in NEEDED[trainer]:
        pytest.importorskip(package, reason=f"{package} is not installed")


@of_each_trainer
def test_reports_are_the_trainers_own_metrics(trainer, tmp_path):
    require(trainer)
    listener = Listener(tmp_path)
    with reports_sent_to(listener):
        own = train(trainer, EPOCHS, name="loss")
    assert len(own) == EPOCHS
    assert own[-1] < own[0]
    assert listener.reports == {step: {"loss": pytest.approx(value)} for step, value in enumerate(own, 1)}


@of_each_trainer
def test_training_resumes_at_its_epoch(trainer, tmp_path):
    require(trainer)
    whole, lost = Listener(tmp_path / "whole"), Listener(tmp_path / "lost")
    for listener in (whole, lost):
        listener.directory.mkdir()
    with reports_sent_to(whole):
        undisturbed = train(trainer, EPOCHS)

    class Lost(BaseException):
        pass

    def lose(epoch):
        if epoch == 3:
            raise Lost

    with reports_sent_to(lost):
        with pytest.raises(Lost):
            train(trainer, EPOCHS, lose)
        assert sorted(lost.reports) == [1, 2, 3]
        rest = train(trainer, EPOCHS)
    assert rest == pytest.approx(undisturbed[3:], rel=1e-4)
    assert {step: pytest.approx(number, rel=1e-4) for step, number in whole.reports.items()} == lost.reports


@of_each_trainer
def test_a_pruned_training_stops_and_says_so(trainer, tmp_path):
    require(trainer)
    listener, seen = Listener(tmp_path, prune_at=2), []
    with reports_sent_to(listener), pytest.raises(raybo.TrialPruned):
        train(trainer, EPOCHS, seen.append)
    assert list(listener.reports) == [1, 2]
    assert seen in ([1], [1, 2])  # whether the others hear of the last epoch is the trainer's rule


@of_each_trainer
def test_a_missing_metric_is_named(trainer, tmp_path):
    require(trainer)
    integration = importlib.import_module(f"raybo.integrations.{trainer}")
    monkey = pytest.MonkeyPatch()
    given = integration.Report
    arguments = ("valid", "l3") if trainer == "lightgbm" else ("no_such_loss",)
    monkey.setattr(integration, "Report", lambda *_, **more: given(*arguments, **more))
    try:
        with pytest.raises(raybo.ObjectiveError, match=f"'{arguments[-1]}'"):
            train(trainer, 2)
    finally:
        monkey.undo()


@of_each_trainer
def test_outside_a_trial_nothing_happens(trainer):
    require(trainer)
    assert len(train(trainer, 2)) == 2


@pytest.mark.ray
@pytest.mark.timeout(900)
@of_each_trainer
def test_killed_trials_resume_and_bad_ones_are_pruned(trainer, tmp_path, ray_session):
    """Each trial's worker is killed once, after its second epoch; the best and the worst rate are told apart early."""
    require(trainer)

    @raybo.objective(space={"rate": raybo.Ordinal([1e-6, 0.05])}, metric="loss", mode="min", steps=EPOCHS, num_cpus=1)
    def job(config):
        from tests.integrations.trainers import train

        def kill(epoch):
            if epoch == 2 and raybo.current_trial().attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)

        train(trainer, EPOCHS, kill, rate=config["rate"], name="loss")

    study = raybo.tune(
        job, trials=2, workers=1, storage=tmp_path / "s.db", enqueue=[{"rate": 0.05}, {"rate": 1e-6}],
        scheduler="median", scheduler_options={"startup": 1, "grace": 3},
    )  # fmt: skip
    good, bad = study.trials
    assert (good.state, good.attempt) == (State.FINISHED, 2)
    assert (bad.state, bad.attempt, bad.step) == (State.PRUNED, 2, 4)
    for trial, last in ((good, EPOCHS), (bad, 4)):
        assert [step for step, _ in trial.reports] == list(range(1, last + 1))
        reported = [event for event in study.events if event.trial == trial.number and event.report is not None]
        assert [event.report[0] for event in reported if event.data["attempt"] == 2] == list(range(3, last + 1))
    assert good.value == pytest.approx(train(trainer, EPOCHS, rate=0.05)[-1], rel=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(os.environ["KERAS_BACKEND"] != "tensorflow", reason="other backends build a model before they fit")
def test_a_keras_model_that_is_not_built_is_refused(tmp_path):
    """No checkpoint could be loaded into it; it is trained outside a trial, and without checkpoints."""
    require("keras")
    import keras

    from raybo.integrations.keras import Report

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = y = data()[1]
    with reports_sent_to(Listener(tmp_path)), pytest.raises(raybo.ObjectiveError, match="is not built before fit"):
        model.fit(x, y, verbose=0, callbacks=[Report("loss")])
    model.fit(x, y, verbose=0, callbacks=[Report("loss")])
    other = keras.Sequential([keras.layers.Dense(1)])
    other.compile("sgd", "mse")
    with reports_sent_to(listener := Listener(tmp_path)):
        other.fit(x, y, verbose=0, callbacks=[Report("loss", save=False)])
    assert list(listener.reports) == [1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_one_of_several_evaluation_sets_is_reported(tmp_path):
    """The Trainer of transformers evaluates each set of a dict by itself."""
    require("transformers")
    from raybo.integrations.transformers import Report

    report, state, control = Report("eval_b_loss"), SimpleNamespace(global_step=0), SimpleNamespace(should_save=False)
    listener = Listener(tmp_path)
    with reports_sent_to(listener):
        report.on_train_begin(None, state, control)
        for loss in (3.0, 2.0):
            report.on_step_begin(None, state, control)
            state.global_step += 1
            for each in "abc":
                report.on_evaluate(None, state, control, {f"eval_{each}_loss": loss})
        assert listener.reports == {1: {"eval_b_loss": 3.0}, 2: {"eval_b_loss": 2.0}}
        state.global_step += 1
        report.on_evaluate(None, state, control, {"eval_a_loss": 1.0})
        with pytest.raises(raybo.ObjectiveError, match="the evaluation has no 'eval_b_loss'; did you mean"):
            report.on_step_begin(None, state, control)


def test_outside_a_trial_nothing_is_saved():
    saved = []
    assert not TrainerReports("loss", None).report({"loss": 1.0}, 1, saved.append, "here")
    assert saved == []


def test_a_trainer_that_does_not_stop_is_left(tmp_path):
    reports = TrainerReports("loss", None)
    with reports_sent_to(Listener(tmp_path, prune_at=1)):
        assert reports.report({"loss": 1.0}, 1, None, "here")
        with pytest.raises(raybo.TrialPruned):
            reports.report({"loss": 0.5}, 2, None, "here")
        with pytest.raises(raybo.TrialPruned):
            reports.end()
        reports.end()  # said once


def test_a_metric_that_is_not_there_is_named():
    with pytest.raises(raybo.ObjectiveError, match="the log has no 'los'; did you mean 'loss'"):
        TrainerReports("los", None).report({"loss": 1.0}, 1, None, "the log")
