"""The contracts of methods and schedulers, as tests for pytest: for raybo's own, and for those of other packages.

# tests/test_mine.py
from raybo.testing import MethodContract, SchedulerContract

class TestMine(MethodContract):
    method = "my_package:Mine"

class TestMyRule(SchedulerContract):
    scheduler = "my_package:MyRule"
"""

from raybo.common.errors import MissingExtra

try:
    import pytest
except ModuleNotFoundError:
    raise MissingExtra("raybo.testing needs pytest: pip install pytest") from None

pytest.register_assert_rewrite("raybo.testing.histories", "raybo.testing.methods", "raybo.testing.schedulers")

from raybo.testing.methods import MethodContract  # noqa: E402  # its assertions are rewritten first
from raybo.testing.schedulers import SchedulerContract  # noqa: E402

__all__ = ["MethodContract", "SchedulerContract"]
