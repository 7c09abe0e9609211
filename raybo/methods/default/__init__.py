"""The default method and baselines: see docs/default.md."""
