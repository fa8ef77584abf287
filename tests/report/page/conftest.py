"""A real browser, and pages for it to open."""

from __future__ import annotations

import os
import shutil

import pytest

_TIMEOUT_MS = 600_000  # a machine may be slow
_SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; tests that need it skip, by name, where there is none.

    Not one for the whole session: as long as it is open, no test after it in its process can run an event loop.
    In CI, which has it, BFREPLAY_REQUIRE_BROWSER makes its absence an error.
    """
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        message = f"there is no browser to open pages in (none of {', '.join(_NAMES)} is on the PATH)"
        if os.environ.get("BFREPLAY_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(_SWITCHES), timeout=_TIMEOUT_MS)
        yield chromium
        chromium.close()


class OpenPage:
    """A page opened from its file, and all that it did beside."""

    def __init__(self, browser, file, **options):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.asked, self.said = [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.context.set_default_timeout(_TIMEOUT_MS)
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-complete]")

    def did_nothing_beside(self):
        """Assert that it fetched nothing but itself, and said nothing."""
        assert [url for url in self.asked[1:] if not url.startswith(("data:", "blob:"))] == []
        assert self.said == []

    def run(self, script, *arguments):
        """Value of a JavaScript expression."""
        return self.page.evaluate(script, *arguments)

    def view(self):
        """Seconds since the start of the window that figures over time show, from and to."""
        return tuple(self.run("[view.from, view.to]"))

    def column(self, table, key):
        """Values of the rows that a table shows now, of the column of this key."""
        return self.run(
            """([table, key]) => {
                const headers = [...document.querySelectorAll(`#${table} thead th`)];
                const column = headers.findIndex((header) => header.dataset.column === key);
                const rows = [...document.querySelectorAll(`#${table} tbody tr`)];
                return rows.map((row) => row.cells[column].dataset.value);
            }""",
            [table, key],
        )

    def wide_plots(self):
        """Pictures that are wider than their place."""
        return self.run(
            """[...document.querySelectorAll('.plot')]
                .filter((plot) => plot.scrollWidth > plot.clientWidth + 1).map((plot) => plot.id)"""
        )

    def header(self, table, key):
        """The button that sorts by this column."""
        return self.page.locator(f'#{table} th[data-column="{key}"] button')


@pytest.fixture
def open_page(browser):
    """Opens a file in a context of its own; fails the test if the page fetched or said anything."""
    opened = []

    def opens(file, **options):
        opened.append(OpenPage(browser, file, **options))
        return opened[-1]

    yield opens
    for each in opened:
        each.context.close()
        each.did_nothing_beside()
