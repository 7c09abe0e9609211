"""The durable study: one SQLite file, one writer, any number of readers.

    study   one row: what is studied (`raybo.record.description.Description`, JSON)
    event   number, kind, trial, at, data: the history, in order (`raybo.record.history.Event`, data is JSON)

Events are only ever added, several in one transaction, and a transaction that was committed survives the death of every
process and a power cut (WAL, synchronous=FULL). The writer holds a lock on a file beside the journal, which the system
releases when the process dies in whatever way. Everything in it is JSON and nothing is ever unpickled.

    checks        what the JSON in it must be
    chain         checksums, by which damage is seen
    acknowledged  how far it went, beside it while it is written
    clean         text without halves of surrogate pairs
    schema        what makes an SQLite file a journal
    reading       opening a file without harm, and reading it
    tail          reading on, as it grows
    lock          the one writer
    notes         what a user notes of a study, beside it
    requests      what a user asks of the process that runs it
    writing       `Journal`, open for writing
"""

from __future__ import annotations

from raybo.journal.checks import fits
from raybo.journal.clean import clean, clean_text
from raybo.journal.lock import holder, in_use
from raybo.journal.reading import as_path, exists, is_marked, read, require_exists, require_no_journal
from raybo.journal.tail import Tail
from raybo.journal.writing import Journal

__all__ = [
    "Journal",
    "Tail",
    "as_path",
    "clean",
    "clean_text",
    "exists",
    "fits",
    "holder",
    "in_use",
    "is_marked",
    "read",
    "require_exists",
    "require_no_journal",
]
