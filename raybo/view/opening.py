"""Opening the page in a browser without showing the token to other users of the machine.

Command lines are readable by every local user. So the browser is given a file that only its owner may read, which
redirects to the address.
"""

from __future__ import annotations

import contextlib
import html
import os
import shutil
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path

PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>raybo</title>
<p>Opening the <a href="{address}">study</a> ...
"""


@contextlib.contextmanager
def opened_in_browser(address: str) -> Iterator[None]:
    """Open the address in a browser by way of a private file, which is removed at the end of the context."""
    directory = tempfile.mkdtemp(prefix="raybo-view-")  # mode 0700
    try:
        page = Path(directory) / "open.html"
        descriptor = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(PAGE.format(address=html.escape(address)))
        webbrowser.open(page.as_uri())
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)
