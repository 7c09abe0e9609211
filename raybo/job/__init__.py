"""All that a training function touches: its declaration, its reports and checkpoints, its own trial, shared data."""
