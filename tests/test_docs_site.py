"""The documentation site: all pages and commands are in it, its links lead somewhere, and it asks no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import click
import pytest
from filelock import FileLock

import bfreplay
from bfreplay.cli import main
from bfreplay.replay.pool_tables import IDLE_INTERVALS, POOL
from bfreplay.replay.tables import DECISIONS, JOBS, REPORTS
from bfreplay.runs.headline_metrics import COLUMNS

pytestmark = pytest.mark.slow  # the site is built

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# attributes by which a page makes a browser fetch something, and those by which it offers a way elsewhere
_FETCHED = {("link", "href"), ("object", "data"), *((tag, "src") for tag in ("script", "img", "source", "iframe"))}


@dataclass
class Page:
    """What one HTML file refers to, and what can be referred to in it."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    pictures_without_words: list[str] = field(default_factory=list)
    preformatted: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._in_pre = False

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.page.anchors.add(given["id"])
        for name, value in attrs:
            if (tag, name) in _FETCHED and given.get("rel") not in ("next", "prev", "index", "search", "canonical"):
                self.page.fetched.append(value)
            elif tag in ("a", "link") and name == "href":
                self.page.links.append(value)
        if tag == "img" and not given.get("alt", "").strip():
            self.page.pictures_without_words.append(given["src"])
        if tag == "pre":
            self._in_pre = True
            self.page.preformatted.append("")

    def handle_endtag(self, tag):
        if tag == "pre":
            self._in_pre = False

    def handle_data(self, data):
        if self._in_pre:
            self.page.preformatted[-1] += data


def _read(file: Path) -> Page:
    reader = _Reader()
    reader.feed(file.read_text(encoding="utf-8"))
    return reader.page


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> dict[Path, Page]:
    """Every page of the site by its file, built once as ``make docs`` builds it, but elsewhere."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers: the first of them builds
    with FileLock(folder / "site.lock"):
        if not (folder / "site").exists():
            done = _built(DOCS, folder / "unchecked")
            assert done.returncode == 0, done.stderr
            (folder / "unchecked").rename(folder / "site")
    return {file: _read(file) for file in sorted((folder / "site").rglob("*.html"))}


def _built(source: Path, to: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-d", f"{to}-doctrees"]
    return subprocess.run([*command, str(source), str(to)], capture_output=True, text=True, check=False)


def _page(site: dict[Path, Page], name: str) -> Page:
    return next(page for file, page in site.items() if file.name == name)


def _commands(command: click.Command, words: str) -> dict[str, click.Command]:
    found = {words: command}
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            found |= _commands(child, f"{words} {name}")
    return found


def test_every_page_of_the_docs_is_in_the_site_and_reached_from_its_first_page(site):
    names = {file.name for file in site}
    assert {f"{page.stem}.html" for page in DOCS.glob("*.md")} <= names
    seen, to_see = set(), ["index.html"]
    while to_see:
        name = to_see.pop()
        if name in names and name not in seen:
            seen.add(name)
            to_see += [link.partition("#")[0] for link in _page(site, name).links]
    assert {f"{page.stem}.html" for page in DOCS.glob("*.md")} <= seen


def test_every_link_within_the_site_leads_to_a_file_and_an_anchor(site):
    broken = []
    for file, page in site.items():
        for link in page.links:
            if link.startswith(("https://", "http://", "mailto:")):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (file.parent / path).resolve() if path else file
            if not target.is_file() or (anchor and target in site and anchor not in site[target].anchors):
                broken.append((file.name, link))
    assert broken == []


def test_nothing_is_fetched_from_a_network(site):
    for file, page in site.items():
        for reference in page.fetched:
            assert not re.match(r"(\w+:)?//", reference), (file.name, reference)
            assert (file.parent / unquote(reference.partition("?")[0])).is_file(), (file.name, reference)
    styles = list(next(iter(site)).parent.rglob("*.css"))
    assert styles
    for file in styles:
        assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^'\")]+", file.read_text()) == [], file


def test_every_picture_has_words_for_those_who_do_not_see_it(site):
    assert {file.name: page.pictures_without_words for file, page in site.items() if page.pictures_without_words} == {}


def test_every_picture_of_the_docs_is_shown_somewhere():
    shown = "".join(page.read_text() for page in [ROOT / "README.md", *DOCS.glob("*.md")])
    unused = [p.name for p in sorted((DOCS / "pictures").iterdir()) if f"pictures/{p.name}" not in shown]
    assert unused == []


def test_the_command_reference_has_every_command_with_every_option(site):
    anchors = _page(site, "command-line.html").anchors
    for words, command in _commands(main, "bfreplay").items():
        prefix = words.replace(" ", "-")
        assert prefix in anchors
        for parameter in command.params:
            for option in parameter.opts if isinstance(parameter, click.Option) and not parameter.hidden else ():
                assert f"cmdoption-{prefix}-{option.lstrip('-')}" in anchors, (words, option)


def test_examples_in_the_command_reference_stand_as_they_were_written(site):
    shown = _page(site, "command-line.html").preformatted
    for words, command in _commands(main, "bfreplay").items():
        for paragraph in re.split(r"\n\s*\n", command.help or ""):
            if "\b" in paragraph:
                *_, last = paragraph.splitlines()
                assert any(last.strip() in text for text in shown), (words, last)


def test_the_python_reference_has_every_public_name(site):
    anchors = _page(site, "python.html").anchors
    assert [name for name in bfreplay.__all__ if name != "__version__" and f"bfreplay.{name}" not in anchors] == []


def test_the_page_on_sweeps_lists_every_metric_with_a_column(site):
    (page,) = (file for file in site if file.name == "sweeps.html")
    text = page.read_text()
    assert [name for name in COLUMNS if f">{name}<" not in text] == []


def test_the_page_on_run_folders_lists_every_column(site):
    (page,) = (file for file in site if file.name == "run-tables.html")
    text = page.read_text()
    names = {name for schema in (DECISIONS, JOBS, REPORTS, POOL, IDLE_INTERVALS) for name in schema.names}
    assert [name for name in sorted(names) if f">{name}<" not in text] == []
    assert "columns of" not in text


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path):
    source = tmp_path / "docs"
    source.mkdir()
    (source / "conf.py").write_text((DOCS / "conf.py").read_text())
    (source / "index.md").write_text("# Top\n\n[a page](missing.md) [a heading](#nowhere)\n")
    done = _built(source, tmp_path / "site")
    assert done.returncode != 0
    assert "missing.md" in done.stderr
    assert "nowhere" in done.stderr


def test_the_man_page_has_every_command_and_loses_no_line(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-b", "man", "-W", "-q", "-d", tmp_path / "doctrees", DOCS, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    source = (tmp_path / "bfreplay.1").read_text()
    text = source.replace("\\-", "-").replace("\\(aq", "'").replace("\\%", "")
    names = [line.strip('"') for line in re.findall(r"^\.SS (.*)$", text, re.MULTILINE)]
    assert {f"bfreplay {name}" for name in main.commands} <= set(names)
    assert "'sweep' draws the table of a folder" in text  # a line that begins with a quote is a command of roff
    assert [line for line in source.splitlines()[1:] if line.startswith("'")] == []
