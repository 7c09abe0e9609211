"""A study in MLflow: an experiment for the objective, a parent run for the study, a child run per trial.

Runs are recognised by the tags that raybo gives them, and those of a study by when it began, so exporting again adds
only what is new. A trial that failed and runs again is still one run, which ends as the trial's last attempt did.
"""

from __future__ import annotations

import json
import re
from posixpath import normpath
from typing import Any, cast

from raybo.common.errors import MissingExtra, install_command
from raybo.integrations.export import Exporter, described, plain, summary_of
from raybo.integrations.trial_terms import Names, news, numbers_of, numbers_said, parameters, time_of
from raybo.methods.best import EXPECTED
from raybo.record.events import COUNTED, OPEN, Event, Kind, State, Trial
from raybo.study.study import Study

STATUS = {
    State.FINISHED: "FINISHED",
    State.FAILED: "FAILED",
    State.LOST: "FAILED",
    State.STOPPED: "KILLED",
    State.PRUNED: "KILLED",  # MLflow has no state of its own for it: the tag raybo.state says so
}
METRICS, PARAMETERS = 1_000, 100  # that MLflow takes at a time
REFUSED = re.compile(r"[^\w\-. :/]")  # in the names of parameters and metrics
NAME_CHARACTERS = 250  # of such a name, at most
QUOTES = re.compile("['\"`]")  # which MLflow cannot search for
PARAMETER_CHARACTERS = 500  # that every MLflow store holds
TAG_CHARACTERS = 4_000  # the same of a tag, of which the end tells most
OWN = ("seconds", "suggest_seconds")  # metrics that are not a user's
STUDY, TRIAL, STATE = "raybo.study.study", "raybo.trial", "raybo.state"


def mlflow_exporter(destination: str) -> Exporter:
    """A tracking store: `sqlite:///mlflow.db`, a server's address, or whatever else MLflow takes.

    Raises:
        MissingExtra: mlflow is not installed.
    """
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise MissingExtra(f"MLflow's store needs mlflow: {install_command('mlflow')}") from None
    return _Runs(MlflowClient(tracking_uri=destination))


