"""The shipped data are what trials/data/README.md says they are."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parents[2] / "trials" / "data"
README = (DATA / "README.md").read_text(encoding="utf-8")
FILES = ["australian.csv", "kc1.csv", "portfolio.csv", "vehicle.csv", "wilt.csv"]


def table(name: str) -> np.ndarray:
    return np.loadtxt(DATA / name, dtype=str, delimiter=",")


def test_readme_lists_every_file_and_no_other():
    assert sorted(path.name for path in DATA.glob("*.csv")) == FILES
    assert sorted(re.findall(r"^    [0-9a-f]{64}  (\S+)$", README, re.MULTILINE)) == FILES
    assert sorted(re.findall(r"^\| (\S+\.csv) \|", README, re.MULTILINE)) == FILES


@pytest.mark.parametrize("name", FILES)
def test_checksum_is_the_readme_s(name):
    assert f"{hashlib.sha256((DATA / name).read_bytes()).hexdigest()}  {name}" in README


@pytest.mark.parametrize("name", FILES)
def test_rows_features_and_classes_are_the_readme_s(name):
    line = re.search(rf"^\| {re.escape(name)} \| (\d+) \| (\d+) \| (.*?) \|", README, re.MULTILINE)
    assert line is not None
    rows, features, classes = line.groups()
    data = table(name)
    assert data.shape == (1 + int(rows), int(features) + 1)
    assert np.isfinite(data[1:, :-1].astype(float)).all()
    if data[0, -1] == "target":
        counts = {label: int(count) for label, count in re.findall(r"(\w+):? (\d+)", classes)}
        assert Counter(data[1:, -1].tolist()) == counts


@pytest.mark.parametrize(
    ("name", "column", "mean"),
    [
        ("vehicle.csv", "COMPACTNESS", 93.6785),
        ("vehicle.csv", "HOLLOWS_RATIO", 195.632),
        ("wilt.csv", "Mean_Green", 231.413),
        ("wilt.csv", "Mean_NIR", 525.8),
        ("australian.csv", "A2", 31.5682),
        ("australian.csv", "A14", 1018.39),
        ("kc1.csv", "loc", 20.3723),
        ("portfolio.csv", "y_neg_return", -2.885738),
    ],
)
def test_published_means(name, column, mean):
    data = table(name)
    values = data[1:, data[0].tolist().index(column)].astype(float)
    assert values.mean() == pytest.approx(mean, rel=5e-6)
