"""`auto` with fewer of its models, to see what each is worth."""

from __future__ import annotations

from raybo.methods.default.auto import Auto


class Plain(Auto):
    """One model, the plain one."""

    members = ("plain",)


class WithoutWarped(Auto):
    """No axis is bent."""

    members = ("plain", "summed", "noisy")


class WithoutSummed(Auto):
    """No sums over axes and no trend."""

    members = ("plain", "warped", "noisy")


class WithoutNoisy(Auto):
    """Values are believed: the models of raybo 0.2."""

    members = ("plain", "warped", "summed")
