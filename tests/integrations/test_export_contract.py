"""Every export passes one contract: its program reads studies back that are hard to export.

A reader returns what a form holds of each trial, in raybo's words; None is what the form lacks:

    csv          no curves                        tensorboard  no states; a trial that has not ended only by its curve
    wandb        everything but the attempt
    reports      curves alone                     mlflow       everything, parameters as text
    json         everything                       optuna       everything, but an end is for good
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import struct
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raybo
from raybo.common.errors import RayboError
from raybo.integrations.export import FORMATS, exporter
from raybo.record.events import Kind
from raybo.record.states import OPEN, State
from raybo.space import choice_names
from raybo.study.columns import from_cell
from raybo.study.study import Study
from tests.integrations.hostile_studies import LONG, METRICS, REASON, STUDIES, Written


@dataclass
class Exported:
    """A trial as a form holds it.

    Attributes:
        state: as raybo calls it.
        params: what is open in its configuration, by the form's names, as comparable texts.
        values: of the metrics and what is constrained, as it ended; empty if it has none.
        curve: value by step.
        numbers: every number that it ended with, however it is called.
        facts: reason, seconds, attempt, context, violations.
    """

    state: str | None = None
    params: dict[str, str] | None = None
    values: list[float] | None = None
    curve: list[tuple[int, float]] | None = None
    numbers: Counter[float] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


# ---- where a form goes, and what is read there


def place(form, directory, store):
    """A destination in the directory."""
    if form == "wandb":
        os.environ["WANDB_DIR"] = str(directory)
        return "project"
    if form != "mlflow":
        return str(directory / form)
    shutil.copyfile(store, directory / "mlflow.db")
    return f"sqlite:///{directory / 'mlflow.db'}"


def read(form, where, study):
    """What a form holds, by trial."""
    return READERS[form](where, study)


def strictly(text):
    """JSON as the standard has it, and not as Python also takes it."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def rows(where):
    with open(where, newline="", encoding="utf-8") as file:
        first, *others = csv.reader(file)
    assert len(set(first)) == len(first)
    assert {len(row) for row in others} <= {len(first)}
    return [dict(zip(map(from_cell, first), map(from_cell, row), strict=True)) for row in others]


def read_csv(where, study):
    exported = {}
    for row in rows(where):
        params = {name: row.get(f"config.{name}", row[name]) for name in study.space.names}
        needed = study.goals.needed
        values = [row["value"], *(row[name] for name in needed[1:])]
        facts = {name: row[name] for name in ("reason",)}
        facts["seconds"] = float(row["seconds"]) if row["seconds"] else None
        facts["attempt"] = int(row["attempt"])
        facts["violations"] = json.loads(row.get("violations") or "{}")
        numbers = Counter(as_number(cell) for cell in row.values() if as_number(cell) is not None)
        exported[int(row["number"])] = Exported(
            row["state"],
            {name: comparable(text) for name, text in params.items() if text},
            [float(value) for value in values if value],
            numbers=numbers,
            facts=facts,
        )
    return exported


def as_number(text):
    try:
        return float(text)
    except ValueError:
        return None


def read_reports(where, study):
    exported = {trial.number: Exported(curve=[]) for trial in study.trials}
    for row in rows(where):
        exported[int(row["trial"])].curve.append((int(row["step"]), float(row["value"])))
    return exported


def read_json(where, study):
    with open(where, encoding="utf-8") as file:
        content = strictly(file.read())
    assert len(content["trials"]) == len(study.trials)
    exported = {}
    for trial in content["trials"]:
        values = trial.get("values") or ({} if trial["value"] is None else {study.description.metric: trial["value"]})
        metrics = trial["details"].get("metrics") or {}
        facts = {name: trial[name] for name in ("reason", "seconds", "attempt", "context")}
        facts["violations"] = trial.get("violations", {})
        exported[trial["number"]] = Exported(
            trial["state"],
            {name: comparable(value) for name, value in flat(study, trial["config"])},
            list(values.values()),
            [tuple(each) for each in trial.get("reports", [])],
            counted([*({**metrics, **values}).values()]),
            facts,
        )
    return exported


