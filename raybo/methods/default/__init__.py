"""The default method and the yardsticks: what docs/default.md tells of."""
