"""Exports are read by the programs that they are for."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import re
import threading
import time
import urllib.request
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

import raybo
from raybo.common.errors import MethodError, MissingExtra, RayboError, install_command
from raybo.integrations.export import FORMATS, Recorder, exporter
from raybo.journal import Journal
from raybo.record.description import Description
from raybo.record.events import KINDS, Ended, Kind, Planned, Stopped, Told
from raybo.record.goals import Goals
from raybo.record.states import State
from raybo.searcher import Searcher
from raybo.space import Categorical, Float, Integer, Space
from raybo.study.study import Study
from tests.reporting.studies import run

STATES = {State.FINISHED: "COMPLETE", State.FAILED: "FAIL", State.PENDING: "RUNNING"}


@pytest.fixture(scope="module")
def study():
    return run("sobol", 20)


def part(study, events):
    return Study(study.description, study.events[:events])


def test_an_unknown_format_is_refused_with_a_suggestion():
    with pytest.raises(MethodError, match="there is no export to 'optunna'; did you mean 'optuna'"):
        exporter("optunna", "x")


@pytest.mark.parametrize("form", ["csv", "json", "optuna"])
def test_an_unwritable_destination_is_refused(form, study, tmp_path):
    with pytest.raises(RayboError, match="cannot be written"):
        exporter(form, str(tmp_path / "none" / "x"))(study)


@pytest.mark.filterwarnings("ignore")  # of mlflow's own, about the database library that it uses
@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, marks=[pytest.mark.slow] * (form == "mlflow"))
        for form in (*FORMATS, "html")
        if form != "reports"
    ],
)
def test_unencodable_text_is_exported_escaped(form, tmp_path, monkeypatch):
    """As `os.listdir` gives a stray byte, in names and errors: journals hold it clean, and so does what they export."""
    from raybo.reporting import draw

    if form == "wandb":
        pytest.importorskip("wandb", reason="wandb is not installed")
        monkeypatch.setenv("WANDB_MODE", "offline")
        monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    stray = "caf\udce9"
    space = Space({stray: Float(0, 1), "c": Categorical([stray, "b"])})
    description = Description(stray, Goals((stray,), ("max",)), space, "random", 0, {stray: stray})
    path = tmp_path / "study.db"
    searcher = Searcher(space, "random", "max", seed=0)
    with contextlib.closing(Journal(path, description)) as journal:
        for number in range(4):
            asked = searcher.apply(searcher.propose(searcher.history))
            end = (
                {"reason": stray, "traceback": stray}
                if number == 1
                else {"value": number, "metrics": {stray: stray, "acc@5": 0.5}}
            )
            ended = searcher.apply(KINDS[Kind.FAILED if number == 1 else Kind.TOLD].of(number, end))
            journal.append([asked, ended])
    study = raybo.load(path)
    destination = tmp_path / ("out" if form in ("tensorboard", "mlflow") else "out.x")
    where = {"mlflow": f"sqlite:///{tmp_path / 'ml.db'}", "wandb": "project"}.get(form, str(destination))
    if form == "html":
        draw(study, destination.with_suffix(".html"))
    else:
        exporter(form, where)(study)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and file.stem != "study")
    if form == "mlflow":
        assert b"caf_udce9" in written  # it takes few signs in names
        assert b"acc_5" in written
    assert b"caf\\udce9" in written.replace(b"\\\\", b"\\")


# ---- files


def test_csv_has_a_row_a_trial(study, tmp_path):
    exporter("csv", str(tmp_path / "s.csv"))(study)
    with open(tmp_path / "s.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    for row, trial in zip(rows, study.trials, strict=True):
        assert row["state"] == str(trial.state)
        assert float(row["lr"]) == trial.config["lr"]
        assert row["net.kind"] == ("" if trial.config["net"]["kind"] is None else trial.config["net"]["kind"])
        assert (float(row["value"]) if row["value"] else None) == trial.value
    assert {name.name for name in tmp_path.iterdir()} == {"s.csv"}


def test_json_holds_everything(study, tmp_path):
    exporter("json", str(tmp_path / "s.json"))(study)
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["study"]["objective"] == "train_<net>"
    assert (content["planned"], content["best"]) == (20, study.best.number)
    for name in ("number", "value", "seconds", "suggest_seconds", "attempt", "reason"):
        assert [trial[name] for trial in content["trials"]] == [getattr(trial, name) for trial in study.trials]
    assert content["trials"][3]["config"] == study.trials[3].config
    assert any("traceback" in trial["details"] for trial in content["trials"])


def test_a_dataframe_has_typed_columns(study):
    frame = study.to_dataframe()
    kinds = {name: str(dtype) for name, dtype in frame.dtypes.items()}
    assert kinds["number"] == kinds["attempt"] == kinds["net.depth"] == "int64"
    assert kinds["value"] == kinds["seconds"] == kinds["lr"] == "float64"
    assert kinds["state"] == "category"
    assert kinds["net.kind"] == "object"  # None is one of its choices
    assert list(frame.query("state == 'finished'")["value"].sort_values())[-1] == study.best.value
    met = run(
        "random", 8, context={"load": raybo.Float(0, 1), "users": raybo.Integer(1, 9)}, failing=1.0
    ).to_dataframe()
    assert (str(met["load"].dtype), str(met["users"].dtype)) == ("float64", "Int64")
    assert (kinds["f1"], list(frame.columns)[-1]) == ("float64", "f1")
    assert list(Study(study.description, []).to_dataframe().columns) == list(frame.columns)[:-1]


def test_a_file_is_replaced_in_one_step(study, tmp_path):
    path = tmp_path / "s.csv"
    exporter("csv", str(path))(part(study, 20))
    before = path.read_text()
    with open(path, encoding="utf-8") as reader:
        exporter("csv", str(path))(study)
        assert reader.read() == before
    assert len(path.read_text()) > len(before)


# ---- Optuna


def loaded(path):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    (summary,) = optuna.get_all_study_summaries(storage)
    return optuna.load_study(study_name=summary.study_name, storage=storage)


@pytest.mark.parametrize("mode", ["max", "min"])
def test_optuna_reads_the_whole_study(mode, tmp_path):
    study = run("random", 20, mode=mode)
    exporter("optuna", str(tmp_path / "s.log"))(study)
    theirs = loaded(tmp_path / "s.log")
    assert theirs.study_name == "train_<net>"
    assert theirs.direction.name == {"max": "MAXIMIZE", "min": "MINIMIZE"}[mode]
    assert theirs.metric_names == ["accuracy"]
    assert theirs.user_attrs["method"] == "random"
    assert theirs.best_trial.number == study.best.number
    assert len(theirs.trials) == 20
    for ours, trial in zip(study.trials, theirs.trials, strict=True):
        assert trial.state.name == STATES[ours.state]
        assert trial.value == ours.value
        names = {"lr": ours.config["lr"], "momentum": ours.config["momentum"]}
        names |= {f"net.{key}": value for key, value in ours.config["net"].items()}
        assert trial.params == names
        assert trial.distributions["lr"].log
        if ours.state is State.FAILED:
            assert "diverged" in trial.user_attrs["reason"]
            assert "Traceback" in trial.user_attrs["traceback"]
        if ours.state is State.FINISHED:
            assert trial.user_attrs["metrics"] == {"f1": 0.5}
            ended = trial.datetime_complete.astimezone(timezone.utc).timestamp()
            begun = datetime.fromisoformat(ours.details["started"]).timestamp()
            assert ended == pytest.approx(begun + ours.seconds, abs=0.002)
    theirs.trials_dataframe()


def test_every_parameter_becomes_an_optuna_distribution(tmp_path):
    space = {
        "a": raybo.Float(0, 1, step=0.25),
        "b": raybo.Integer(1, 1000, log=True),
        "c": raybo.Integer(2, 10, step=4),
        "d": raybo.Categorical([1, "1", True, None, math.inf, (1, 2)]),
    }
    study = run("random", 12, space={k: v for k, v in space.items() if k != "d"}, failing=0.0)
    exporter("optuna", str(tmp_path / "s.log"))(study)
    assert [t.value for t in loaded(tmp_path / "s.log").trials] == [t.value for t in study.trials]
    searcher = raybo.Searcher({"d": space["d"]}, "random", seed=0)
    events = [Planned(trials=12, number=1)] + [searcher.apply(searcher.propose(searcher.history)) for _ in range(12)]
    odd = Study(Description("j", Goals(("m",), ("max",)), searcher.space, "random", 0), events)
    exporter("optuna", str(tmp_path / "odd.log"))(odd)
    shown = [trial.params["d"] for trial in loaded(tmp_path / "odd.log").trials]
    assert [str(value) for value in shown] == [str(trial.config["d"]) for trial in odd.trials]


def test_optuna_can_read_a_growing_file(study, tmp_path):
    path = tmp_path / "s.log"
    export = exporter("optuna", str(path))
    before = b""
    for events in range(1, len(study.events) + 1, 3):
        export(part(study, events))
        assert path.read_bytes().startswith(before)
        before = path.read_bytes()
        assert len(loaded(path).trials) == len(part(study, events).trials)
    export(study)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])  # a writer that was killed in the middle of a line
    export(study)
    assert path.read_bytes() == whole


def test_another_file_is_not_overwritten(study, tmp_path):
    path = tmp_path / "s.log"
    path.write_text('{"op_code":0,"study_name":"mine"}\n')
    with pytest.raises(RayboError, match="it contains something else; give another file"):
        exporter("optuna", str(path))(study)
    assert "mine" in path.read_text()


def test_a_torn_foreign_line_is_not_overwritten(study, tmp_path):
    path = tmp_path / "s.log"
    for before in (b"notes", b"{", b'{"op_code":0,"study_name":"mine"'):
        path.write_bytes(before)
        if before == b"{":  # as far as that goes, it is ours
            exporter("optuna", str(path))(study)
            assert len(loaded(path).trials) == len(study.trials)
            continue
        with pytest.raises(RayboError, match="it contains something else; give another file"):
            exporter("optuna", str(path))(study)
        assert path.read_bytes() == before


@pytest.mark.parametrize("form", [*FORMATS, "html"])
def test_an_export_never_replaces_a_journal(form, study, tmp_path):
    path = tmp_path / "study.html"  # a journal may be called what it likes
    with contextlib.closing(Journal(path, study.description)) as journal:
        journal._insert(study.events)
    (tmp_path / "link").symlink_to(path)
    before = path.read_bytes()
    refusal = "it is the journal of a study, which would be lost; give another file"
    if form == "html":
        from raybo.reporting import draw

        with pytest.raises(RayboError, match=refusal):
            draw(study, path)
    else:
        for where in (path, tmp_path / "link"):
            with pytest.raises(RayboError, match=refusal):
                exporter(form, f"sqlite:///{where}" if form == "mlflow" else str(where))
        with pytest.raises(MethodError, match=r"new.db: it is the study's own journal; give another place"):
            Recorder(tmp_path / "new.db", form, f"{'sqlite:///' if form == 'mlflow' else ''}{tmp_path / 'new.db'}")
    assert path.read_bytes() == before


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_journal_written_later_is_not_replaced(form, study, tmp_path):
    path = tmp_path / "s.db"
    export = exporter(form, str(path))
    export(study)
    path.unlink()
    with contextlib.closing(Journal(path, study.description)) as journal:
        journal._insert(study.events)
    with pytest.raises(RayboError, match="it is the journal of a study"):
        export(study)
    assert len(raybo.load(path).trials) == len(study.trials)


def test_lines_of_other_writers_are_kept(study, tmp_path):
    optuna = pytest.importorskip("optuna")
    path = tmp_path / "s.log"
    exporter("optuna", str(path))(part(study, 20))
    theirs = loaded(path)  # stays open, as a dashboard does, and reads on
    theirs._storage.set_study_system_attr(theirs._study_id, "dashboard:note_ver:0", "a note")
    theirs.set_user_attr("mine", 1)
    theirs.add_trial(
        optuna.create_trial(
            params={"lr": 0.5}, distributions={"lr": optuna.distributions.FloatDistribution(0, 1)}, value=3.0
        )
    )
    running = next(trial for trial in theirs.trials if trial.state.name == "RUNNING")
    theirs._storage.set_trial_user_attr(running._trial_id, "seen", "by me")
    before, begun = path.read_bytes(), len(part(study, 20).trials)
    again = exporter("optuna", str(path))
    for events in range(20, len(study.events) + 1, 5):
        again(part(study, events))
        assert path.read_bytes().startswith(before)
        before = path.read_bytes()
    again(study)
    for shown in (theirs, loaded(path)):
        trials = shown.get_trials()
        assert trials[begun].value == 3.0
        ours = [*trials[:begun], *trials[begun + 1 :]]
        assert [trial.value for trial in ours] == [trial.value for trial in study.trials]
        assert [trial.state.name for trial in ours] == [STATES[trial.state] for trial in study.trials]
        assert trials[running.number].user_attrs["seen"] == "by me"
        assert (shown.user_attrs["mine"], shown.user_attrs["method"]) == (1, "sobol")
        assert shown._storage.get_study_system_attrs(shown._study_id)["dashboard:note_ver:0"] == "a note"
    whole = path.read_bytes()
    exporter("optuna", str(path))(study)
    again(study)
    assert path.read_bytes() == whole
    assert [name.name for name in tmp_path.iterdir()] == ["s.log"]  # the lock is gone


def test_only_what_is_new_is_read_again(study, tmp_path, monkeypatch):
    path = tmp_path / "s.log"
    export = exporter("optuna", str(path))
    export(part(study, 30))
    explained = []
    monkeypatch.setattr(Study, "explain", lambda self, trial: explained.append(trial.number) or "why")
    export(part(study, 33))
    assert len(explained) <= 3
    path.unlink()  # another file by now: written anew
    export(study)
    assert len(loaded(path).trials) == len(study.trials)


def test_another_study_of_the_same_name_is_refused(study, tmp_path):
    path = tmp_path / "s.log"
    exporter("optuna", str(path))(study)
    before = path.read_bytes()
    with pytest.raises(RayboError, match="it contains another study of this name; give another file"):
        exporter("optuna", str(path))(run("random", 20, seed=5))
    assert path.read_bytes() == before


def test_a_stale_lock_is_broken(study, tmp_path, monkeypatch):
    from raybo.integrations import optuna_journal

    monkeypatch.setattr(optuna_journal, "LOCK_SECONDS", 0.0)
    path = tmp_path / "s.log"
    path.with_name("s.log.lock").symlink_to(path)
    exporter("optuna", str(path))(study)
    assert len(loaded(path).trials) == len(study.trials)


def test_optuna_is_not_imported_to_write(study, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "optuna", None)
    path = tmp_path / "s.log"
    exporter("optuna", str(path))(study)
    assert path.read_text().count("\n") > len(study.trials)


DRAWN = "contour edf optimization_history parallel_coordinate param_importances rank slice timeline".split()


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("kind", DRAWN)
def test_optuna_draws_what_is_exported(kind, study, tmp_path):
    import optuna

    exporter("optuna", str(tmp_path / "s.log"))(study)
    theirs = loaded(tmp_path / "s.log")
    drawn = getattr(optuna.visualization, f"plot_{kind}")(theirs)
    assert drawn.data
    if kind == "optimization_history":
        finished = [trial.value for trial in study.trials if trial.state is State.FINISHED]
        assert list(drawn.data[0].y) == finished
    if kind == "param_importances":
        assert set(drawn.data[0].y) <= {name for trial in theirs.trials for name in trial.params}


@pytest.mark.slow
def test_optuna_dashboard_shows_a_growing_study(study, tmp_path):
    pytest.importorskip("optuna_dashboard")
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    import optuna
    from optuna_dashboard import wsgi

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    path = tmp_path / "s.log"
    export = exporter("optuna", str(path))
    export(part(study, 10))
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    with make_server("127.0.0.1", 0, wsgi(storage), handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()

        def get(what):
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/api/{what}", timeout=60) as reply:
                return json.load(reply)

        try:
            (summary,) = get("studies")["study_summaries"]
            assert summary["study_name"] == "train_<net>"
            assert len(get("studies/0?after=0")["trials"]) == len(part(study, 10).trials)
            note = json.dumps({"body": "look here", "version": 1}).encode()
            put = urllib.request.Request(
                f"http://127.0.0.1:{server.server_port}/api/studies/0/note",
                data=note,
                headers={"Content-Type": "application/json"},
                method="PUT",
            )
            urllib.request.urlopen(put, timeout=60).close()
            export(study)
            assert get("studies/0?after=0")["note"]["body"] == "look here"
            for _ in range(360):  # it looks at the file again after ten seconds
                trials = get("studies/0?after=0")["trials"]
                if len(trials) == 20:
                    break
                time.sleep(0.5)
            shown = [trial["state"] for trial in trials]
            assert shown.count("Complete") == study.count(State.FINISHED)
            assert shown.count("Fail") == study.count(State.FAILED)
        finally:
            server.shutdown()
            thread.join()


# ---- TensorBoard, MLflow


def test_tensorboard_reads_values_and_configurations(study, tmp_path):
    pytest.importorskip("tensorboardX")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    export = exporter("tensorboard", str(tmp_path))
    export(part(study, 20))
    export(study)
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    done = {trial.number: trial.value for trial in study.trials if trial.value is not None}
    assert {e.step: pytest.approx(e.value, rel=1e-6) for e in events.Scalars("accuracy")} == done
    assert events.Scalars("best")[-1].value == pytest.approx(study.best.value, rel=1e-6)
    ended = [trial.number for trial in study.trials if trial.state is not State.PENDING]
    assert sorted(e.step for e in events.Scalars("failed")) == ended
    assert len(list(tmp_path.glob("trial-*"))) == len(ended)
    number, value = next(iter(done.items()))
    one = accumulator.EventAccumulator(str(tmp_path / f"trial-{number}")).Reload()
    assert one.Scalars("hparam/accuracy")[0].value == pytest.approx(value, rel=1e-6)


def test_tensorboard_best_of_a_minimised_metric(tmp_path):
    pytest.importorskip("tensorboardX")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    study = run("random", 12, mode="min")
    exporter("tensorboard", str(tmp_path))(study)
    best = accumulator.EventAccumulator(str(tmp_path)).Reload().Scalars("best")
    assert best[-1].value == pytest.approx(min(t.value for t in study.trials if t.value is not None), rel=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of mlflow's own, about the database library that it uses
def test_mlflow_has_one_run_per_trial(study, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    uri = f"sqlite:///{tmp_path}/m.db"
    first = exporter("mlflow", uri)
    first(part(study, 15))
    first(study)
    exporter("mlflow", uri)(study)
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("train_<net>")
    runs = client.search_runs([experiment.experiment_id], max_results=1000)
    (parent,) = [r for r in runs if "raybo.study.study" in r.data.tags]
    children = {int(r.data.tags["raybo.trial"]): r for r in runs if "raybo.trial" in r.data.tags}
    assert len(runs) == 21
    assert parent.data.metrics["best_accuracy"] == study.best.value
    status = {State.FINISHED: "FINISHED", State.FAILED: "FAILED", State.PENDING: "RUNNING"}
    for trial in study.trials:
        child = children[trial.number]
        assert child.info.status == status[trial.state]
        assert child.data.metrics.get("accuracy") == trial.value
        assert child.data.params["lr"] == str(trial.config["lr"])
        assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
    last = study.events[-1]
    (pending,) = [trial.number for trial in study.trials if trial.state is State.PENDING]
    stopped = Stopped(pending, reason="Ctrl-C", number=last.number + 1, at=last.at)
    exporter("mlflow", uri)(Study(study.description, [*study.events, stopped]))
    child = client.get_run(children[pending].info.run_id)
    assert (child.info.status, child.data.tags["raybo.reason"]) == ("KILLED", "Ctrl-C")


def told_study(events, *, space=None, name="s.db", metric="loss", begun=0, settings=None):
    """A study of these events about trials, a second apart from each other, that began after so many."""
    space = Space({"x": Float(0, 1)} if space is None else space)
    searcher = Searcher(space, "random", "min", seed=0)
    written = []
    for kind, trial, data in events:
        event = searcher.propose(searcher.history) if kind is Kind.ASKED else KINDS[kind].of(trial, data)
        at = datetime.fromtimestamp(1_800_000_000 + begun + len(written), timezone.utc).isoformat()
        written.append(replace(searcher.apply(event), at=at))
    description = Description("job", Goals((metric,), ("min",)), space, "random", 0, settings=settings or {})
    return Study(description, written, Path("/a", name))


FAILED_AND_RUN_AGAIN = [
    (Kind.ASKED, 0, {}),
    (Kind.FAILED, 0, {"reason": "boom", "traceback": "Traceback ..."}),
    (Kind.RETRIED, 0, {"reason": "it had failed, and is retried", "attempt": 2}),
    (Kind.TOLD, 0, {"value": 7.0, "attempt": 2}),
]
ONE_RESULT = [(Kind.ASKED, 0, {}), (Kind.TOLD, 0, {"value": 7.0, "seconds": 2.0})]


@pytest.fixture(scope="module")
def runs_in_mlflow(tmp_path_factory):
    """Exports studies, each by an exporter of its own, and returns parents and children of an experiment."""
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")

    def exported(directory, *studies):
        uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'm.db'}" if directory is None else directory
        for study in studies:
            exporter("mlflow", uri)(study)
        client = mlflow.MlflowClient(tracking_uri=uri)
        runs = client.search_runs([client.get_experiment_by_name("job").experiment_id], max_results=1000)
        parents = [run for run in runs if "raybo.study.study" in run.data.tags]
        return parents, [run for run in runs if "raybo.trial" in run.data.tags], uri

    return exported


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_has_the_time_when_a_study_ended(runs_in_mlflow):
    study = told_study([(Kind.ASKED, 0, {}), (Kind.TOLD, 0, {"value": 7.0}), (Kind.ENDED, None, {"reason": "done"})])
    (parent,), _, _ = runs_in_mlflow(None, study)
    assert (parent.info.status, parent.info.end_time) == ("FINISHED", 1_800_000_002_000)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_has_the_end_of_the_last_attempt(runs_in_mlflow):
    parts = [told_study(FAILED_AND_RUN_AGAIN[:n]) for n in (2, 3, 4)]
    uri = None
    for study, status in zip(parts, ("FAILED", "RUNNING", "FINISHED"), strict=True):
        _, (child,), uri = runs_in_mlflow(uri, study)
        assert child.info.status == status
    assert child.data.metrics["loss"] == 7.0
    assert not child.data.tags["raybo.reason"]
    _, (again,), _ = runs_in_mlflow(uri, parts[-1])
    assert (again.info.status, again.info.end_time) == ("FINISHED", child.info.end_time)
    _, (at_once,), _ = runs_in_mlflow(None, parts[-1])
    assert (at_once.info.status, at_once.data.metrics["loss"]) == ("FINISHED", 7.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_has_the_curve_of_every_attempt(runs_in_mlflow):
    """Also if another process exports again only when the last attempt has ended, with the value of its last report."""
    import mlflow

    curve = [
        (Kind.ASKED, 0, {}),
        *((Kind.REPORTED, 0, {"step": step, "value": 6.0 - step, "attempt": 1}) for step in (1, 2)),
        (Kind.FAILED, 0, {"reason": "boom"}),
        (Kind.RETRIED, 0, {"reason": "it had failed, and is retried", "attempt": 2}),
        *((Kind.REPORTED, 0, {"step": step, "value": 6.0 - step, "attempt": 2}) for step in (3, 4, 5)),
        (Kind.TOLD, 0, {"value": 1.0, "attempt": 2}),
    ]
    for seen in ((4, 9), (4, 6, 9), (9,)):
        uri = None
        for n in seen:
            _, (child,), uri = runs_in_mlflow(uri, told_study(curve[:n]))
        points = mlflow.MlflowClient(tracking_uri=uri).get_metric_history(child.info.run_id, "loss")
        assert sorted((each.step, each.value) for each in points) == [(step, 6.0 - step) for step in range(1, 6)]
        assert child.data.metrics["loss"] == 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_studies_of_one_name_are_two_in_mlflow(runs_in_mlflow):
    first, second = told_study(ONE_RESULT), told_study([*ONE_RESULT[:1], (Kind.TOLD, 0, {"value": 9.0})], begun=100)
    parents, children, _ = runs_in_mlflow(None, first, second, first, second)
    assert (len(parents), len(children)) == (2, 2)
    assert sorted(child.data.metrics["loss"] for child in children) == [7.0, 9.0]
    assert {child.data.tags["mlflow.parentRunId"] for child in children} == {parent.info.run_id for parent in parents}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_takes_every_name(runs_in_mlflow):
    names = ["../x", "/x", "a//b", ".", "a" * 300, "it's", "a@1", "a#1", "it`s"]
    space = {name: Float(i, i + 1) for i, name in enumerate(names)}
    metrics = dict.fromkeys([*names, ""], 1.0)
    asked, (kind, trial, data) = ONE_RESULT
    study = told_study(
        [asked, (kind, trial, {**data, "metrics": metrics})],
        space=space,
        name='it\'s "mine".db',
        settings={"seed": 3, "b@": 1, "b#": 2},
    )
    (parent,), (child,), _ = runs_in_mlflow(None, study, study)
    values = study.trials[0].config.values()
    assert sorted(child.data.params.values()) == sorted(map(str, values))
    assert sorted(parent.data.params.values()) == sorted(["random", "0", "3", "1", "2"])
    assert child.data.metrics["loss"] == 7.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_metric_names_of_users_win(runs_in_mlflow):
    for metric in ("seconds", "suggest_seconds"):
        _, (child,), _ = runs_in_mlflow(None, told_study(ONE_RESULT, metric=metric))
        assert child.data.metrics[metric] == 7.0


@pytest.mark.parametrize("metric", ["seconds", "suggest_seconds", "failed"])
def test_tensorboard_metric_names_of_users_win(metric, tmp_path):
    pytest.importorskip("tensorboardX")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    exporter("tensorboard", str(tmp_path))(told_study(ONE_RESULT, metric=metric))
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert [each.value for each in events.Scalars(metric)] == [7.0]


def test_whole_numbers_beyond_64_bits_are_exported(tmp_path):
    pytest.importorskip("tensorboardX")
    study = told_study(ONE_RESULT, space={"n": Integer(2**70, 2**72)})
    n = study.trials[0].config["n"]
    for form in ("csv", "json", "optuna", "tensorboard"):
        exporter(form, str(tmp_path / form))(study)
    assert str(n) in (tmp_path / "csv").read_text()
    assert json.loads((tmp_path / "json").read_text())["trials"][0]["config"] == {"n": n}
    assert study.to_dataframe()["n"].tolist() == [n]


# ---- facts of the whole study


RULE = "x * y <= 0.6"


@pytest.fixture(scope="module")
def ended_early():
    """A study with a rule that has reached its target, and the same when it is continued after all."""
    space = Space({"x": Float(0, 1), "y": Float(0, 1)}, where=[RULE])
    description = Description("job", Goals(("loss",), ("min",)), space, "random", 0)
    searcher = Searcher(space, "random", "min", seed=0)

    def trials(count):
        events = []
        for _ in range(count):
            asked = searcher.apply(searcher.propose(searcher.history))
            config = searcher.trials[asked.trial].config
            value = (config["x"] - 0.3) ** 2 + config["y"] + 0.1 * math.sin(40 * config["x"])
            events += [asked, searcher.apply(Told(asked.trial, value=value, seconds=1.0))]
        return events

    events = [searcher.apply(Planned(trials=30)), *trials(12)]
    events.append(searcher.apply(Ended(reason="trial 7 has reached the target: loss 0.1")))
    longer = [*events, *trials(1)]
    return Study(description, events), Study(description, longer), Study(description, [*longer, events[-1]])


def test_csv_and_dataframes_have_expectations(ended_early, tmp_path):
    study = ended_early[0]
    exporter("csv", str(tmp_path / "s.csv"))(study)
    with open(tmp_path / "s.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    frame = study.to_dataframe()
    for trial in (study.best, study.best_expected):
        for name, value in zip(("expected", "expected_sd"), study.expected(trial), strict=True):
            assert float(rows[trial.number][name]) == frame[name][trial.number]
            assert frame[name][trial.number] == pytest.approx(value, rel=1e-9)
    assert frame["expected"].idxmin() == study.best_expected.number
    few = Study(study.description, study.events[:5]).to_dataframe()
    assert few[["expected", "expected_sd"]].isna().all(axis=None)
    over_contexts = run("random", 8, context={"load": raybo.Float(0, 1)})
    assert "expected" not in over_contexts.to_dataframe()


def test_json_has_the_end_rules_and_expectations(ended_early, tmp_path):
    study, longer, _ = ended_early
    exporter("json", str(tmp_path / "s.json"))(study)
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["ended"] == "trial 7 has reached the target: loss 0.1"
    assert content["study"]["space"]["where"] == [RULE]
    assert (content["best"], content["best_expected"]) == (study.best.number, study.best_expected.number)
    for trial in content["trials"]:
        assert (trial["expected"], trial["expected_sd"]) == study.expectations[trial["number"]]
    exporter("json", str(tmp_path / "s.json"))(longer)
    assert json.loads((tmp_path / "s.json").read_text())["ended"] == ""


def test_optuna_has_the_current_end_rules_and_expectations(ended_early, tmp_path):
    export = exporter("optuna", str(tmp_path / "s.log"))
    for study in ended_early:  # ended, going on, ended for the same reason
        export(study)
        attributes = loaded(tmp_path / "s.log").user_attrs
        assert attributes["ended"] == study.ended
        assert attributes["where"] == [RULE]
        for name, trial in (("best", study.best), ("best_expected", study.best_expected)):
            expected = dict(zip(("expected", "expected_sd"), study.expected(trial), strict=True))
            assert attributes[name] == {"trial": trial.number, "value": trial.value, **expected}
    before = (tmp_path / "s.log").read_bytes()
    exporter("optuna", str(tmp_path / "s.log"))(ended_early[-1])
    assert (tmp_path / "s.log").read_bytes() == before


def test_tensorboard_has_the_end_rules_and_expectations(ended_early, tmp_path):
    pytest.importorskip("tensorboardX")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    study, longer, _ = ended_early
    for running, place in ((study, tmp_path / "a"), (longer, tmp_path / "b")):
        export, tags = exporter("tensorboard", str(place)), {"tensors": []}
        for _ in range(200):  # its writer is a thread, which may not have had its turn
            export(running)
            events = accumulator.EventAccumulator(str(place)).Reload()
            tags = events.Tags()
            if "study/where/text_summary" in tags["tensors"]:
                break
            time.sleep(0.02)
        texts = {name: events.Tensors(name)[-1].tensor_proto.string_val[0].decode() for name in tags["tensors"]}
        assert texts.pop("study/where/text_summary") == RULE
        assert texts == ({"study/ended/text_summary": running.ended} if running.ended else {})
        assert ("expected" in tags["scalars"]) == bool(running.ended)
    events = accumulator.EventAccumulator(str(tmp_path / "a")).Reload()
    for one in events.Scalars("expected"):
        assert one.value == pytest.approx(study.expectations[one.step][0], rel=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of mlflow's own, about the database library that it uses
def test_mlflow_has_the_end_rules_and_expectations(ended_early, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    uri = f"sqlite:///{tmp_path}/m.db"
    for study in ended_early:
        exporter("mlflow", uri)(study)
        client = mlflow.MlflowClient(tracking_uri=uri)
        experiment = client.get_experiment_by_name("job").experiment_id
        (parent,) = client.search_runs([experiment], "tags.`raybo.study.study` != ''")
        assert parent.info.status == ("FINISHED" if study.ended else "RUNNING")
        assert parent.data.tags["raybo.ended"] == study.ended
        assert parent.data.tags["raybo.where"] == RULE
        assert parent.data.tags["raybo.best_expected"] == str(study.best_expected.number)
        for name, value in zip(("expected", "expected_sd"), study.expected(study.best), strict=True):
            assert parent.data.metrics[f"best_{name}"] == value


@pytest.mark.parametrize(("form", "package"), [("tensorboard", "tensorboardX"), ("mlflow", "mlflow")])
def test_a_missing_package_is_named_with_the_remedy(form, package, monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=re.escape(install_command(form))):
        exporter(form, "x")


def test_a_recorder_writes_only_after_new_events(study, tmp_path, monkeypatch):
    path = tmp_path / "job.db"
    journal = Journal(path, study.description)
    journal.append(study.events[:10])
    recorder = Recorder(path, "csv", str(tmp_path / "s.csv"))
    written = []
    monkeypatch.setattr(recorder, "_export", lambda study: written.append(len(study.events)))
    recorder(SimpleNamespace(last_event=10))
    recorder(SimpleNamespace(last_event=10))
    journal.append(study.events[10:])
    recorder(SimpleNamespace(last_event=len(study.events)))
    journal.close()
    assert written == [10, len(study.events)]


def test_the_help_names_every_format():
    from raybo import cli

    (to,) = [p for p in cli.cli.get_command(None, "export").params if p.name == "to"]
    assert all(form in to.help for form in FORMATS)