def flat(study, config):
    """The open parameters of a configuration in JSON."""
    trial = next(t for t in study.trials if strictly(json.dumps(as_json(t.config))) == config)
    return expected_params(study, trial).items()  # it is the same configuration, as the line above has asked


def as_json(value):
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def read_optuna(where, study):
    optuna = pytest.importorskip("optuna", reason="optuna is not installed")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with open(where, encoding="utf-8") as file:
        for line in file:
            for distribution in strictly(line).get("distributions", {}).values():
                strictly(distribution)
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(where))
    (name,) = optuna.get_all_study_names(storage)
    theirs = optuna.load_study(study_name=name, storage=storage)
    assert [d.name == "MAXIMIZE" for d in theirs.directions] == [goal.larger_is_better for goal in study.goals.each]
    exported = {}
    for trial in theirs.trials:
        own, curve = trial.user_attrs, sorted(trial.intermediate_values.items())
        states = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": own.get("state", "failed")}
        waits = bool(curve) and own.get("paused_after") == curve[-1][0]
        values = list(trial.values or []) if trial.state.name == "COMPLETE" else []
        limits = {key.removeprefix("constraints:"): v for key, v in trial.system_attrs.items() if "constraints:" in key}
        values += [own["metrics"][name] for name in study.goals.needed[study.goals.k :] if values]
        others = [v for name, v in own.get("metrics", {}).items() if name not in study.goals.needed]
        facts = {"reason": own.get("reason", ""), "seconds": own.get("seconds"), "attempt": own.get("attempt", 1)}
        facts |= {"context": own.get("context"), "violations": {n: v for n, v in limits.items() if v > 0}}
        exported[trial.number] = Exported(
            states.get(trial.state.name, "paused" if waits else "pending"),
            {name: comparable(value) for name, value in trial.params.items()},
            values,
            curve,
            counted([*values, *others]),
            facts,
        )
    return exported


def read_tensorboard(where, study):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed"
    )
    plugin = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2", reason="tensorboard is not installed")

    def run(directory):
        accumulated = accumulator.EventAccumulator(str(directory), {accumulator.SCALARS: 0}).Reload()
        scalars = {tag: [(e.step, e.value) for e in accumulated.Scalars(tag)] for tag in accumulated.Tags()["scalars"]}
        for tag, points in scalars.items():
            assert len({step for step, _ in points}) == len(points), f"{tag} twice at a step"
        return accumulated, scalars

    _, main = run(where)
    exported = {}
    metric = "".join(c if c.isalnum() or c in "-_./" else "_" for c in study.description.metric)
    for trial in study.trials:
        exported[trial.number] = one = Exported(params={}, curve=[], values=[])
        one.facts["seconds"] = dict(main.get("seconds", [])).get(trial.number)
        directory = Path(where, f"trial-{trial.number}")
        if not directory.exists():
            assert trial.state in OPEN
            one.params = None
            continue
        accumulated, scalars = run(directory)
        one.curve = scalars.get(metric, [])
        one.values = [value for step, value in main.get(metric, []) if step == trial.number]
        one.numbers = Counter(points[-1][1] for tag, points in scalars.items() if tag.startswith("hparam/"))
        try:
            content = accumulated.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        except KeyError:
            assert trial.state in OPEN
            one.params = None
            continue
        session = plugin.HParamsPluginData.FromString(content).session_start_info
        params = {n: comparable(getattr(v, v.WhichOneof("kind"))) for n, v in session.hparams.items()}
        declared = set() if study.context is None else set(study.context.names)
        one.params = {name: value for name, value in params.items() if name not in declared}
    return exported


def read_mlflow(where, study):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    client = mlflow.MlflowClient(tracking_uri=where)
    experiment = client.get_experiment_by_name(study.description.objective)
    runs = client.search_runs([experiment.experiment_id], max_results=1_000)
    parents = {run.info.start_time: run for run in runs if "raybo.study.study" in run.data.tags}
    began = min(parents, key=lambda at: abs(at - 1_000 * when(study)))
    return {
        int(run.data.tags["raybo.trial"]): _run(client, run, study)
        for run in runs
        if run.data.tags.get("mlflow.parentRunId") == parents[began].info.run_id
    }


