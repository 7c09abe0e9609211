"""The record of a study: its events, trials, goals and history. Pure: no files, no models, no Ray."""
