"""Finds the experiments of a clone: every module of trials/papers/ holds some in its `EXPERIMENTS`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from raybo.common.arguments import a_list
from raybo.common.errors import ObjectiveError, RayboError
from raybo.common.messages import in_words, shown
from raybo.experiments.plan import Experiment, Figure


def find_experiments(start: Path) -> tuple[Path, dict[str, Experiment | Figure]]:
    """The clone's root, and its experiments by name, in the order of their files.

    Raises:
        ObjectiveError: neither the directory nor one above it is a clone, or a module does not import, or holds
            something else.
    """
    for root in (start, *start.parents):
        directory = root / "trials" / "papers"
        if directory.is_dir():
            break
    else:
        raise ObjectiveError(f"{start}: the papers' experiments are not installed; run this inside a clone of raybo")
    found: dict[str, Experiment | Figure] = {}
    for path in sorted(directory.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"raybo_papers_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their module up
        try:
            spec.loader.exec_module(module)
        except RayboError:
            raise
        except (Exception, SystemExit) as error:  # whatever the module raises
            raise ObjectiveError(f"{path}: does not import: {in_words(error)}") from error
        experiments = getattr(module, "EXPERIMENTS", [])
        for experiment in a_list(experiments, f"{path}: EXPERIMENTS", "experiments and figures", ObjectiveError):
            if not isinstance(experiment, (Experiment, Figure)):
                raise ObjectiveError(f"{path}: EXPERIMENTS must hold Experiment and Figure, got {shown(experiment)}")
            found[experiment.name] = experiment
    return root, found
