"""The study as a Ray actor: it asks for trials, runs them as Ray tasks, records their results and keeps the journal.

The user's process
    driver                 begins a study
    run_options, arguments check what `tune` is given
    description            settles what is studied, with the journal
    in_process             runs a study in this process, without Ray
    interruptions          keeps Ctrl-C and time limits away from what must not be cut in two
    follow                 follows a study until it ends
    progress, console      show its progress on a terminal that obeys raybo alone
    detached_studies       finds the studies that run detached on a cluster
Both processes
    plan                   what the driver passes to the study
    status                 what it gets back while the study runs
    actor                  what other processes may ask of a running study
    lifecycle              a trial's states, and what each occurrence leads to
study/                     in the study's process: the loop, from a proposal to its result
trial/                     in a worker's process: one attempt of a trial
ray/                       the Ray that all of them run on, and all use of its private API
temporary_directories      last as long as a study or an attempt
"""
