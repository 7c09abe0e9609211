"""The worker's process: one attempt of a trial, its reports, checkpoints, files and output."""
