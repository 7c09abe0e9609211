"""The places of trials' files: one study for each journal's name, wherever they are."""

from __future__ import annotations

import shutil

import pytest

import raybo
from raybo.common.errors import JournalError


def job(config):
    with raybo.saving() as directory:
        (directory / "model").write_text("")
    raybo.report({"loss": config["x"]})


objective = raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min", steps=1)(job)


def tune(directory, place, trials=1):
    directory.mkdir(exist_ok=True)
    return raybo.tune(
        objective,
        trials=trials,
        method="random",
        seed=0,
        in_process=True,
        storage=directory / "job.db",
        artifacts=place,
    )


@pytest.fixture(params=["path", "uri"])
def place(tmp_path, request):
    return tmp_path / "shared" if request.param == "path" else f"file://{tmp_path}/shared"


def test_two_studies_do_not_share_a_place_by_their_journals_name(tmp_path, place):
    tune(tmp_path / "a", place)
    refused = rf"job.db belongs to another study \(.*{tmp_path}/a/job.db\); name another place, or if it is this one's"
    with pytest.raises(JournalError, match=refused):
        tune(tmp_path / "b", place)
    assert len(list((tmp_path / "shared/job.trials/0/checkpoints").iterdir())) == 1
    tune(tmp_path / "b", tmp_path / "other")
    with pytest.raises(JournalError, match="belongs to another study"):
        tune(tmp_path / "b", place, trials=2)


def test_a_study_keeps_its_place_wherever_its_journal_goes(tmp_path, place):
    tune(tmp_path / "a", place)
    tune(tmp_path / "a", place, trials=2)
    (tmp_path / "c").mkdir()
    shutil.move(tmp_path / "a/job.db", tmp_path / "c/job.db")
    tune(tmp_path / "c", place, trials=3)
    with pytest.raises(JournalError, match="belongs to another study"):
        tune(tmp_path / "a", place)


@pytest.mark.parametrize("said", ["", "[", "{}", '{"began": "now"}'])
def test_what_says_nothing_of_a_study_refuses_none(tmp_path, said):
    tune(tmp_path / "a", tmp_path / "shared")
    (tmp_path / "shared/job.trials/study.json").write_text(said)
    assert tune(tmp_path / "b", tmp_path / "shared").count(raybo.State.FINISHED) == 1


def test_a_study_that_never_ended_a_command_is_not_refused(tmp_path, place, monkeypatch):
    def job(config):
        raise KeyboardInterrupt

    given = {"trials": 2, "method": "random", "in_process": True, "artifacts": place}
    wrapped = raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min", steps=1)(job)
    with pytest.raises(KeyboardInterrupt):
        raybo.tune(wrapped, storage=tmp_path / "job.db", **given)
    (tmp_path / "moved").mkdir()
    shutil.move(tmp_path / "job.db", tmp_path / "moved/job.db")
    monkeypatch.setattr("raybo.engine.trial.artifacts.socket.gethostname", lambda: "elsewhere")
    study = raybo.tune(objective, storage=tmp_path / "moved/job.db", **given)
    assert [str(trial.state) for trial in study.trials] == ["stopped", "finished", "finished"]


def test_a_study_that_begins_with_enqueued_trials_takes_its_place_over(tmp_path, place):
    tune(tmp_path / "a", place)
    (tmp_path / "a/job.db").unlink()
    given = {"trials": 1, "method": "random", "in_process": True, "artifacts": place, "enqueue": [{"x": 0.5}]}
    raybo.tune(objective, storage=tmp_path / "a/job.db", **given)
    with pytest.raises(JournalError, match="belongs to another study"):
        raybo.tune(objective, storage=tmp_path / "job.db", **given)
    with pytest.raises(JournalError):
        raybo.load(tmp_path / "job.db")  # nothing has begun there


def test_a_new_study_in_the_place_of_one_that_was_removed_takes_it_over(tmp_path, place):
    tune(tmp_path / "a", place)
    (tmp_path / "a/job.db").unlink()
    assert tune(tmp_path / "a", place).count(raybo.State.FINISHED) == 1
    assert tune(tmp_path / "a", place, trials=2).count(raybo.State.FINISHED) == 2
