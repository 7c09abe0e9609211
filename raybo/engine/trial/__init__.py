"""Inside a worker: one trial, its reports, checkpoints and output."""
