"""The dashboard stays live in a real browser, without errors or requests elsewhere, whatever names there are."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest

from raybo.journal import Journal
from tests.browser import chromium, tab_of
from tests.reporting.studies import run
from tests.view.served import keep
from tests.view.test_facts import hostile_study


@pytest.fixture
def browser():
    with chromium() as opened:
        yield opened


@contextlib.contextmanager
def viewed(*places):
    """The address of the page, served by the command."""
    command = [sys.executable, "-m", "raybo.cli", "view", *map(str, places), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_is_live_and_whole(browser, tmp_path, width, scheme):
    study = run("random", 30)
    path = keep(study, tmp_path / "s.db", 30)
    with viewed(path) as address, tab_of(browser, width, color_scheme=scheme) as (tab, messages, asked):
        tab.goto(address)
        tab.wait_for_selector(".table .rows .row")
        assert "token" not in tab.url
        begun = sum(event.kind.value == "asked" for event in study.events[:30])
        tab.locator(".trials .bar").filter(has_text=f"{begun} trials").wait_for()
        journal = Journal(path, study.description)
        journal._insert(study.events[30:])
        journal.close()
        tab.locator(".trials .bar").filter(has_text="30 trials").wait_for()
        tab.wait_for_selector("figure")
        for key in tab.eval_on_selector_all("figure", "figures => figures.map(figure => figure.id)"):
            tab.locator(f"#{key}").scroll_into_view_if_needed()
            drawn = f"#{key} .trace, #{key} .bars path, #{key} .contourlayer path, #{key} .heatmaplayer"
            tab.wait_for_selector(f"{drawn} >> visible=true")  # of the bars of a timeline the first may be too short
        tab.click(".table .head button >> nth=2")
        values = tab.eval_on_selector_all(".table .rows .row", "rows => rows.map(row => row.children[2].textContent)")
        numbers = [float(value) for value in values if value]
        assert numbers == sorted(numbers)
        tab.fill("input[type=search]", "net.depth>=11")
        deep = sum(trial.config["net"]["depth"] >= 11 for trial in study.trials)
        tab.locator(".trials .bar").filter(has_text=f"{deep} of 30").wait_for()
        assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        tab.fill("input[type=search]", "")
        tab.focus(".table .rows .row a")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("h1:has-text('Trial')")
        tab.fill("textarea", "a note")
        tab.click("text=Add note")
        tab.wait_for_selector(".notes li")
        assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        assert messages == []
        assert [url for url in asked if not url.startswith((address.partition("?")[0], "data:", "blob:"))] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_hostile_names_are_text_and_nothing_else(browser, tmp_path):
    keep(hostile_study(), tmp_path / "bad.db")
    keep(run("random", 20), tmp_path / "good.db")
    with viewed(tmp_path) as address, tab_of(browser) as (tab, messages, _):
        tab.goto(address)
        tab.wait_for_selector("td:has-text('bad.db')")
        tab.wait_for_selector(".drawn .trace", state="attached")
        tab.click("a:has-text('bad.db')")
        tab.wait_for_selector(".table .rows .row")
        tab.locator("#figure-best-so-far").scroll_into_view_if_needed()  # it is drawn when it comes into sight
        tab.wait_for_selector("figure .trace", state="attached")
        assert "<script>alert(1)</script>" in tab.text_content("h1")
        tab.click(".table .rows .row a >> nth=0")
        tab.wait_for_selector("h1:has-text('Trial')")
        assert tab.evaluate("document.querySelectorAll('main script, main img').length") == 0
        assert messages == []
