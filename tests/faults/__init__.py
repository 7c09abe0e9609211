"""Kills commands, study actors, workers and hosts while studies of real methods run, and checks what is left.

`python -m tests.faults --kills 200 --seed 1` does as many kills as asked and prints a table.

plan      which studies, and what is done to each: a pure function of the seed
job       the objectives
driver    the command that is killed
running   a study from outside: what it has written, and whom a kill may meet
cluster   the hosts that several studies share
checks    what does not hold of a study that has ended
harness   carries out one study of a plan
"""
