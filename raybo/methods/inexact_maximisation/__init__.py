"""Methods for acquisitions that are maximised inexactly: see docs/inexact-maximisation.md.

`schedules` holds what they share: options, exploration and the random grid's size at each step.
"""
