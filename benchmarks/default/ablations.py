"""`auto` with fewer of its models, to see what each is worth."""

from __future__ import annotations

from raybo.methods.default.auto import Auto


class Plain(Auto):
    """One model, the plain one."""

    members = ("plain",)


class WithoutWarped(Auto):
    """No axis is bent."""

    members = ("plain", "summed")


class WithoutSummed(Auto):
    """No sums over axes and no trend."""

    members = ("plain", "warped")
