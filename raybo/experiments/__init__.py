"""Comparing methods fairly: problems x methods x repeats as studies, resumable; claims judged by a stated test."""

from raybo.experiments.compare import compare
from raybo.experiments.page import page, table
from raybo.experiments.plan import Claim, Entry, Experiment, Figure, HeldOut, Problem
from raybo.experiments.verdicts import Verdict

__all__ = ["Claim", "Entry", "Experiment", "Figure", "HeldOut", "Problem", "Verdict", "compare", "page", "table"]
