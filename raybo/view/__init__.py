"""The living page: studies in a browser, while they run and afterwards, served to this machine alone.

followed   a journal that is read as it grows, and its study
shelf      the journals that a page is about
facts      what the page is told of a study, as JSON
trial      the same of one trial
figures    the report's figures, made beside the server and kept while nothing has happened
parallel   the one of them that plotly draws in a way that the page's policy forbids
files      what a trial has left, read without leaving its directory
actions    what the page may change: stop a study, enqueue a configuration, take a note
guard      who may ask: the token, the host, the origin
server     the paths, and what answers them
serving    on this machine, until it is stopped
page/      the page itself: HTML, CSS and JavaScript modules, as they are sent
"""

from __future__ import annotations