class _Runs:
    """The runs of one study in a store."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.experiment = ""
        self.parent = ""
        self.children: dict[int, str] = {}  # by trial
        self.ended: dict[int, int | None] = {}  # by trial, when its run in the store ended, in milliseconds
        self.names = Names(_allowed, OWN, NAME_CHARACTERS)  # of metrics
        self.last: dict[int, Event] = {}  # report of each trial
        self.seen = 0
        self.why = ""  # the study ended, as the store has it

    def __call__(self, study: Study) -> None:
        if not study.events:  # when it began, by which it is known, is yet to be said
            return
        if not self.parent:
            self._find_or_begin(study)
        more = (name for event in study.events[self.seen :] for name in event.data.get("metrics") or ())
        for name in (*study.goals.needed, *more):
            self.names[name]  # given in the order of events, and so the same whenever this is done
        curves: dict[int, list[Event]] = {}
        for event, trial in news(study, self.seen):
            if event.kind is Kind.ASKED and trial.number not in self.children:
                self._begin(study, trial, event)
            elif event.report is not None:
                curves.setdefault(trial.number, []).append(event)
                self.last[trial.number] = event
            elif event.kind in (Kind.RETRIED, Kind.PAUSED, Kind.RESUMED) and trial.state in OPEN:
                self.client.update_run(self.children[trial.number], status="RUNNING")
                self.client.set_tag(self.children[trial.number], STATE, str(event.state))
                self.ended.pop(trial.number, None)
            elif event.is_end and not self._has_ended(event):
                self._report(study, trial.number, curves.pop(trial.number, []))
                self._end(study, trial, event)
        for number, reports in curves.items():
            if number not in self.ended:
                self._report(study, number, reports)
        self.seen = len(study.events)
        ended = study.count(*COUNTED)
        if study.goals.k > 1:
            self.client.log_metric(self.parent, "hypervolume", study.hypervolume(), step=ended)
            self.client.log_metric(self.parent, "on_the_front", len(study.front), step=ended)
        elif study.incumbent is not None:
            self.client.log_metric(
                self.parent, _allowed(f"best_{study.description.metric}"), study.best.value, step=ended
            )
        told = plain(summary_of(study))
        for name, best in ((name, told[name]) for name in ("best", "best_expected") if name in told):
            self.client.set_tag(self.parent, f"raybo.{name}", str(best["trial"]))
        for key in EXPECTED:
            if key in told.get("best", {}):
                self.client.log_metric(self.parent, f"best_{key}", told["best"][key], step=ended)
        self._end_study(study.ended)

    def _has_ended(self, event: Event) -> bool:
        """Whether the store has this end of a trial already, and not that of an earlier attempt."""
        number = cast(int, event.trial)
        return number in self.ended and (not event.at or self.ended[number] == _milliseconds(event))

    def _end_study(self, why: str) -> None:
        """Say how the study ended; one that goes on after all runs again."""
        if why == self.why:
            return
        self.why = why
        self.client.set_tag(self.parent, "raybo.ended", why)
        if why:
            self.client.set_terminated(self.parent, "FINISHED")
        else:
            self.client.update_run(self.parent, status="RUNNING")

    def _find_or_begin(self, study: Study) -> None:
        d = study.description
        name = study.path.stem if study.path is not None else d.objective
        found = self.client.get_experiment_by_name(d.objective)
        self.experiment = found.experiment_id if found else self.client.create_experiment(d.objective)
        identity = QUOTES.sub("_", f"{name}-{d.method}-{d.seed}")
        begun = _milliseconds(study.events[0])
        runs = self._search(f"tags.`{STUDY}` = '{identity}'")
        if own := next((run for run in runs if begun in (None, run.info.start_time)), None):
            self.parent = own.info.run_id
            self.why = own.data.tags.get("raybo.ended", "")
            for run in self._search(f"tags.`mlflow.parentRunId` = '{self.parent}'"):
                if TRIAL not in run.data.tags:  # a run that somebody else has put there
                    continue
                self.children[int(run.data.tags[TRIAL])] = run.info.run_id
                if run.info.status != "RUNNING":
                    self.ended[int(run.data.tags[TRIAL])] = run.info.end_time
            return
        tags = {STUDY: identity, "raybo.space": str(described(d)["space"])[:5_000]}
        if study.space.rules:
            tags["raybo.where"] = "; ".join(rule.text for rule in study.space.rules)[:5_000]
        run = self.client.create_run(self.experiment, start_time=begun, tags=tags, run_name=name)
        self.parent = run.info.run_id
        told = [("method", d.method), ("seed", d.seed), *d.options.items(), *d.settings.items()]
        names = Names(_allowed, longest=NAME_CHARACTERS)
        for key, value in told:  # a setting may be called as an option is
            self.client.log_param(self.parent, names.another(key), str(value)[:PARAMETER_CHARACTERS])

    def _search(self, rule: str) -> list[Any]:
        found: list[Any] = []
        token = None
        while True:
            page = self.client.search_runs([self.experiment], rule, max_results=1_000, page_token=token)
            found += page
            token = page.token
            if not token:
                return found

    def _begin(self, study: Study, trial: Trial, event: Event) -> None:
        tags = {"mlflow.parentRunId": self.parent, TRIAL: str(trial.number), STATE: str(event.state)}
        tags["raybo.why"] = study.explain(trial)[:TAG_CHARACTERS]
        name = f"trial-{trial.number}"
        run = self.client.create_run(self.experiment, start_time=_milliseconds(event), tags=tags, run_name=name)
        self.children[trial.number] = run.info.run_id
        from mlflow.entities import Param

        names = Names(_allowed, longest=NAME_CHARACTERS)
        for name in study.space.names:  # in the same order for each trial, whichever are open in it
            names[name]
        told = parameters(study.space, trial.config)
        values = [Param(names[name], str(value)[:PARAMETER_CHARACTERS]) for name, value in told]
        for i in range(0, len(values), PARAMETERS):
            self.client.log_batch(run.info.run_id, params=values[i : i + PARAMETERS])

    def _report(self, study: Study, number: int, reports: list[Event]) -> None:
        """What a trial has reported, over its steps."""
        from mlflow.entities import Metric

        found = [
            Metric(self.names[name], value, _milliseconds(event) or 0, event.data["step"])
            for event in reports
            for name, value in numbers_said(study, event).items()
        ]
        for i in range(0, len(found), METRICS):
            self.client.log_batch(self.children[number], metrics=found[i : i + METRICS])

    def _end(self, study: Study, trial: Trial, event: Event) -> None:
        from mlflow.entities import Metric, RunTag

        run, at = self.children[trial.number], _milliseconds(event) or 0
        own = {"seconds": trial.seconds, "suggest_seconds": trial.suggest_seconds}
        last = self.last.get(trial.number)
        said = {} if last is None else numbers_said(study, last)  # its curve ends with these, and would show them twice
        numbers = [
            Metric(self.names[name], value, at, trial.step or trial.number)  # at the end of its curve, if it has one
            for name, value in {**own, **numbers_of(study, trial)}.items()  # the user's names win
            if value is not None and said.get(name) != value
        ]
        words = {
            STATE: str(trial.state),
            "raybo.reason": trial.reason,
            "raybo.context": "" if trial.context is None else json.dumps(plain(trial.context)),
            "raybo.violations": json.dumps(plain(trial.violations)) if trial.violations else "",
            "raybo.traceback": str(trial.details.get("traceback", "")),
        }
        tags = [RunTag(key, text[-TAG_CHARACTERS:]) for key, text in words.items() if text or trial.attempt > 1]
        for i in range(0, len(numbers), METRICS):
            self.client.log_batch(run, metrics=numbers[i : i + METRICS])
        self.client.log_batch(run, tags=tags)
        self.client.set_terminated(run, STATUS[trial.state], end_time=at)


def _allowed(name: str) -> str:
    """A name that MLflow takes, of which a store may make a file's: acc@5 becomes acc_5, ../x becomes ___x."""
    text = REFUSED.sub("_", name)[:NAME_CHARACTERS]
    if normpath(text) != text or text.startswith((".", "/")):
        text = re.sub("[./]", "_", text)
    return text or "_"


def _milliseconds(event: Event) -> int | None:
    at = time_of(event)
    return None if at is None else int(1_000 * at)
