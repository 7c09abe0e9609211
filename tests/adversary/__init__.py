"""The adversary: hostile, unlucky and careless use, drawn from a seed, and what must hold whatever is drawn.

    faults          what a fault is, and how a command is judged
    values          hostile numbers, texts and objects
    command_lines   what may be typed
    spaces          what may be searched
    orders          what may be asked and told, in which order
    journals        damaged and forged files
    trials          what a training function may do to its worker
    other_user      another user of the same machine; where the tests run as root

Every attack is a function of a random stream and an empty directory of its own, so a seed and a number repeat it.
"""