def when(study):
    return datetime.fromisoformat(study.events[0].at).timestamp()


def records(path):
    """The records of a W&B file: a log of parts in blocks of 32 KiB."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, part = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if (left := 32_768 - at % 32_768) < 7:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        part += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = Record()
            record.ParseFromString(part)
            part = b""
            yield record


def read_wandb(where, study):
    """Runs of the directory, each in the parts in which it was written, as `wandb sync` puts them together."""
    runs = {}
    for path in sorted(
        Path(os.environ["WANDB_DIR"]).glob("wandb/offline-run-*/*.wandb"), key=lambda p: p.stat().st_mtime
    ):
        for record in records(path):
            if record.HasField("run"):
                run = runs.setdefault(
                    record.run.run_id, {"name": record.run.display_name, "history": {}, "summary": {}}
                )
                run["group"] = record.run.run_group
                run["started"] = json.loads(
                    next((u.value_json for u in record.run.config.update if u.key == "begun"), '""')
                )
                run["config"] = {u.key: json.loads(u.value_json) for u in record.run.config.update if u.key != "_wandb"}
            elif record.HasField("history"):
                row = {i.key or i.nested_key[0]: json.loads(i.value_json) for i in record.history.item}
                assert row["_step"] not in run["history"], "a step twice"
                run["history"][row["_step"]] = row
            elif record.HasField("summary"):
                for item in record.summary.update:
                    run["summary"][item.key or item.nested_key[0]] = json.loads(item.value_json)
    begun = {run["group"]: run["started"] for run in runs.values() if run["name"] == study.path.stem}
    if not begun:
        return {}
    group = min(begun, key=lambda each: begun[each] != study.events[0].at)
    exported = {}
    metric = "".join(c if c.isalnum() or c in "-@# :/_" else "_" for c in study.description.metric)
    for run in runs.values():
        if not run["name"].startswith("trial-") or run["group"] != group:
            continue
        summary, number = run["summary"], run["summary"]["trial"]
        curve = [(step, row[metric]) for step, row in sorted(run["history"].items()) if metric in row]
        facts = {"reason": summary.get("reason", ""), "seconds": summary.get("seconds")}
        facts |= {"context": summary.get("context"), "violations": summary.get("violations", {})}
        own = ("_", "trial", "suggest_seconds")
        ended = Counter(
            v
            for name, v in summary.items()
            if isinstance(v, (int, float)) and not isinstance(v, bool) and not name.startswith(own)
        )
        values = [summary[metric]] if summary["state"] == "finished" else []
        params = {name: comparable(value) for name, value in run["config"].items()}
        exported[number] = Exported(summary["state"], params, values, curve, ended, facts)
    return exported


MLFLOW = {"finished": "FINISHED", "failed": "FAILED", "lost": "FAILED", "stopped": "KILLED", "pruned": "KILLED"}


def _run(client, run, study):
    tags, metric = run.data.tags, "".join(c if c.isalnum() or c in "-_. :/" else "_" for c in study.description.metric)
    state = tags["raybo.state"]
    assert run.info.status == MLFLOW.get(state, "RUNNING")
    points = [(point.step, point.value) for point in client.get_metric_history(run.info.run_id, metric)]
    number = int(tags["raybo.trial"])
    curve = points if study.trials[number].step else []
    assert len(set(points)) == len(points)
    metrics = run.data.metrics
    facts = {"reason": tags.get("raybo.reason", ""), "seconds": metrics.get("seconds")}
    facts |= {"violations": json.loads(tags.get("raybo.violations") or "{}")}
    facts |= {"context": json.loads(tags.get("raybo.context") or "null")}
    values = [metrics[metric]] if state == "finished" else []
    own = ("seconds", "suggest_seconds")
    ended = Counter(v for name, v in metrics.items() if name not in own) if state in MLFLOW else None
    return Exported(state, {n: comparable(v) for n, v in run.data.params.items()}, values, curve, ended, facts)


READERS = {
    "csv": read_csv,
    "reports": read_reports,
    "json": read_json,
    "optuna": read_optuna,
    "tensorboard": read_tensorboard,
    "mlflow": read_mlflow,
    "wandb": read_wandb,
}
assert set(READERS) == set(FORMATS)


def comparable(value):
    """A value as a text that is the same however a form holds it: 1, 1.0 and "1" are."""
    text = str(value)
    try:
        return repr(float(text)) if abs(float(text)) <= 2**53 else text
    except ValueError:
        return text[:500]  # MLflow holds no more


def counted(values):
    """Return how often each number is among the values."""
    return Counter(float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool))


def expected_params(study, trial):
    """Return a configuration as a form must hold it: what is open, choices that hold parameters by their names."""
    kinds = dict(zip(study.space.names, study.space.parameters.values(), strict=True))
    exported = {}
    for name, value in study.space.open_values(trial.config):
        kind = kinds[name]
        if isinstance(kind, raybo.Categorical):
            value = choice_names(kind.choices)[kind.position(value, name)]
        exported[name] = comparable(value)
    return exported


def as_held(form, value):
    """A number as the form can hold it."""
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if form == "tensorboard" else float(value)


# ---- the studies, and every form of them


OF_MLFLOW = (pytest.mark.slow, pytest.mark.filterwarnings("ignore"))  # about the database library that it uses


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """An empty store of MLflow's, whose making takes longer than all that is done with it."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    mlflow.MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture(scope="module")
def study_of(tmp_path_factory):
    made: dict[str, Study] = {}

    def study(name):
        if name not in made:
            made[name] = STUDIES[name](tmp_path_factory.mktemp(name) / "job.db")
        return made[name]

    return study


