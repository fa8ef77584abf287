"""The page of a followed cluster, opened in a real browser while it is written anew."""

from __future__ import annotations

import pytest

from bfreplay.report.page import live_page
from bfreplay.report.page.live_page import STATE_ORDER, write_live_page
from bfreplay.result_folders.live import JobNow, LiveStatus, PartitionNow, Span

_CARDS = "[...document.querySelectorAll('.card-value')].map((card) => card.textContent)"


def large(n_idle: int, poll_s: float = 3600.0) -> LiveStatus:
    """Ten thousand nodes, many partitions, and names without a place to break them."""
    job = JobNow(name="job-" * 30, n_nodes=800, nodes=f"n[{','.join(map(str, range(1, 1600, 2)))}]")
    return LiveStatus(
        version="1",
        source="slurm",
        cluster="cluster" * 12,
        time="2024-01-01T00:00:10Z",
        began="2024-01-01T00:00:00Z",
        until="2024-01-01T00:00:05Z",
        poll_s=poll_s,
        hold_back_s=3.0,
        pool="startable",
        problem="",
        n_nodes=10_000,
        by_state={**dict.fromkeys(STATE_ORDER, 1), "idle": n_idle, "busy": 9_992 - n_idle},
        idle=n_idle + 2,
        startable=n_idle,
        lent=0,
        partitions=[PartitionNow(name=f"{'partition' * 8}{number}", by_state={"idle": 7}) for number in range(300)],
        reasons={"x" * 300: 1, "<script>document.title = 'broken'</script>": 2},
        jobs=[job],
        decisions=[],
        ledger_node_hours={"idle": 1.5, "useful": 1.0},
        ledger_since="2024-01-01T00:00:00Z",
        ledger_before={},
        spans=[Span(kind="gap", start="2024-01-01T00:00:01Z", end="2024-01-01T00:00:02Z", words="word " * 40)] * 30,
        notes=["y" * 300],
        polls=3,
        unanswered=1,
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_shows_new_numbers_by_itself_and_fits_a_wide_screen_and_a_phone(open_page, tmp_path, width):
    file = tmp_path / "idle.html"
    write_live_page(large(2, poll_s=1.0), file)
    opened = open_page(file, viewport={"width": width, "height": 800})
    for n_idle, poll_s, startable in ((5678, 1.0, "5,678"), (1234, 3600.0, "1,234")):  # again and again
        write_live_page(large(n_idle, poll_s), file)
        opened.page.wait_for_selector(f".card-value:text-is('{startable}')")
    opened.page.wait_for_selector("html[data-complete]")
    assert opened.run(_CARDS) == ["1,236", "1,234", "800"]
    assert opened.run("document.documentElement.scrollWidth <= innerWidth")
    assert len(opened.column("table-1", "partition")) == 300
    assert "broken" not in opened.page.title()
    assert not opened.page.locator("#stale").is_visible()
    assert len(opened.asked) >= 3
    assert set(opened.asked) == {file.as_uri()}
    opened.asked.clear()


def test_a_page_that_nobody_writes_any_more_says_so(open_page, tmp_path, monkeypatch):
    seconds = live_page.time()
    monkeypatch.setattr(live_page, "time", lambda: seconds - 100_000)
    write_live_page(large(3), tmp_path / "idle.html")
    assert open_page(tmp_path / "idle.html").page.locator("#stale").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_fault_of_accessibility_but_that_it_loads_itself_anew(open_page, tmp_path, scheme):
    from axe_playwright_python.sync_playwright import Axe

    write_live_page(large(3), tmp_path / "idle.html")
    opened = open_page(tmp_path / "idle.html", color_scheme=scheme)
    violations = Axe().run(opened.page).response["violations"]
    assert [rule["id"] for rule in violations] == ["meta-refresh"]
