"""The dashboard: studies in a browser, while they run and afterwards, served to this machine alone.

followed   a journal that is read as it grows, and its study
shelf      the journals that a page is about
facts      the facts of a study that the page shows, as JSON
trial      the facts of one trial, as JSON
figures    the report's figures, made beside the server and kept while nothing has happened
parallel   the one of them that plotly draws in a way that the page's policy forbids
files      what a trial has left, read without leaving its directory
actions    what the page may change: stop a study, enqueue a configuration, take a note
guard      authenticates requests: the token, the host, the origin
server     the paths and their handlers
serving    on this machine, until it is stopped
page/      the page itself: HTML, CSS and JavaScript modules, as they are sent
"""

from __future__ import annotations
