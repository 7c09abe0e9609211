"""The study as a Ray actor: it asks for trials, dispatches them as tasks, tells their results, and keeps the journal.

In the user's process
    driver        begins a study
    connection    the Ray that it runs on
    follow        follows a study until it ends
    plan          what the two processes tell each other
    progress      shows the study's progress
    safe_console  a terminal that obeys raybo alone
In the study's process
    actor         what others can ask of a running study
    loop          one coroutine per worker, from a proposal to its result
    lifecycle     a trial's states, and what each occurrence leads to
    flight        a trial in Ray's hands
    proposals     made on the spot, in a thread, or ahead of time
    pace          what is done ahead of time, and when
    event_log     the journal, the searcher, and what others are told of them
    nodes         nodes that are lost
    resources     what a trial occupies, and how many trials there is room for
In a worker's process
    task          one trial
    forks         processes that a trial forks must not stand in for it
"""
