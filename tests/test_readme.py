"""The README's promises: its Python blocks run as they stand, one after the other; its tables are the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import raybo
from raybo import methods

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.ray
def test_every_python_block_runs(tmp_path, monkeypatch, ray_session):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) >= 3
    namespace = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    assert namespace["study"].count(raybo.State.FINISHED) == 60
    assert namespace["searcher"].best.value > 0.9


def test_every_method_is_named_and_every_file_exists():
    for name in methods.METHODS:
        assert f"`{name}`" in README, name
    for path in re.findall(r"trials/[a-z_]+\.py", README):
        assert (ROOT / path).is_file(), path
