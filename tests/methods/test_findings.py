from __future__ import annotations

import pytest

from raybo.methods.findings import interval


@pytest.mark.parametrize(
    ("mean", "sd", "text"),
    [
        (0.97, 0.0011, "0.9700 (90 % interval 0.9682 to 0.9718)"),
        (1e-12, 1e-6, "1e-12 (90 % interval -1.6e-06 to 1.6e-06)"),
        (-3e-5, 1e-6, "-3e-05 (90 % interval -3.2e-05 to -2.8e-05)"),
        (1e-8, 1e-3, "0.0000 (90 % interval -0.0016 to 0.0016)"),
        (0.0, 0.0, "0 (90 % interval 0 to 0)"),
    ],
)
def test_intervals_have_the_digits_that_are_known(mean, sd, text):
    assert interval(mean, sd) == text
