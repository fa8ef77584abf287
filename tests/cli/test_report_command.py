"""``bfreplay report`` as a user types it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from tests.report.page.read_page import ReadPage


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of a morning of the bundled log, and one of another morning."""
    folder = tmp_path_factory.mktemp("runs")
    window = ["--window", "2024-07-01T06:00", "2024-07-01T10:00", "--quiet"]
    for name, options in {
        "exact": [],
        "equal-share": ["--policy", "equal-share"],
        "published": ["--formulation", "published"],
    }.items():
        _ok(["replay", "sample", "--jobs", "sample", *window, *options, "--out", str(folder / name)])
    later = ["--window", "2024-07-02T06:00", "2024-07-02T07:00", "--quiet"]
    _ok(["replay", "sample", "--jobs", "sample", *later, "--out", str(folder / "later")])
    (folder / "finish").mkdir()
    (folder / "finish" / "finish.json").touch()
    return folder


def test_a_run_becomes_a_page_that_says_where_it_is(runs, tmp_path):
    page = tmp_path / "page.html"
    done = _ok(["report", str(runs / "exact"), "-o", str(page)])
    assert done.stderr.strip() == f"wrote {page}"
    assert done.stdout == ""
    read = ReadPage(page.read_text())
    assert read.headings[1] == ("h2", "Answer")
    assert {"timeline", "node-hours", "jobs", "job-table"} <= set(read.ids)


def test_several_runs_are_compared_on_one_page(runs, tmp_path):
    page = tmp_path / "three.html"
    names = ("exact", "equal-share", "published")
    _ok(["report", *(str(runs / name) for name in names), "-o", str(page), "--quiet"])
    read = ReadPage(page.read_text())
    assert read.tables["key-figures"].columns == ["what", "A", "B", "C"]
    assert all(name in page.read_text() for name in names)


def test_a_page_that_is_there_is_replaced_only_when_asked(runs, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("mine")
    refused = CliRunner().invoke(main, ["report", str(runs / "exact"), "-o", str(page)])
    assert refused.exit_code == 2
    assert page.read_text() == "mine"
    assert "--force" in refused.stderr
    _ok(["report", str(runs / "exact"), "-o", str(page), "--force"])
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "there is no such folder"),
        (["{runs}"], "it has no run.json"),
        (["{runs}/exact", "-o", "page.pdf"], "a name ending in .html"),
        (["{runs}/exact", "-o", "no/such/page.html"], "the folder of the output does not exist"),
        (["{runs}/exact", "-o", "a" * 300 + ".html"], "choose another name"),
        (["{runs}/exact", "{runs}/later"], "window"),
        (["{runs}/exact", "{runs}/nowhere"], "there is no such folder"),
        (["{runs}/exact", "{runs}/finish"], "finish; to compare two searches: bfreplay finish --jobs FIRST --against"),
    ],
)
def test_what_cannot_be_shown_is_said_and_nothing_is_written(runs, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["report", *(each.format(runs=runs) for each in arguments)])
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def _ok(arguments):
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done
