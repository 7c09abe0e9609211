"""Methods for acquisitions that are maximised inexactly: what docs/inexact-maximisation.md tells of.

`schedules` is what they share: options, exploration and the random grid's size at each step.
"""