MARKS = {"mlflow": OF_MLFLOW, "wandb": OF_MLFLOW}  # W&B starts a process for each


@pytest.fixture(params=[pytest.param(form, marks=MARKS.get(form, ())) for form in FORMATS])
def form(request, monkeypatch):
    """Each form, where what reads it is there."""
    if request.param == "tensorboard":
        pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    if request.param == "wandb":
        pytest.importorskip("wandb", reason="wandb is not installed")
        monkeypatch.setenv("WANDB_MODE", "offline")
        monkeypatch.setenv("WANDB_DIR", "")
    if request.param == "mlflow":
        request.getfixturevalue("store")
    return request.param


@pytest.fixture
def destination(form, tmp_path, request):
    return place(form, tmp_path, request.getfixturevalue("store") if form == "mlflow" else None)


@pytest.fixture(params=list(STUDIES))
def study(request, study_of):
    return study_of(request.param)


@pytest.fixture
def exported(form, destination, study):
    """Return what a program reads of a study that was exported at once."""
    exporter(form, destination)(study)
    return read(form, destination, study)


def both(study, exported, what):
    """Return each trial with an attribute of its export, if the form has it."""
    values = [(trial, getattr(exported[trial.number], what)) for trial in study.trials]
    return [(trial, value) for trial, value in values if value is not None]


def test_every_trial_is_exported_once_and_completely(form, study, exported):
    assert sorted(exported) == [trial.number for trial in study.trials]
    for trial, state in both(study, exported, "state"):
        assert state == str(trial.state), trial
    for trial, params in both(study, exported, "params"):
        expected = expected_params(study, trial)
        if form == "csv":  # which has an empty cell for None too
            expected = {name: text for name, text in expected.items() if text != "None"}
        assert Counter(params.values()) == Counter(expected.values()), trial.number
        plain = {name: text for name, text in expected.items() if name.isidentifier() and len(name) < 200}
        assert {name: params[name] for name in plain} == plain
    for trial, curve in both(study, exported, "curve"):
        assert curve == [(step, as_held(form, value)) for step, value in trial.reports], trial.number
    for trial, values in both(study, exported, "values"):
        due = [] if trial.value is None else list(trial.values.values()) or [trial.value]
        assert values == [as_held(form, value) for value in due][: len(values) or None], trial.number
    for trial, numbers in both(study, exported, "numbers"):
        if trial.state not in OPEN:
            ended = {**(trial.details.get("metrics") or {}), **trial.values, study.description.metric: trial.value}
            due = Counter(as_held(form, number) for number in counted(ended.values()).elements())
            assert not due - numbers, trial.number


