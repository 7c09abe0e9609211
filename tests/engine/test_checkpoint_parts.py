"""Checkpoints that several processes save together."""

from __future__ import annotations

from raybo.engine.trial.artifacts import Mirror
from raybo.engine.trial.checkpoints import Checkpoints


def save(checkpoints, *names):
    """One process's part of the next checkpoint, with files of these names; returns the checkpoint's name."""
    with checkpoints.saving() as directory:
        for name in names:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(name)
    return checkpoints.take()


def files(place):
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


def ranks_of(place, count=3, attempt=1, last=None, keep="last", mirrors=None):
    return [
        Checkpoints(place if mirrors is None else place / str(rank), attempt, last, keep, mirrors, rank)
        for rank in range(count)
    ]


def test_parts_become_one_checkpoint(tmp_path):
    first, second, third = ranks_of(tmp_path)
    assert {save(third, "2.txt", "shards/2"), save(second, "shards/1"), save(first, "shards/0")} == {"1-1"}
    assert first.last() is None
    assert first.merge("1-1", [1, 2]) == ""
    assert files(tmp_path) == ["1-1/2.txt", "1-1/shards/0", "1-1/shards/1", "1-1/shards/2"]
    first.committed("1-1")
    assert all(each.last() == tmp_path / "1-1" for each in ranks_of(tmp_path, last="1-1", attempt=2))


def test_one_name_from_two_ranks_is_refused(tmp_path):
    first, second = ranks_of(tmp_path, 2)
    save(first, "shards/model"), save(second, "shards/model")
    assert first.merge("1-1", [1]) == ("rank 1 and another rank both saved 'shards/model'; put the rank into the name")


def test_a_part_on_another_node_is_refused(tmp_path):
    first, second = ranks_of(tmp_path / "here", 1)[0], ranks_of(tmp_path / "there", 2)[1]
    save(first, "0"), save(second, "1")
    assert "the checkpoint of rank 1 is on another node, and the nodes do not share" in first.merge("1-1", [1])


def test_under_a_uri_parts_meet_there(tmp_path):
    mirror = Mirror(f"file://{tmp_path}/uri")
    for each in (ranks := ranks_of(tmp_path, mirrors=mirror)):
        save(each, f"{each.rank}")
    assert ranks[0].merge("1-1", [1, 2]) == ""
    assert files(tmp_path / "uri" / "checkpoints") == ["1-1/0", "1-1/1", "1-1/2"]
    found = Checkpoints(tmp_path / "other", 2, "1-1", "last", mirror, rank=2).last()
    assert files(found) == ["0", "1", "2"]


def test_what_other_ranks_are_saving_stays(tmp_path):
    mirror = Mirror(f"file://{tmp_path}/uri")
    for mirrors in (None, mirror):
        first, second = ranks_of(tmp_path / "here", 2, mirrors=mirrors)
        for _ in range(3):
            save(first, "0"), save(second, "1")
            first.merge("1-3", [])
        save(second, "1")  # it is a step ahead
        with second.saving() as directory:
            (directory / "1").write_text("")
            first.committed("1-2"), first.committed("1-3")
            assert directory.is_dir()
        kept = files(tmp_path / "here") if mirrors is None else files(tmp_path / "uri" / "checkpoints")
        names = {path.split("/")[0] for path in kept}
        assert {"1-2", "1-3"} <= names
        assert "1-1" not in names
        assert ("1-4.rank-1" in names) if mirrors is None else ("1-4" in names)


def test_the_next_attempt_removes_left_parts(tmp_path):
    first, second = ranks_of(tmp_path, 2)
    save(first, "0"), save(second, "1")
    (tmp_path / "1-2.rank-1.partial").mkdir()
    again, other = ranks_of(tmp_path, 2, attempt=2)
    other.begin()
    assert (tmp_path / "1-1.rank-1").is_dir()
    again.begin()
    assert files(tmp_path) == []


def test_a_forgotten_checkpoint_is_not_found(tmp_path):
    save(Checkpoints(tmp_path, 1, None), "0")
    again = Checkpoints(tmp_path, 2, "1-1")
    assert again.last() is not None
    again.forget()
    assert again.last() is None


def test_the_checkpoint_of_the_beginning_stays_for_slower_ranks(tmp_path):
    """A rank of a launcher may ask for it when another has reported several times."""
    (tmp_path / "1-2").mkdir()
    checkpoints = Checkpoints(tmp_path, 2, "1-2")
    checkpoints.begin()
    for _ in range(3):
        with checkpoints.saving() as directory:
            (directory / "weights").touch()
        checkpoints.committed(checkpoints.take())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["1-2", "2-2", "2-3"]
    checkpoints.end()
    assert [each.name for each in tmp_path.iterdir()] == ["2-3"]
