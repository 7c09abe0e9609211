"""Kills whatever a study consists of while studies of real methods run, and checks what is left.

Commands, study actors, workers, raylets, GCS and hosts are killed; processes are stopped for a while, hosts cut off,
the disk filled, a command given twice.

`python -m tests.faults --kills 200 --seed 1` does as many kills as asked and prints a table; `--first 20` begins with
study 20 of the plan, so that several runs make one of it.

`python -m tests.faults --signals` strikes the cells of a table of signals, processes and phases instead.

plan      which studies, and what is done to each: a pure function of the seed
job       the objectives
driver    the command that is killed
running   a study from outside: what it has written, and whom a kill may meet
cluster   the hosts that several studies share
disk      the disk that can be filled
strikes   what is done to a study, kind by kind
checks    what does not hold of a study that has ended
ranks     one process of a trial that has several: what becomes of the trial, and its strikes
harness   carries out one study of a plan
promises  the table of signals: what is promised in each cell
session   a study under signals, from outside
signals   strikes the cells of the table, and checks what is promised
"""
