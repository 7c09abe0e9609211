"""Kills drivers, study actors, workers and hosts while studies of real methods run, and checks what is left.

`python -m tests.faults --kills 200 --seed 1` does as many kills as asked and prints a table.
"""