def test_facts_of_trials_are_exported(form, study, exported):
    for trial in study.trials:
        facts = exported[trial.number].facts
        if trial.state in OPEN:
            continue
        if "reason" in facts:
            assert facts["reason"] == trial.reason
        if "seconds" in facts:
            assert facts["seconds"] == (None if trial.seconds is None else as_held(form, trial.seconds))
        if "attempt" in facts:
            assert facts["attempt"] == trial.attempt
        if "context" in facts:
            assert facts["context"] == trial.context
        if "violations" in facts:
            assert facts["violations"] == dict(trial.violations)


@pytest.mark.parametrize("name", ["outcomes", "goals", "contexts"])
def test_following_a_study_equals_exporting_it_at_once(form, name, destination, tmp_path, study_of, request):
    study = study_of(name)
    at_once = tmp_path / "at-once"
    at_once.mkdir()
    whole = place(form, at_once, request.getfixturevalue("store") if form == "mlflow" else None)
    exporter(form, whole)(study)
    direct = read(form, whole, study)
    if form == "wandb":
        place(form, tmp_path, None)
    if form == "optuna":  # in which the exported end of a failed trial is for good
        for event in study.events:
            if event.kind is Kind.RETRIED and "had failed" in event.data["reason"]:
                del direct[event.trial]
    growing, export = Study(study.description, [], study.path), exporter(form, destination)
    for i, event in enumerate(study.events):
        if i % 7 == 0 or event.kind in (Kind.RETRIED, Kind.RESUMED):  # the trial is still failed or paused
            export(growing)
        growing.extend([event])
    export(growing)
    export = None  # or its runs are still in use
    for _ in range(2):
        followed = read(form, destination, study)
        assert {number: followed[number] for number in direct} == direct
        exporter(form, destination)(study)  # once more, by another process


def test_running_trials_show_their_reports(form, destination, study_of):
    study, export = study_of("outcomes"), exporter(form, destination)
    for upto in (20, 30, 45):
        part = Study(study.description, study.events[:upto], study.path)
        export(part)
        if form == "wandb":  # whose files are whole once the exporter has gone
            del export
            export = exporter(form, destination)
        for trial, curve in both(part, read(form, destination, part), "curve"):
            assert curve == [(step, as_held(form, value)) for step, value in trial.reports]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of mlflow's own, about the database library that it uses
def test_mlflow_batches_are_within_its_limits(store, tmp_path, study_of, monkeypatch):
    from mlflow import MlflowClient
    from mlflow.utils.validation import _validate_batch_log_limits

    write = MlflowClient.log_batch

    def log_batch(self, run_id, metrics=(), params=(), tags=()):
        _validate_batch_log_limits(metrics, params, tags)
        write(self, run_id, metrics, params, tags)

    monkeypatch.setattr(MlflowClient, "log_batch", log_batch)
    study, where = study_of("wide"), place("mlflow", tmp_path, store)
    exporter("mlflow", where)(study)
    assert len(read("mlflow", where, study)[0].params) == 230


