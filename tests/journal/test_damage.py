"""A journal that is damaged, cut short, forged, removed or full of strange text is refused in a line or read whole."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import sqlite3
from pathlib import Path

import pytest

from raybo.common.errors import JournalError, RayboError
from raybo.journal import Journal, read
from raybo.journal.acknowledged import mark_path
from raybo.journal.chain import beginning, following
from raybo.journal.checks import Checker, Nonsense, description_of
from raybo.record.description import DEFAULTS_SINCE_0_2, Description
from raybo.record.events import KINDS, Asked, Begun, ContextObserved, Failed, Kind, Planned, Retried
from raybo.record.goals import Goals
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Space
from raybo.study.study import load

FLIPS = 60  # of single bits, in the file and in its log each
FORGERIES = 120
SPACE = Space({"x": Float(0, 1), "n": Integer(1, 9), "c": Categorical(["a", {"kind": "b", "w": Float(0, 1)}])})
CONTEXT = Space({"demand": Float(0, 1)})
DESCRIPTION = Description("job", Goals(("loss",), ("min",)), SPACE, "random", 3, {"folds": 5}, {}, CONTEXT)


def history(trials):
    """The events of a study that has seen every kind of them."""
    searcher = Searcher.of(DESCRIPTION)
    events = [searcher.apply(Planned(trials=trials))]
    ends = [
        (Kind.TOLD, {"value": 0.5, "seconds": 1.5, "attempt": 1, "metrics": {"size": 3}, "context": [0.3], "c": [0.3]}),
        (Kind.FAILED, {"reason": "ValueError: no", "traceback": "a\nb", "attempt": 1, "seconds": 0.1}),
        (Kind.STOPPED, {"reason": "stopped by the user", "attempt": 1}),
    ]
    for n in range(trials):
        events.append(searcher.apply(searcher.propose(searcher.history)))
        if n % 5 == 4:
            events.append(searcher.apply(Begun(n, attempt=1)))
        if n % 4 == 3:
            again = {"reason": "its worker died", "attempt": 2, "losses": 1}
            events.append(searcher.apply(Retried.of(n, again)))
        kind, data = ends[n % 3]
        if n % 2:
            events.append(searcher.apply(ContextObserved(n, context=[0.7], c=[0.7])))
        events.append(searcher.apply(KINDS[kind].of(n, data)))
    return events


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


def write(path, trials=12):
    """A closed journal."""
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        for event in history(trials):
            journal.append([event])
    return read(path)


def leave(path, directory, trials=12):
    """Leave in a directory what a killed writer does: the file, its log, and how far it went."""
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        for event in history(trials):
            journal.append([event])
        directory.mkdir()
        for file in (path, Path(f"{path}-wal"), mark_path(path)):
            (directory / file.name).write_bytes(file.read_bytes())
    return directory / path.name, {file.name: file.read_bytes() for file in directory.iterdir()}


def flipped(content, rng):
    bit = rng.randrange(8 * len(content))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def same_or_refused(path, whole):
    """Return True if it was refused; fail if it is read as something else, or refused by a traceback."""
    try:
        found = read(path)
    except JournalError:
        return True
    assert found == whole
    return False


# ---- damage


def test_every_flipped_bit_is_refused_or_harmless(path):
    whole, rng = write(path), random.Random(1)
    content = path.read_bytes()
    refused = 0
    for _ in range(FLIPS):
        path.write_bytes(flipped(content, rng))
        refused += same_or_refused(path, whole)
        for beside in path.parent.glob("study.db-*"):
            beside.unlink()
    assert refused > FLIPS // 3  # the rest hit what nothing is written to


def test_no_committed_event_is_lost_silently(path, tmp_path):
    left, files = leave(path, tmp_path / "left")
    whole, rng = read(path), random.Random(2)
    refused = 0
    for _ in range(FLIPS):
        for name, content in files.items():
            (left.parent / name).write_bytes(flipped(content, rng) if name.endswith("-wal") else content)
        for beside in left.parent.glob("study.db-shm"):
            beside.unlink()
        refused += same_or_refused(left, whole)
    assert refused > FLIPS // 3


def test_the_error_of_a_lost_tail_names_remedies(path, tmp_path):
    left, files = leave(path, tmp_path / "left")
    wal = files["study.db-wal"]
    (left.parent / "study.db-wal").write_bytes(wal[: len(wal) // 2])
    events = len(history(12))
    with pytest.raises(JournalError, match=rf"\d+ of {events} committed events are missing at its end; .*study.db-ack"):
        read(left)
    with pytest.raises(JournalError, match="are missing at its end"):
        Journal(left, DESCRIPTION)
    mark_path(left).unlink()
    assert 0 < len(read(left)[1]) < events
    Journal(left, DESCRIPTION).close()
    assert os.listdir(left.parent) == ["study.db"]


@pytest.mark.parametrize("lost", [1, 9])
def test_a_closed_journals_lost_tail_is_noticed(path, lost):
    _, events = write(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM event WHERE number > ?", (len(events) - lost,))
        connection.commit()
    missing = f"{lost} of {len(events)} committed events are missing at its end; restore it from a copy"
    with pytest.raises(JournalError, match=missing):
        read(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET data = replace(data, '0.5', '0.4')",
        "UPDATE event SET at = replace(at, '20', '21') WHERE number = 4",
        "UPDATE event SET checksum = NULL WHERE number = 4",
        "UPDATE study SET description = replace(description, 'random', 'sobol')",
        "DELETE FROM event WHERE number = 1",
        "PRAGMA user_version=1",
        "PRAGMA user_version=0",
    ],
)
def test_what_is_changed_by_hand_is_seen(path, statement):
    write(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(JournalError, match=r"it is damaged|missing at its end"):
        read(path)


def test_checksums_match_earlier_releases_and_chain_all_events():
    first = beginning("{}")
    assert first == "2afb9b83f9314e5d029766197f539792"
    assert following(first, 1, "told", None, "2026", "[]") == "60c687a11ec6679224ae41bf56ebdd2e"
    assert following(beginning("[]"), 1, "told", None, "2026", "[]") != following(first, 1, "told", None, "2026", "[]")


def test_a_forged_last_event_is_named_by_number(path):
    _, events = write(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT number, kind, trial, at, data, checksum FROM event ORDER BY number"
        ).fetchall()
        *content, _ = rows[-1]
        content[-1] = json.dumps({**json.loads(content[-1]), "seconds": 2.0})
        changed = following(rows[-2][-1], *content)
        connection.execute(
            "UPDATE event SET data = ?, checksum = ? WHERE number = ?", (content[-1], changed, content[0])
        )
        connection.commit()
    with pytest.raises(JournalError, match=rf"it is damaged \(event {len(events)} has been changed\)"):
        read(path)


def test_marks_of_other_studies_are_ignored(path, tmp_path):
    whole = write(path)
    other = tmp_path / "other.db"
    with contextlib.closing(Journal(other, DESCRIPTION)) as journal:
        journal.append(history(20))
        mark = mark_path(other).read_text()
    for text in ("", "x" * 99, mark[:-3] + "\n", mark.replace(mark.split()[2], "0" * 32)):
        mark_path(path).write_text(text)
        assert read(path) == whole
    mark_path(path).write_text(mark)  # of the same study, which went farther
    with pytest.raises(JournalError, match="missing at its end"):
        read(path)


# ---- forgery: whoever changes a journal with care also mends its checksums


def forge(path, content, schema):
    """A journal of any content, with checksums that follow."""
    description, rows = content
    path.unlink(missing_ok=True)
    with contextlib.closing(Journal(path, DESCRIPTION)):
        pass
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE study SET description = ?, closed_at = NULL", (description,))
        checksum = beginning(description)
        for row in rows:
            checksum = following(checksum, *row)
            connection.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", (*row, checksum))
        if schema == 1:
            connection.execute("ALTER TABLE event DROP COLUMN checksum")
            connection.execute("ALTER TABLE study DROP COLUMN closed_at")
            connection.execute("PRAGMA user_version=1")
        connection.commit()


STRANGE = [
    None, True, -1, 0, 1, 7, 1.5, -0.0, 10**400, 1e308, float("nan"), float("inf"), "", "x", "\ud800", [], {}, [[]],
    {"repr": 1}, {"a": {"b": 1}}, [None], "1", 2**63,
]  # fmt: skip


def spots(value, at=()):
    """Every place in some JSON."""
    yield at
    for key, inside in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from spots(inside, (*at, key))


def forged(value, rng):
    """The JSON with something else, or nothing, in one of its places."""
    value = json.loads(json.dumps(value))
    *way, last = rng.choice([spot for spot in spots(value) if spot])
    inside = value
    for key in way:
        inside = inside[key]
    if rng.random() < 0.3:
        del inside[last]
    else:
        inside[last] = rng.choice(STRANGE)
    return value


def used(path):
    """Every way in which commands look at a journal."""
    from rich.console import Console

    from raybo.integrations.export import exporter
    from raybo.reporting.tables import study_view
    from raybo.reporting.trial_view import trial_view
    from raybo.study.replay import replay

    study = load(path)
    console = Console(width=140, file=io.StringIO())
    console.print(study_view(study, 20))
    for number in range(min(3, len(study.trials))):
        console.print(trial_view(study, number))
    for form in ("csv", "json"):
        exporter(form, str(path.with_suffix(f".{form}")))(study)
    list(replay(study))


def whole(description):
    """Its JSON, with what is left out if it says nothing."""
    return {**DEFAULTS_SINCE_0_2, **description.to_json()}


@pytest.mark.slow
@pytest.mark.parametrize("schema", [1, 2])
def test_forged_json_is_harmless_or_refused_briefly(path, schema):
    write(path, 6)
    description, events = read(path)
    rng = random.Random(schema)
    refused = 0
    for _ in range(FORGERIES):
        said, rows = whole(description), [[e.number, e.kind.value, e.trial, e.at, dict(e.data)] for e in events]
        if rng.random() < 0.25:
            said = forged(said, rng)
        else:
            i = rng.randrange(len(rows))
            if rng.random() < 0.7:
                rows[i][4] = forged(rows[i][4], rng)
            else:
                rows[i][rng.choice([1, 2, 3])] = rng.choice([None, -1, 0, 3, "x", "told", "asked", "planned", 2**40])
        texts = [[n, kind or "", trial, at or "", json.dumps(data)] for n, kind, trial, at, data in rows]
        forge(path, (json.dumps(said), texts), schema)
        try:
            used(path)
        except RayboError:
            refused += 1
    assert refused > FORGERIES // 3


@pytest.mark.parametrize("text", ["[" * 5_000 + "]" * 5_000, '{"a":' * 1_000 + "1" + "}" * 1_000, "9" * 5_000, "{"])
def test_json_that_no_parser_likes_is_refused(path, text):
    write(path, 1)
    description, events = read(path)
    said = json.dumps(whole(description))
    rows = [[e.number, e.kind.value, e.trial, e.at, json.dumps(e.data)] for e in events]
    for content in ((text, rows), (said, [[*rows[0][:4], text], *rows[1:]])):
        forge(path, content, 2)
        with pytest.raises(JournalError, match="it is damaged"):
            read(path)


def test_an_object_without_valid_description_is_refused(path):
    write(path, 1)
    said = json.dumps(whole(DESCRIPTION)).replace('"a"', '{"repr": {"b": 1}}')
    forge(path, (said, []), 2)
    with pytest.raises(JournalError, match="describes no object"):
        read(path)


# ---- text


def test_a_journals_text_is_always_clean(path):
    strange = "caf\udce9"
    space = Space({strange: Float(0, 1), "c": Categorical([strange, "caf\ufffd"])})
    description = Description(strange, Goals((strange,), ("max",)), space, "random", 0, {strange: strange})
    searcher = Searcher.of(description)
    for _ in range(2):  # and it is the same study the next time
        with contextlib.closing(Journal(path, description)) as journal:
            asked = Asked.of(len(journal.events) // 2, searcher.propose(searcher.history).data)
            number = len(journal.events)
            data = {"reason": f"{strange} \U0001f600", "metrics": {strange: strange}, "traceback": strange}
            journal.append([
                Asked.of(asked.trial, {**asked.data, "seen": number}, number=number + 1),
                Failed.of(asked.trial, data, number=number + 2),
            ])  # fmt: skip
    study = load(path)
    assert study.trials[0].reason == "caf\\udce9 \U0001f600"
    repr(study).encode()
    used(path)


def test_text_of_older_versions_is_cleaned_when_read(path):
    data = {"reason": "caf\udce9", "attempt": 1}
    asked = Searcher.of(DESCRIPTION).propose(Searcher.of(DESCRIPTION).history).data
    rows = [
        [1, "asked", 0, "2026-11-21T12:00:00.000+00:00", json.dumps({**asked, "seen": 0})],
        [2, "failed", 0, "2026-11-21T12:00:00.000+00:00", json.dumps(data)],
    ]
    forge(path, (json.dumps(whole(DESCRIPTION)), rows), 1)
    assert load(path).trials[0].reason == "caf\\udce9"
    used(path)


# ---- a journal that goes away


@pytest.mark.parametrize("how", ["removed", "replaced", "log removed"])
def test_a_vanished_journal_is_rescued_at_next_commit(path, how):
    events = history(4)
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append(events[:3])
        if how == "removed":
            path.unlink()
        elif how == "replaced":
            path.with_name("other").write_bytes(b"another file")
            path.with_name("other").replace(path)
        else:
            Path(f"{path}-wal").unlink()
        for upto in (4, 6):  # what could not be committed is tried again, with what has come since
            with pytest.raises(JournalError, match=r"removed or replaced .* is in .*study.rescued.db: move"):
                journal.append(events[3:upto])
    rescued = path.with_name("study.rescued.db")
    assert [(e.kind, e.trial) for e in read(rescued)[1]] == [(e.kind, e.trial) for e in events[:6]]
    with contextlib.closing(Journal(rescued, DESCRIPTION)) as journal:  # and it continues
        journal.append(events[6:])
    assert load(rescued).count(State.FINISHED) > 0
    assert sorted(file.name for file in path.parent.glob("study.rescued*")) == ["study.rescued.db"]


@pytest.mark.parametrize(("end", "allowed"), [("failed", True), ("told", False), ("stopped", False)])
def test_only_what_failed_may_run_again(end, allowed):
    space = Space({"x": Float(0, 1)})
    checker = Checker(space, None)
    asked = {"x": [0.5], "values": [0.5], "tags": {}, "seen": 0}
    checker.read(1, "asked", 0, "", json.dumps(asked))
    checker.read(2, end, 0, "", json.dumps({"value": 1.0} if end == "told" else {}))
    again = (3, "retried", 0, "", json.dumps({"reason": "wanted again", "attempt": 2}))
    if not allowed:
        with pytest.raises(Nonsense, match="has ended before"):
            checker.read(*again)
        return
    checker.read(*again)
    checker.read(4, "told", 0, "", json.dumps({"value": 1.0, "metrics": {"curve": [1, {"a": 2.5}]}}))
    with pytest.raises(Nonsense, match="has ended before"):
        checker.read(5, *again[1:])


def test_reports_without_the_schedulers_metric_are_refused():
    goals = Goals.of({"accuracy": "max", "seconds": "min"})
    checker = Checker(Space({"x": Float(0, 1)}), None, goals, "seconds")
    checker.read(1, "asked", 0, "", json.dumps({"x": [0.5], "values": [0.5], "tags": {}, "seen": 0}))
    report = {"step": 1, "value": 0.5, "metrics": {"seconds": 2.0}}
    checker.read(2, "reported", 0, "", json.dumps(report))
    with pytest.raises(Nonsense, match="it has no seconds"):
        checker.read(3, "reported", 0, "", json.dumps({**report, "step": 2, "metrics": {"seconds": "two"}}))
    described = {"metric": "accuracy", "mode": "max", "metrics": goals.metrics, "scheduler": "asha", "steps": 9}
    said = {**DESCRIPTION.to_json(), "context": None, **described}
    assert description_of(json.dumps({**said, "scheduler_options": {"metric": "seconds"}}))
    for other in ("memory", 3, []):
        with pytest.raises(Nonsense, match="its scheduler looks at none of its metrics"):
            description_of(json.dumps({**said, "scheduler_options": {"metric": other}}))


@pytest.mark.parametrize("given", [["nope"], [], "x", [["x"]], {"x": 1}])
def test_what_was_given_must_be_parameters(given):
    asked = {"x": [0.5], "values": [0.5], "seen": 0, "tags": {"origin": "enqueued", "given": ["x"]}}
    Checker(Space({"x": Float(0, 1)}), None).read(1, "asked", 0, "", json.dumps(asked))
    asked["tags"]["given"] = given
    with pytest.raises(Nonsense, match="what was given of it are not parameters"):
        Checker(Space({"x": Float(0, 1)}), None).read(1, "asked", 0, "", json.dumps(asked))
