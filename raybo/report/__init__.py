"""What a study looks like: the live display, and tables for a terminal."""
