"""`raybo studies`: what a directory holds, what runs there, and what runs on a cluster."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import raybo
from raybo.cli import cli
from raybo.engine import detached_studies as on_cluster
from raybo.engine.description import searcher_for
from raybo.engine.detached_studies import Detached, studies_on
from raybo.engine.ray.named_studies import studies_here
from raybo.journal import Journal
from raybo.record.events import KINDS, Kind, Planned
from raybo.reporting.studies import Progress, progress_of, studies_in
from raybo.study.enqueueing import enqueue


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
def job(config):
    return config["x"]


@contextlib.contextmanager
def written(path, trials, told, failed=0):
    """A journal of so many planned trials, open for writing."""
    searcher = searcher_for(job, "random", 0, {}, None)
    description = searcher.description
    with contextlib.closing(Journal(path, description)) as journal:
        journal.append([searcher.apply(Planned(trials=trials))])
        for number in range(told + failed):
            asked = searcher.apply(searcher.propose(searcher.history))
            end = (Kind.TOLD, {"value": 3.0 - number}) if number < told else (Kind.FAILED, {"reason": "no"})
            journal.append([asked, searcher.apply(KINDS[end[0]].of(number, end[1]))])
        yield


@pytest.fixture
def directory(tmp_path):
    """One study that has ended, one that was stopped, no study, and a damaged one."""
    with written(tmp_path / "ended.db", 2, 2):
        pass
    with written(tmp_path / "stopped.db", 5, 2, failed=1):
        pass
    (tmp_path / "other.db").write_bytes(b"no journal at all")
    (tmp_path / "notes.txt").write_text("neither")
    return tmp_path


def test_a_directory_is_listed_by_name(directory):
    with written(directory / "running.db", 4, 1):
        found = {each.name: each for each in studies_in(directory)}
        assert found["running.db"].where.endswith(")")
        assert found["running.db"].cells[1].startswith("runs on ")
    ended, stopped = found["ended.db"], found["stopped.db"]
    assert ended.cells == ("ended.db", "ended", "2/2", "", "loss 2 (trial 1)", "random")
    assert stopped.cells == ("stopped.db", "stopped", "3/5", "1", "loss 2 (trial 1)", "random")
    assert list(found) == ["ended.db", "other.db", "running.db", "stopped.db"]
    assert "other.db" in found["other.db"].problem  # what is wrong with it
    assert found["other.db"].cells[1:5] == ("", "", "", "")


def test_a_study_without_a_result_has_no_best(tmp_path):
    with written(tmp_path / "new.db", 3, 0):
        pass
    assert progress_of(tmp_path / "new.db").cells == ("new.db", "stopped", "0/3", "", "", "random")


def test_the_command_lists_them(directory):
    ran = CliRunner().invoke(cli, ["studies", str(directory)], env={"COLUMNS": "200"})
    assert ran.exit_code == 0, ran.output
    assert "ended.db" in ran.output
    assert "3/5" in ran.output
    assert "notes" not in ran.output


def test_empty_list_of_studies_is_reported(tmp_path):
    assert CliRunner().invoke(cli, ["studies", str(tmp_path)]).output == f"No studies in {tmp_path}\n"
    assert CliRunner().invoke(cli, ["studies", str(tmp_path), "--json"]).output == "[]\n"


def fake_ray(answers):
    """A Ray with detached studies of these names, and others' actors; an answer may be an error."""

    class Silent(Exception):
        pass

    def get(references, timeout):
        if any(isinstance(each, Exception) for each in references):
            raise Silent
        return references

    def get_actor(name, namespace):
        assert namespace == "raybo"
        if answers[name] is None:
            raise ValueError(name)
        plan, status = answers[name]
        return SimpleNamespace(
            get_plan=SimpleNamespace(remote=lambda: plan), status=SimpleNamespace(remote=lambda: status)
        )

    named = [{"name": name, "namespace": "raybo"} for name in answers] + [{"name": "x", "namespace": "other"}]
    return SimpleNamespace(
        util=SimpleNamespace(list_named_actors=lambda all_namespaces: named),
        exceptions=SimpleNamespace(RayActorError=Silent, GetTimeoutError=Silent),
        get_actor=get_actor,
        get=get,
    )


def test_running_cluster_studies_report_progress(monkeypatch):
    status = SimpleNamespace(metric="loss", best=(7, 0.25), front=None, ended=9, failed=1, planned=20)
    several = SimpleNamespace(metric="loss", best=None, front=(5, 0.7), ended=9, failed=1, planned=20)
    plan = SimpleNamespace(path="/journals/b.db", description=SimpleNamespace(method="auto"))
    answers = {
        "b": (plan, status),
        "a": (plan, None),
        "many": (plan, several),
        "silent": (plan, OSError()),
        "gone": None,
    }

    @contextlib.contextmanager
    def connected(address, cpus):
        assert (address, cpus) == ("auto", None)
        yield fake_ray(answers)

    monkeypatch.setattr(on_cluster, "ray_for_study", connected)
    found = studies_on("auto")
    assert found == [
        Detached("a", plan, None),
        Detached("b", plan, status),
        Detached("gone"),
        Detached("many", plan, several),
        Detached("silent"),
    ]
    ran = CliRunner().invoke(cli, ["studies", "--address", "auto"], env={"COLUMNS": "200"})
    assert ran.exit_code == 0, ran.output
    row = next(line for line in ran.output.splitlines() if line.strip().startswith("b "))
    assert [word in row for word in ("/journals/b.db", "9/20", "loss 0.25 (trial 7)", "auto")] == [True] * 4
    assert "5 on the front" in next(line for line in ran.output.splitlines() if line.strip().startswith("many "))


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [("b", "cab", (3, 1)), ("c", "cab", (3, 2)), (None, "ab", (3, 2)), (None, "", (1, 0)), ("a", "", (1, 0))],
)
def test_studies_know_their_share_of_a_cluster(monkeypatch, name, names, expected):
    import ray

    monkeypatch.setattr(ray.util, "list_named_actors", fake_ray(dict.fromkeys(names)).util.list_named_actors)
    assert studies_here(name) == expected


def test_what_is_not_known_is_left_empty():
    assert Progress("x", method="damaged").cells == ("x", "", "", "", "", "damaged")


@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="loss", mode="min")
def told(config):
    return {"loss": config["x"], "cost": 5.0}


def tune(path, **arguments):
    return raybo.tune(told, **{"method": "random", "seed": 0, "in_process": True, "storage": path, **arguments})


def test_results_that_were_added_are_not_among_the_planned(tmp_path):
    path = tmp_path / "a.db"
    study = tune(path, trials=3)
    assert (study.ended, study.ran) == ("all 3 trials have been run", 3)
    for x in (0.1, 0.2):
        enqueue(path, {"x": x}, x)
    study = raybo.load(path)
    assert (study.ended, study.ran, len(study.trials)) == ("all 3 trials have been run", 3, 5)
    assert progress_of(path).cells[1:3] == ("ended", "3/3")
    study = tune(path, trials=5)
    assert (study.ended, study.ran) == ("all 5 trials have been run, and 2 results came from elsewhere", 7)


def test_the_state_of_a_study_is_that_of_its_end(tmp_path):
    assert tune(tmp_path / "target.db", trials=20, target=0.99).ended.startswith("trial 0 has reached")
    assert progress_of(tmp_path / "target.db").cells[1:3] == ("ended", "1/20")
    tune(tmp_path / "again.db", trials=2, confirm="2x3")
    assert progress_of(tmp_path / "again.db").cells[1:3] == ("ended", "2/2")
    assert progress_of(tmp_path / "again.db").facts["done"] == 2
