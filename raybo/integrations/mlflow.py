"""A study in MLflow: an experiment for the objective, a parent run for the study, a child run per trial.

Runs are recognised by the tags that raybo gives them, and those of a study by when it began, so exporting again adds
only what is new. A trial that failed and runs again is still one run, which ends as the trial's last attempt did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from posixpath import normpath
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from raybo.integrations.stream import News, Stream, name_of, summary_of
from raybo.integrations.study_json import described, plain
from raybo.integrations.trial_terms import Names, parameters
from raybo.methods.findings import EXPECTED
from raybo.record.events import Event
from raybo.record.states import COUNTED, OPEN, State
from raybo.study.study import Study

STATUS = {
    State.FINISHED: "FINISHED",
    State.FAILED: "FAILED",
    State.LOST: "FAILED",
    State.STOPPED: "KILLED",
    State.PRUNED: "KILLED",  # MLflow has no state of its own for it: the tag raybo.state says so
}
METRICS = 1_000  # that MLflow takes at a time
PARAMETERS = 100  # that MLflow takes at a time
REFUSED = re.compile(r"[^\w\-. :/]")  # in the names of parameters and metrics
NAME_CHARACTERS = 250  # of the name of a parameter or metric, at most
QUOTES = re.compile("['\"`]")  # which MLflow cannot search for
PARAMETER_CHARACTERS = 500  # of a parameter's value that every MLflow store holds
TAG_CHARACTERS = 4_000  # of a tag that every MLflow store holds
STUDY_TAG_CHARACTERS = 5_000  # of a tag that describes the study
OWN = ("seconds", "suggest_seconds")  # metrics that are not a user's
STUDY, TRIAL, STATE, ENDED = "raybo.study.study", "raybo.trial", "raybo.state", "raybo.ended"  # tags of a run


def mlflow_exporter(destination: str) -> Stream:
    """Return an exporter to a tracking store: `sqlite:///mlflow.db`, a server's address, or another MLflow URI."""
    client = MlflowClient(tracking_uri=destination)
    names = Names(_allowed, OWN, NAME_CHARACTERS)
    return Stream(lambda study: _Runs(client, names, study) if study.events else None, names)


