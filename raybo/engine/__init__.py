"""The study as a Ray actor: it asks, dispatches trials as tasks, tells, and keeps the journal.

In the user's process
    driver        begins a study
    connection    the Ray that it runs on
    follow        shows a study while it lasts
    plan          what the two processes tell each other
    progress      shows it while it runs
    safe_console  a terminal that obeys raybo alone
In the study's
    actor         what can be asked of a running study
    loop          one coroutine per worker, from a proposal to its result
    lifecycle     what follows what happens to a trial
    flight        a trial in Ray's hands
    proposals     made on the spot, in a thread, or ahead
    pace          when what is done ahead
    record        the journal, the searcher, and what is told of them
    nodes         the loss of one
    resources     what a trial holds, and how many there is room for
In a worker's
    task          one trial
    forks         what it forks must not stand in for it
"""
