"""The report about the whole Summit log: seconds to write it, its size, and seconds until a browser can use it.

Run it: ``python benchmarks/bench_report.py``. It needs Chromium on the PATH and the ``dev`` extra. Three pages: 10 jobs
at once, 70 at once, and three runs compared (exact, equal share, published limit). The page is opened from its file,
five times each; "text" is the first paint, "ready" when tables sort and the first picture can be zoomed into,
"complete" when every picture is there.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from measure import SUMMIT, heading, table_head, table_row
from playwright.sync_api import Browser, sync_playwright
from real_logs import published_jobs

from bfreplay import BFTrainerPolicy, EqualSharePolicy, ReplaySettings, load_events, replay_log, solver_of
from bfreplay.experiments import compare
from bfreplay.report.page.document import write_comparison_report, write_report
from bfreplay.result_folders.comparison import RunComparison
from bfreplay.runs import RunResult

REPEATS = 5
_WATCH = """
    window.marks = {};
    new MutationObserver(() => {
        const state = document.documentElement?.dataset ?? {};
        for (const name of ["ready", "complete"]) if (name in state) marks[name] ??= performance.now();
    }).observe(document, {attributes: true, subtree: true, childList: true});
"""


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        print(heading("The report of two weeks of Summit"))
        table_head("page", "written in, s", "size, MB", "text, s", "ready, s", "complete, s")
        for name, write in _pages(Path(folder)):
            begun = perf_counter()
            page = write(Path(folder) / f"{name}.html")
            written_s = perf_counter() - begun
            opened = [_opened(browser, page) for _ in range(REPEATS)]
            medians = [statistics.median(each) for each in zip(*opened, strict=True)]
            table_row(name, f"{written_s:.2f}", f"{page.stat().st_size / 1e6:.2f}", *(f"{s:.2f}" for s in medians))
        browser.close()


def _pages(folder: Path):
    log = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    jobs = published_jobs("ImageNet")
    policies = {
        "10 jobs": (BFTrainerPolicy(120), 10),
        "70 jobs": (BFTrainerPolicy(120), 70),
        "equal share": (EqualSharePolicy(), 10),
        "published limit": (BFTrainerPolicy(120, solver=solver_of("exact", "published")), 10),
    }
    for name, (policy, parallel) in policies.items():
        replay_log(log, jobs, policy, ReplaySettings(parallel), unlimited_work=True, out=folder / name)
    for name in ("10 jobs", "70 jobs"):
        yield name, lambda file, name=name: write_report(folder / name, file)
    runs = [folder / name for name in ("10 jobs", "equal share", "published limit")]

    def compared(file: Path) -> Path:
        compare(*runs, out=folder / "comparison")
        by_label = dict(zip("ABC", map(RunResult.load, runs), strict=True))
        return write_comparison_report(by_label, file, RunComparison.load(folder / "comparison"))

    yield "three compared", compared


def _opened(browser: Browser, file: Path) -> tuple[float, float, float]:
    """Seconds from the start of loading to text, ready and complete."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(_WATCH)
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-complete]")
    paint_ms = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    marks = page.evaluate("marks")
    context.close()
    return paint_ms / 1e3, marks["ready"] / 1e3, marks["complete"] / 1e3


if __name__ == "__main__":
    main()