def test_more_curves_grow_than_files_are_open(tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    monkeypatch.setattr("raybo.integrations.tensorboard.OPEN_RUNS", 2)
    written = Written(tmp_path / "job.db")
    trials = [written.ask() for _ in range(5)]
    for step in range(1, 5):
        for trial in trials:
            written.report(trial, {step: step / 2})
    study = written.study()
    exporter("tensorboard", str(tmp_path / "runs"))(study)
    exported = read("tensorboard", str(tmp_path / "runs"), study)
    assert [exported[trial].curve for trial in trials] == [[(1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)]] * 5


def test_two_studies_of_one_name_are_never_mixed(form, destination, tmp_path):
    parts = []
    for number, value in enumerate((1.0, 2.0)):
        (tmp_path / str(number)).mkdir()
        written = Written(tmp_path / str(number) / "job.db", {"x": raybo.Float(number, number + 0.5)}, 1_000 * number)
        for _ in range(3 - number):
            trial = written.ask()
            written.report(trial, {1: value})
            written.say(Kind.TOLD, trial, value=value, seconds=1.0)
        parts.append(written.study())
    first, second = parts
    exporter(form, destination)(first)
    before = read(form, destination, first)
    if form in ("optuna", "tensorboard"):
        with pytest.raises(RayboError, match="it contains another study"):
            exporter(form, destination)(second)
        assert read(form, destination, first) == before
        return
    exporter(form, destination)(second)
    after = read(form, destination, second)
    assert sorted(after) == [0, 1]
    assert all(trial.values in (None, [2.0]) for trial in after.values())
    if form == "mlflow":
        assert read(form, destination, first) == before


def test_names_that_collide_after_cleaning_stay_distinct(form, destination, study_of):
    """Parameters a@1 and a#1, and two of 301 characters; metrics acc@5 and acc#5, and several that are optimised."""
    if form == "reports":
        study = study_of("outcomes")
        exporter(form, destination)(study)
        assert {"acc@5", "acc#5"} <= set(rows(destination)[0])
        return
    for name in ("outcomes", "goals"):
        study = study_of(name)
        exporter(form, destination + ("" if form == "mlflow" else name))(study)
        exported = read(form, destination + ("" if form == "mlflow" else name), study)
        if name == "outcomes":
            config = study.trials[0].config
            texts = {comparable(config[name]) for name in ("a@1", "a#1", LONG + "1", LONG + "2")}
            assert texts <= set(exported[0].params.values())
            assert {METRICS["acc@5"], METRICS["acc#5"], METRICS["best"]} <= set(exported[0].numbers)
        else:
            assert {1.0, 2.0, 0.0625} <= set(exported[0].numbers)


def test_json_has_notes_and_infinite_tags(study_of, tmp_path):
    study = study_of("outcomes")
    exporter("json", str(tmp_path / "s.json"))(study)
    content = strictly((tmp_path / "s.json").read_text())
    (note,) = content["notes"]
    assert (note["trial"], note["text"]) == (0, "look at \u2028 this,\nand that")
    tags = content["trials"][-1]["tags"]
    assert (tags["mean"], tags["sd"]) == ("inf", "nan")


def test_the_studies_cover_every_outcome(study_of):
    study = study_of("outcomes")
    assert {trial.state for trial in study.trials} == set(State)
    assert {trial.reason for trial in study.trials} >= {REASON}
    assert max(trial.attempt for trial in study.trials) == 3
    assert any(trial.origin == "added" for trial in study.trials)
    assert any(event.data.get("repeated") for event in study.events)
    assert study_of("goals").trials[1].violations
    assert study_of("contexts").trials[1].context == {"load": 0.75, "day": None}


class Looked(list):
    """A list that counts how many of its items are looked at."""

    count = 0

    def __iter__(self):
        for item in super().__iter__():
            Looked.count += 1
            yield item

    def __getitem__(self, key):
        items = super().__getitem__(key)
        Looked.count += len(items) if isinstance(key, slice) else 1
        return items


@pytest.mark.parametrize("parts", [1, 20], ids=["at once", "followed"])
@pytest.mark.parametrize("form", ["optuna", "tensorboard"])
def test_exports_take_time_linear_in_the_events(form, parts, tmp_path, monkeypatch):
    """Of the forms that are appended to; CSV and JSON are written anew each time."""
    if form == "tensorboard":
        pytest.importorskip("tensorboardX", reason="tensorboardX is not installed")
    monkeypatch.setattr(Study, "expectations", {})
    written = Written(tmp_path / "job.db")
    for number in range(120):
        written.report(written.ask(), {1: 1.0, 2: 0.5})
        end = {"value": 0.5} if number % 5 else {"reason": "boom"}
        written.say(Kind.TOLD if number % 5 else Kind.FAILED, number, **end)
    whole, export, Looked.count = written.study(), exporter(form, str(tmp_path / form)), 0
    events = len(whole.events)
    for part in range(1, parts + 1):
        study = Study(whole.description, whole.events[: math.ceil(events * part / parts)], whole.path)
        study.events = Looked(study.events)
        if parts == 1:  # whether a study has ended is asked of all its trials each time
            study.trials = Looked(study.trials)
        export(study)
    assert Looked.count < 4 * events + 4 * parts
