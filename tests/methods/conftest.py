"""Fixtures of the methods' tests."""

from __future__ import annotations

from functools import partial

import pytest

from raybo.methods.parts import fitting


@pytest.fixture
def short_chains(monkeypatch):
    """Sample a tenth of the chain, for tests that say nothing of its quality."""
    monkeypatch.setattr(fitting, "sample_hmc", partial(fitting.sample_hmc, burn_in=20, thin=1))
