"""The study process: its loop, its event log, the life of a trial."""
