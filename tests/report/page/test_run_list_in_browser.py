"""The page of a list of runs, opened in a real browser."""

from __future__ import annotations

import pytest

import bfreplay
from bfreplay.report.page.run_list_page import write_run_list
from tests.experiments.run_comparison.little_runs import endless_jobs, run, two_hours


@pytest.mark.parametrize("width", [1280, 390])
def test_the_list_sorts_links_and_fits_a_wide_screen_and_a_phone(open_page, tmp_path, width):
    for t_fwd in (30.0, 120.0, 60.0):
        run(two_hours(), endless_jobs(), t_fwd=t_fwd, out=tmp_path / f"run <{t_fwd:g}>")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("no")
    opened = open_page(
        write_run_list(bfreplay.list_runs(tmp_path), tmp_path / "runs.html"), viewport={"width": width, "height": 800}
    )
    assert opened.column("runs", "run") == ["broken", "run <120>", "run <30>", "run <60>"]
    for order in (["120.0", "60.0", "30.0", ""], ["30.0", "60.0", "120.0", ""]):
        opened.header("runs", "policy.t_fwd_s").click()
        assert opened.column("runs", "policy.t_fwd_s") == order
    link = opened.page.locator("#runs tbody a").first
    assert link.evaluate("(a) => a.href") == (tmp_path / "run <30>").as_uri()
    assert opened.run("document.documentElement.scrollWidth <= innerWidth")