class _Runs:
    """The runs of one study in a store.

    Attributes:
        parent: the id of the study's run.
        children: the ids of the trials' runs, by trial.
        ended_at: when a trial's run in the store ended, in milliseconds, by trial.
        ending: the reason for which the study ended, as the store has it.
        curves: reports that are not written yet, by trial.
        last: the latest report of each trial.
    """

    def __init__(self, client: Any, names: Names, study: Study) -> None:
        self.client = client
        self.names = names
        self.children: dict[int, str] = {}
        self.ended_at: dict[int, int | None] = {}
        self.ending = ""
        self.curves: dict[int, list[News]] = {}
        self.last: dict[int, News] = {}
        objective = study.description.objective
        experiment = client.get_experiment_by_name(objective)
        self.experiment = experiment.experiment_id if experiment else client.create_experiment(objective)
        self.parent = self._find(study) or self._begin(study)

    def started(self, new: News) -> None:
        study, trial = new.study, new.trial
        if trial.number in self.children:
            return
        tags = {"mlflow.parentRunId": self.parent, TRIAL: str(trial.number), STATE: str(new.event.state)}
        tags["raybo.why"] = study.explain(trial)[:TAG_CHARACTERS]
        name = f"trial-{trial.number}"
        run = self.client.create_run(self.experiment, start_time=_milliseconds(new.event), tags=tags, run_name=name)
        self.children[trial.number] = run.info.run_id
        names = Names(_allowed, longest=NAME_CHARACTERS)
        names.give(study.space.names)  # in one order for every trial, whichever are open in it
        config = parameters(study.space, trial.config)
        values = [Param(names[name], str(value)[:PARAMETER_CHARACTERS]) for name, value in config]
        for i in range(0, len(values), PARAMETERS):
            self.client.log_batch(run.info.run_id, params=values[i : i + PARAMETERS])

    def reported(self, new: News) -> None:
        self.curves.setdefault(new.trial.number, []).append(new)
        self.last[new.trial.number] = new

    def changed(self, new: News) -> None:
        number = new.trial.number
        if new.trial.state in OPEN:
            self.client.update_run(self.children[number], status="RUNNING")
            self.client.set_tag(self.children[number], STATE, str(new.event.state))
            self._reopen(number)

    def ended(self, new: News) -> None:
        trial, number, at = new.trial, new.trial.number, _milliseconds(new.event)
        if number in self.ended_at and at in (None, self.ended_at[number]):
            return  # the store has this end, and not that of an earlier attempt
        self._reopen(number)
        self._log_curve(number)
        last = {} if number not in self.last else self.last[number].numbers
        own = {"seconds": trial.seconds, "suggest_seconds": trial.suggest_seconds}
        numbers = {
            name: value
            for name, value in {**own, **new.numbers}.items()  # the user's names win
            if value is not None and last.get(name) != value  # which its curve ends with already
        }
        self._log(number, [(trial.step or number, at or 0, numbers)])
        texts = {
            STATE: str(trial.state),
            "raybo.reason": trial.reason,
            "raybo.context": "" if trial.context is None else json.dumps(plain(trial.context)),
            "raybo.violations": json.dumps(plain(trial.violations)) if trial.violations else "",
            "raybo.traceback": str(trial.details.get("traceback", "")),
        }
        # of long texts the end says most
        tags = [RunTag(key, text[-TAG_CHARACTERS:]) for key, text in texts.items() if text or trial.attempt > 1]
        self.client.log_batch(self.children[number], tags=tags)
        self.client.set_terminated(self.children[number], STATUS[trial.state], end_time=at or 0)

    def finish(self, study: Study) -> None:
        """Write the curves of running trials, the best trial, and how the study ended; it may be continued."""
        for number in list(self.curves):
            self._log_curve(number)
        summary = plain(summary_of(study))
        best: dict[str, Any] = {}
        if study.goals.k > 1:
            best = {"hypervolume": study.hypervolume(), "on_the_front": len(study.front)}
        elif "best" in summary:
            best = {_allowed(f"best_{study.description.metric}"): study.best.value}
        best |= {f"best_{key}": value for key, value in summary.get("best", {}).items() if key in EXPECTED}
        for name, value in best.items():
            self.client.log_metric(self.parent, name, value, step=study.count(*COUNTED))
        for name in ("best", "best_expected"):
            if name in summary:
                self.client.set_tag(self.parent, f"raybo.{name}", str(summary[name]["trial"]))
        if study.ended != self.ending:
            self.ending = study.ended
            self.client.set_tag(self.parent, ENDED, study.ended)
            if study.ended:
                self.client.set_terminated(self.parent, "FINISHED", end_time=_milliseconds(study.events[-1]))
            else:
                self.client.update_run(self.parent, status="RUNNING")

    def _find(self, study: Study) -> str:
        """Return the id of the study's run in the store, whose children are read; empty if it has none."""
        begun = _milliseconds(study.events[0])
        runs = self._search(f"tags.`{STUDY}` = '{_identity(study)}'")
        parent = next((run for run in runs if begun in (None, run.info.start_time)), None)
        if parent is None:
            return ""
        self.ending = parent.data.tags.get(ENDED, "")
        for run in self._search(f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'"):
            if TRIAL in run.data.tags:  # others may have put runs there
                self.children[int(run.data.tags[TRIAL])] = run.info.run_id
                if run.info.status != "RUNNING":
                    self.ended_at[int(run.data.tags[TRIAL])] = run.info.end_time
        return str(parent.info.run_id)

    def _begin(self, study: Study) -> str:
        d = study.description
        tags = {STUDY: _identity(study), "raybo.space": str(described(d)["space"])[:STUDY_TAG_CHARACTERS]}
        if study.space.rules:
            tags["raybo.where"] = "; ".join(rule.text for rule in study.space.rules)[:STUDY_TAG_CHARACTERS]
        begun = _milliseconds(study.events[0])
        run = self.client.create_run(self.experiment, start_time=begun, tags=tags, run_name=name_of(study))
        names = Names(_allowed, longest=NAME_CHARACTERS)
        for key, value in [("method", d.method), ("seed", d.seed), *d.options.items(), *d.settings.items()]:
            # a setting may be called as an option is
            self.client.log_param(run.info.run_id, names.another(key), str(value)[:PARAMETER_CHARACTERS])
        return str(run.info.run_id)

    def _search(self, rule: str) -> list[Any]:
        runs: list[Any] = []
        token = None
        while True:
            page = self.client.search_runs([self.experiment], rule, max_results=1_000, page_token=token)
            runs += page
            token = page.token
            if not token:
                return runs

    def _reopen(self, number: int) -> None:
        """Forget a trial's end in the store, and the reports that were written with it."""
        end = self.ended_at.pop(number, None)
        if end is not None and number in self.curves:
            self.curves[number] = [new for new in self.curves[number] if (_milliseconds(new.event) or 0) > end]

    def _log_curve(self, number: int) -> None:
        """Write a trial's reports that are not written yet."""
        reports = self.curves.pop(number, [])
        if number not in self.ended_at:
            self._log(number, [(new.event.data["step"], _milliseconds(new.event) or 0, new.numbers) for new in reports])

    def _log(self, number: int, points: Iterable[tuple[int, int, dict[str, float]]]) -> None:
        """Write numbers of a trial, each point at a step and a time in milliseconds."""
        metrics = [
            Metric(self.names[name], value, at, step) for step, at, numbers in points for name, value in numbers.items()
        ]
        for i in range(0, len(metrics), METRICS):
            self.client.log_batch(self.children[number], metrics=metrics[i : i + METRICS])


def _identity(study: Study) -> str:
    d = study.description
    return QUOTES.sub("_", f"{name_of(study)}-{d.method}-{d.seed}")


def _allowed(name: str) -> str:
    """Return a name that MLflow takes, of which a store may make a file's: acc@5 becomes acc_5, ../x becomes ___x."""
    text = REFUSED.sub("_", name)[:NAME_CHARACTERS]
    if normpath(text) != text or text.startswith((".", "/")):
        text = re.sub("[./]", "_", text)
    return text or "_"


def _milliseconds(event: Event) -> int | None:
    at = event.timestamp
    return None if at is None else int(1_000 * at)
