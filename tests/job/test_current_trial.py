"""A job asks which trial it is."""

from __future__ import annotations

import threading

import raybo
from raybo.job.current_trial import CurrentTrial, running
from raybo.journal.side_files import trial_directory, trial_uri, without_password
from raybo.searcher import trial_seed


def test_outside_a_trial_there_is_none():
    assert raybo.current_trial() is None


def test_threads_see_the_current_trial(tmp_path):
    trial = CurrentTrial(7, 2, 5, {"x": 1}, tmp_path / "study.trials" / "7")
    seen = []
    with running(trial):
        thread = threading.Thread(target=lambda: seen.append(raybo.current_trial()))
        thread.start()
        thread.join()
    assert seen == [trial]
    assert raybo.current_trial() is None


def test_trial_directory_is_made_on_first_use(tmp_path):
    trial = CurrentTrial(7, 1, 5, {}, tmp_path / "study.trials" / "7")
    assert list(tmp_path.iterdir()) == []
    (trial.directory / "model.pkl").write_text("m")
    assert (trial.directory / "model.pkl").read_text() == "m"


def test_trial_directories_follow_links_to_the_journal(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "study.db")
    assert trial_directory(tmp_path / "link.db", 3) == tmp_path / "real" / "study.trials" / "3"
    assert trial_directory(tmp_path / "study.sqlite", 3) == tmp_path / "study.sqlite.trials" / "3"


def test_trial_seeds_are_distinct_and_fit_any_library():
    seeds = [trial_seed(study, number) for study in range(20) for number in range(50)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert trial_seed(3, 4) == trial_seed(3, 4)


def test_uri_keeps_names_and_drops_passwords(tmp_path):
    assert trial_uri(tmp_path / "study.db", 3, "s3://bucket/prefix/") == "s3://bucket/prefix/study.trials/3"
    for plain in ("s3://bucket/a@b", "/home/me@work/kept", "gs://bucket"):
        assert without_password(plain) == plain
    assert without_password("s3://key:secret@bucket/x?region=eu") == "s3://bucket/x?region=eu"
