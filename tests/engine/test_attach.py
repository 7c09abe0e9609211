"""Following a detached study that has just ended says where its journal is, and which command shows it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest

import raybo
from raybo.common.errors import RayError
from raybo.engine import follow
from raybo.engine.follow import Ended, StudyLost, attach, stop
from raybo.engine.ray.named_studies import NAMESPACE
from raybo.journal import Journal
from raybo.record.description import Description
from raybo.record.events import Planned, Told
from raybo.record.goals import Goals


class ActorError(Exception):
    pass


class GetTimeoutError(Exception):
    pass


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """A cluster on which another study runs, and the directory in which this process is."""

    def get_actor(name, namespace):
        raise ValueError(name)

    names = [{"name": "other", "namespace": NAMESPACE}]
    ray = SimpleNamespace(
        get_actor=get_actor,
        util=SimpleNamespace(list_named_actors=lambda all_namespaces: names),
        exceptions=SimpleNamespace(GetTimeoutError=GetTimeoutError, RayActorError=ActorError),
    )
    monkeypatch.setattr(follow, "ray_for_study", lambda *_: contextlib.nullcontext(ray))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def journal(path, trials=1):
    """One trial that has finished, of so many."""
    searcher = raybo.Searcher({"x": raybo.Float(0, 1)}, "random", seed=0)
    events = [searcher.apply(Planned(trials=trials)), searcher.apply(searcher.propose(searcher.history))]
    events.append(searcher.apply(Told(0, value=0.5)))
    with contextlib.closing(
        Journal(path, Description("job", Goals(("value",), ("max",)), searcher.space, "random", 0))
    ) as opened:
        opened.append(events)
    return path


@pytest.mark.parametrize("ask", [attach, stop])
def test_unknown_study_error_names_journal_and_command(ask, cluster):
    with pytest.raises(RayError) as told:
        ask("my job", "auto")
    assert str(told.value) == (
        "no detached study named my job is running on this cluster (available: other); if it has ended, its journal is "
        "where it was started, my job.db or what --storage named: `raybo show 'my job.db'` shows it there; for a "
        "job, give the address of the dashboard, --address http://HOST:8265"
    )
    path = journal(cluster / "my job.db")
    with pytest.raises(RayError, match="no detached study named my job") as told:
        ask("my job", "auto")
    assert str(told.value).endswith(f"its journal is {path}: `raybo show 'my job.db'` shows it")


@pytest.mark.parametrize(("trials", "has_ended"), [(1, True), (2, False)])
def test_process_gone_after_the_end_is_not_lost(trials, has_ended, cluster, monkeypatch):
    path = journal(cluster / "job.db", trials)
    actor = SimpleNamespace(outcome=SimpleNamespace(remote=lambda: None))
    monkeypatch.setattr(follow, "_find", lambda ray, name: (actor, SimpleNamespace(path=path)))

    def lost(*_):
        raise StudyLost("the study's own process was lost for good")

    monkeypatch.setattr(follow, "_wait", lost)
    if has_ended:
        ended = attach("job", "auto")
        assert (ended.path, ended.study.best.value) == (path, 0.5)
    else:
        with pytest.raises(StudyLost):
            attach("job", "auto")


@pytest.mark.parametrize(("command", "says"), [("attach", "job has ended"), ("stop", "Stopped")])
def test_command_names_journal_on_another_machine(command, says, monkeypatch):
    from click.testing import CliRunner

    from raybo.cli import cluster

    monkeypatch.setattr(follow, command, lambda *_: Ended(Path("/there/my job.db"), None))
    done = CliRunner().invoke(getattr(cluster, command), ["job", "--address", "10.0.0.1:6379"])
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == (
        f"{says}; its journal is /there/my job.db on the machine where it was started: "
        "raybo show '/there/my job.db' shows it there"
    )


@pytest.mark.parametrize("has_ended", [True, False])
def test_name_is_free_only_after_the_study_ended(has_ended, cluster, monkeypatch):
    class Taken(ValueError):
        pass

    taken, killed = [True], []

    def make():
        if taken:
            raise Taken
        return "made"

    def kill(actor):
        killed.append(actor)
        taken.clear()

    actor = SimpleNamespace(has_ended=SimpleNamespace(remote=lambda: has_ended))
    ray = SimpleNamespace(
        get_actor=lambda name, namespace: actor,
        get=lambda value, timeout: value,
        kill=kill,
        exceptions=SimpleNamespace(
            ActorAlreadyExistsError=Taken, RayActorError=ActorError, GetTimeoutError=GetTimeoutError
        ),
    )
    if has_ended:
        assert follow.make_named(ray, "job", make) == "made"
        assert killed == [actor]
    else:
        with pytest.raises(Taken):
            follow.make_named(ray, "job", make)
        assert not killed
