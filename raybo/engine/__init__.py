"""The study as a Ray actor: it asks, dispatches trials as tasks, tells, and keeps the journal."""
