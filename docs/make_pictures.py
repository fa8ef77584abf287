"""Make the pictures of the tutorial and the gallery from the bundled log: ``python docs/make_pictures.py``.

Those that matplotlib draws are the same each time; a test holds them. Screenshots of the report need playwright and a
Chromium; without them they stay as they are.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from PIL import Image

from bfreplay.cli import main as bfreplay

PICTURES = Path(__file__).resolve().parent / "pictures"

# the runs of the tutorial, by their folders
RUNS = {
    "run": (),
    "ten": ("--unlimited-work", "--no-bound"),
    "twenty": ("--unlimited-work", "--max-parallel", "20", "--no-bound"),
}
# picture: figure, and the runs that it shows
PLOTS = {"timeline.png": ("timeline", "run"), "node-hours-compared.png": ("node-hours", "ten", "twenty")}
GALLERY = sorted((PICTURES.parents[1] / "examples" / "gallery").glob("*.py"))
OF_DESCRIBE = ("idle-over-time.png", "interval-lengths.png")
SCREENSHOTS = ("report-top.png", "report-zoomed.png")

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
_WIDTH = 1000
_ZOOM_FROM_H, _ZOOM_TO_H = 66, 72
_COLOURS = 96  # more are not seen, and weigh


def make_runs(folder: Path) -> None:
    """Replay the bundled jobs on the bundled log, once for each of ``RUNS``."""
    for name, options in RUNS.items():
        _run("replay", "sample", "--jobs", "sample", *options, "--out", folder / name, "--quiet")


def draw(runs: Path, out: Path) -> None:
    """Draw the pictures of matplotlib, from the runs in the folder ``runs`` into the folder ``out``."""
    for picture, (figure, *names) in PLOTS.items():
        _run("plot", figure, *(runs / name for name in names), "-o", out / picture, "--force", "--quiet")
    _run("describe", "sample", "--pictures", runs / "describe", "--force")
    for picture in OF_DESCRIBE:
        shutil.copyfile(runs / "describe" / picture, out / picture)


def run_gallery_script(script: Path, folder: Path, out: Path) -> str:
    """Run a script of the gallery in ``folder`` and copy its picture into ``out``; return what it printed."""
    path = os.pathsep.join([str(PICTURES.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, script],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"},
    )
    shutil.copyfile(folder / f"{script.stem}.png", out / gallery_picture(script))
    return done.stdout


def gallery_picture(script: Path) -> str:
    """Return the name of a script's picture in the docs."""
    return f"gallery-{script.stem}.png"


def take_screenshots(runs: Path, out: Path, browser: str) -> None:
    """Photograph the report of the first run: its top, and its timeline zoomed to six hours."""
    from playwright.sync_api import sync_playwright

    page_file = runs / "report.html"
    _run("report", runs / "run", "-o", page_file, "--quiet")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=list(_SWITCHES))
        page = chromium.new_page(viewport={"width": _WIDTH, "height": 800}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-complete]")
        timeline = page.locator("#plot-timeline")
        box = timeline.bounding_box()
        page.screenshot(
            path=out / "report-top.png",
            full_page=True,
            clip={"x": 0, "y": 0, "width": _WIDTH, "height": box["y"] + box["height"] + 12},
        )
        page.evaluate(f"setView({_ZOOM_FROM_H * 3600}, {_ZOOM_TO_H * 3600})")
        page.wait_for_timeout(500)
        timeline.screenshot(path=out / "report-zoomed.png")
        chromium.close()
    for picture in SCREENSHOTS:
        Image.open(out / picture).quantize(_COLOURS).save(out / picture, optimize=True)


def _run(*words: str | Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        bfreplay([str(word) for word in words], standalone_mode=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=PICTURES, help="folder to write to (default: %(default)s)")
    to = parser.parse_args().out
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    with tempfile.TemporaryDirectory() as scratch:
        make_runs(Path(scratch))
        draw(Path(scratch), to)
        for script in GALLERY:
            run_gallery_script(script, Path(scratch), to)
        if found and find_spec("playwright"):
            take_screenshots(Path(scratch), to, found)
        else:
            print("No screenshots: they need playwright and one of", *_BROWSERS)
