"""The default method and the yardsticks: see docs/default.md."""
