"""The study's process.

loop                     one coroutine per worker: take the next trial, carry it to its end, again
next_trials, workers     which trial a free worker submits next
trial_queue              which trials come before new ones
proposals, timings       proposals made on the spot, in a thread or ahead of time, by how long things take
trial_runs, dispatch     a trial from its first submission to its end, and its attempt in Ray's hands
launcher                 the Ray task that runs an attempt
verdicts                 reports recorded, and the scheduler's verdicts on them
trial_output             what trials print
capacity                 how many trials run at a time
ending                   why the study ends early
repeated_failures        whether its first trials all fail for the same reason
user_requests            what the user asks of it from another process
event_log, committed     the journal, the searcher, and what is committed
"""
