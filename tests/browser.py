"""A real browser for tests of pages."""

from __future__ import annotations

import contextlib
import shutil

import pytest

LONG = 240_000  # milliseconds, for software WebGL on a busy machine
SLOW_DRAWING = "GL Driver Message (OpenGL, Performance"  # Chromium's remark on WebGL in software, not on the page


@contextlib.contextmanager
def chromium():
    """Headless Chromium; WebGL in software, for machines without a graphics card."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api")
    arguments = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=arguments, timeout=LONG)
        yield opened
        opened.close()


@contextlib.contextmanager
def tab_of(browser, width=1200, **context):
    """Yield a tab, the errors and warnings of its console, and the addresses that it requested."""
    opened = browser.new_context(viewport={"width": width, "height": 900}, **context)
    tab, messages, asked = opened.new_page(), [], []

    def keep(message):
        if message.type in ("error", "warning") and SLOW_DRAWING not in message.text:
            messages.append(message.text)

    tab.on("console", keep)
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss()))
    tab.set_default_timeout(LONG)
    try:
        yield tab, messages, asked
    finally:
        opened.close()
