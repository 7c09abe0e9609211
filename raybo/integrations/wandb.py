"""A study in Weights & Biases: a group of runs, one for the study and one per trial.

A run's id is made of what the study is and when it began, so a study that is continued, by whichever process, continues
its runs. What has been sent is noted in W&B's own directory (`WANDB_DIR`, else ./wandb), so that it is not sent again.
Whether runs go to a server or wait in that directory for `wandb sync`, and to which account, is said as everywhere in
W&B: `WANDB_MODE=offline`, `wandb login`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import weakref
from pathlib import Path
from typing import Any

import wandb

from raybo.common.errors import RayboError
from raybo.common.files import write_file
from raybo.integrations.stream import News, Stream, name_of, summary_of
from raybo.integrations.study_json import described, plain
from raybo.integrations.trial_terms import Names, parameters
from raybo.record.states import FAILURES
from raybo.study.study import Study

REFUSED = re.compile(r"[^\w\-@# :/]")  # in names; W&B takes a dot for a level
NAME_CHARACTERS = 250  # of a name
OWN = ("trial", "state", "reason", "context", "violations", "seconds", "suggest_seconds", "why")  # not a user's names
OPEN_RUNS = 32  # of running trials, at most; one that was closed is resumed
ID_CHARACTERS = 16


def wandb_exporter(destination: str) -> Stream:
    """Return an exporter to a project: `PROJECT`, or `ENTITY/PROJECT`."""
    entity, _, project = destination.rpartition("/")
    if not project or "/" in entity:
        raise RayboError(f"a W&B destination is PROJECT or ENTITY/PROJECT, got {destination}")
    names = Names(_allowed, OWN, NAME_CHARACTERS)
    return Stream(lambda study: _Runs(entity or None, project, names, study) if study.events else None, names)


class _Runs:
    """The runs of one study in a project.

    Attributes:
        sent: of each trial, the last step that W&B has of it, and the number of the event that ended it, or 0; the
            study's own counts are under -1.
        open: by trial, the last used last; -1 for the study's.
    """

    def __init__(self, entity: str | None, project: str, names: Names, study: Study) -> None:
        self.entity, self.project, self.names = entity, project, names
        begun = (
            f"{study.description.objective} {study.description.method} {study.description.seed} {study.events[0].at}"
        )
        self.group = hashlib.sha256(f"{entity}/{project} {begun}".encode()).hexdigest()[:ID_CHARACTERS]
        self.directory = Path(os.environ.get("WANDB_DIR") or ".")
        self.note = self.directory / "wandb" / f"raybo-{self.group}.json"
        self.sent: dict[int, list[int]] = {}
        if self.note.is_file():
            self.sent = {int(key): value for key, value in json.loads(self.note.read_text(encoding="utf-8")).items()}
        self.open: dict[int, Any] = {}
        weakref.finalize(self, _close, self.open, self.sent, self.note)
        self.parameters = Names(_allowed, longest=NAME_CHARACTERS)
        self.parameters.give(study.space.names)

    def started(self, new: News) -> None:
        if new.trial.number not in self.sent:
            self._run(new)

    def reported(self, new: News) -> None:
        step, _ = new.event.report or (0, 0.0)
        sent = self.sent.setdefault(new.trial.number, [0, 0])
        if step <= sent[0]:
            return
        self._run(new).log({self.names[name]: value for name, value in new.numbers.items()}, step=step, commit=True)
        sent[0] = step

    def changed(self, new: News) -> None:
        sent = self.sent[new.trial.number]
        if new.event.number <= sent[1]:  # sent with the end that followed it
            return
        sent[1] = 0
        self._run(new).summary["state"] = str(new.event.state)

    def ended(self, new: News) -> None:
        trial, event = new.trial, new.event
        sent = self.sent.setdefault(trial.number, [0, 0])
        if sent[1] >= event.number:
            return
        run = self._run(new)
        own = {"seconds": trial.seconds, "suggest_seconds": trial.suggest_seconds}
        numbers = {self.names[name]: value for name, value in {**own, **new.numbers}.items() if value is not None}
        texts = {"reason": trial.reason, "context": trial.context, "violations": dict(trial.violations)}
        run.summary.update({**numbers, **plain({name: text for name, text in texts.items() if text or sent[0]})})
        run.summary["state"] = str(trial.state)
        _end(self.open, trial.number, int(trial.state in FAILURES))
        sent[1] = event.number

    def finish(self, study: Study) -> None:
        """Write what concerns the whole study, and note what has been sent."""
        ended = sum(event.is_end for event in study.events)
        sent, now = self.sent.get(-1), [ended, int(bool(study.ended))]
        if sent != now:
            run = self._study_run(study)
            numbers: dict[str, Any] = {}
            if study.goals.k > 1:
                numbers = {"hypervolume": study.hypervolume(), "on the front": len(study.front)}
            elif study.incumbent is not None:
                numbers = {f"best {self.names[study.description.metric]}": study.incumbent.value}
            if numbers and (sent is None or ended > sent[0]):
                run.log(numbers, step=ended, commit=True)
            run.summary.update(plain({key: value for key, value in summary_of(study).items() if value}))
            self.sent[-1] = now
            if study.ended:
                _end(self.open, -1)
        self.directory.mkdir(parents=True, exist_ok=True)
        _write(self.note, {number: sent for number, sent in self.sent.items() if number not in self.open})

    def _run(self, new: News) -> Any:
        """Return the open run of a trial, begun or resumed."""
        trial = new.trial
        run = self.open.pop(trial.number, None)
        if run is None:
            config = {self.parameters[name]: value for name, value in parameters(new.study.space, trial.config)}
            run = self._init(str(trial.number), "trial", f"trial-{trial.number}", config)
            run.summary.update({"trial": trial.number, "why": new.study.explain(trial), "state": str(new.event.state)})
            self.sent.setdefault(trial.number, [0, 0])
        self.open[trial.number] = run
        if len(self.open) > OPEN_RUNS:
            _end(self.open, next(number for number in self.open if number >= 0))
        return run

    def _study_run(self, study: Study) -> Any:
        if -1 not in self.open:
            self.open[-1] = self._init(
                "study", "study", name_of(study), {"begun": study.events[0].at, **plain(described(study.description))}
            )
        return self.open[-1]

    def _init(self, which: str, kind: str, name: str, config: dict[str, Any]) -> Any:
        self.directory.mkdir(parents=True, exist_ok=True)
        quiet = wandb.Settings(
            silent=True, console="off", x_disable_stats=True, disable_git=True, disable_code=True, save_code=False
        )
        return wandb.init(
            entity=self.entity,
            project=self.project,
            id=f"{self.group}-{which}",
            resume="allow",
            group=self.group,
            job_type=kind,
            name=name,
            config=config,
            dir=str(self.directory),
            settings=quiet,
            reinit="create_new",
        )


def _end(runs: dict[int, Any], number: int, exit_code: int = 0) -> None:
    """Finish a run, after which W&B has all of it; it can be resumed."""
    runs.pop(number).finish(exit_code=exit_code)


def _close(runs: dict[int, Any], sent: dict[int, list[int]], note: Path) -> None:
    """Finish the runs that are open, and note what has been sent."""
    for number in list(runs):
        _end(runs, number)
    if note.parent.is_dir():
        _write(note, sent)


def _write(note: Path, sent: dict[int, list[int]]) -> None:
    """Note what has been sent; of runs that are still open W&B may lose the last when it is killed."""
    note.parent.mkdir(parents=True, exist_ok=True)
    write_file(note, json.dumps(sent).encode())


def _allowed(name: str) -> str:
    """Return a name that W&B takes; those that begin with an underscore are its own."""
    return REFUSED.sub("_", name.replace(".", "/"))[:NAME_CHARACTERS].lstrip("_") or "unnamed"
