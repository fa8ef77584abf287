"""``bfreplay datasets``."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.datasets.public_logs import catalogue, entries
from tests.datasets.public_logs.web_server import serving

OTHER_CATALOGUE = """
[[log]]
name = "small"
title = "made up"
format = "swf"
quality = "B"
jobs = 1
nodes = 4
clock = "relative"
good_for = "tests"
bad_for = "results"
traps = ["none"]
licence = "none"
acknowledge = "nobody"
citation = "nothing"
page = "https://example.org"
ingest = "bfreplay ingest swf small.swf -o small.parquet"

[[log.file]]
name = "small.swf"
bytes = 11
sha256 = "DIGEST"
addresses = ["ADDRESS/small.swf"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The data folder, not yet made."""
    monkeypatch.setenv("BFREPLAY_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server with the one log of another catalogue."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as running:
        running.bodies = {"small.swf": b"1 0 0 60 4\n"}
        digest = hashlib.sha256(running.bodies["small.swf"]).hexdigest()
        (tmp_path / "catalogue.toml").write_text(
            OTHER_CATALOGUE.replace("ADDRESS", running.address).replace("DIGEST", digest)
        )
        monkeypatch.setattr(entries, "CATALOGUE", tmp_path / "catalogue.toml")
        yield running


def run(*words: str):
    return CliRunner().invoke(main, ["datasets", *words])


def test_list_names_every_log_and_the_folder(folder):
    result = run("list")
    assert result.exit_code == 0, result.output
    for log in catalogue():
        assert f"\n{log.name} " in result.stdout
    assert str(folder) in result.stdout
    assert all(len(line) <= 120 for line in result.stdout.splitlines())


def test_list_says_which_logs_are_there(folder, server):
    assert [entry["fetched"] for entry in json.loads(run("list", "--json").stdout)] == ["no"]
    assert run("fetch", "small").exit_code == 0
    assert [entry["fetched"] for entry in json.loads(run("list", "--json").stdout)] == ["yes"]
    (folder / "small.swf").write_text("2")
    assert "wrong file" in run("list").stdout


@pytest.mark.parametrize("log", catalogue(), ids=lambda log: log.name)
def test_info_tells_terms_traps_hashes_and_the_command(log, folder):
    text = run("info", log.name).stdout
    flat = " ".join(text.split())
    for word in (log.title, log.licence, log.acknowledge, log.citation, log.page, *log.traps):
        assert " ".join(word.split()) in flat
    for file in log.files:
        for word in (file.name, file.sha256, file.content_sha256, *file.addresses):
            assert word in text
    document = json.loads(run("info", log.name, "--json").stdout)
    assert document["files"][0]["sha256"] == log.files[0].sha256
    if log.ingest is not None:
        assert f"{folder}/{log.files[0].name}" in document["ingest"]
        assert document["ingest"] in text


def test_an_unknown_name_gets_a_suggestion_and_exit_code_2(folder):
    for words in (["info", "kth"], ["fetch", "kth-sp2-1995"]):
        result = run(*words)
        assert result.exit_code == 2
        assert "kth-sp2-1996" in result.stderr
    assert not folder.exists()


def test_fetch_prints_where_the_files_are(folder, server):
    result = run("fetch", "small")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{folder / 'small.swf'}\n"
    assert result.stderr == ""
    assert (folder / "small.swf").read_bytes() == b"1 0 0 60 4\n"


def test_fetch_puts_them_elsewhere_on_demand(folder, server, tmp_path):
    assert run("fetch", "--all", "--to", str(tmp_path / "here")).stdout == f"{tmp_path / 'here' / 'small.swf'}\n"
    assert not folder.exists()


def test_a_wrong_file_stops_fetch_with_exit_code_2_until_forced(folder, server):
    folder.mkdir()
    (folder / "small.swf").write_text("mine")
    result = run("fetch", "small")
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert run("fetch", "small", "--force").exit_code == 0
    assert (folder / "small.swf").read_bytes() == b"1 0 0 60 4\n"


def test_a_download_that_fails_ends_with_exit_code_3_and_the_way_on(folder, server):
    server.bodies = {}
    result = run("fetch", "small")
    assert result.exit_code == 3
    assert "404" in result.stderr
    assert server.url("small.swf") in result.stderr
    assert "bfreplay datasets fetch small --from FOLDER" in result.stderr
    assert "Traceback" not in result.output
    assert not folder.exists()


def test_fetch_needs_names_or_all_and_not_both(folder):
    for words in (["fetch"], ["fetch", "--all", "kth-sp2-1996"]):
        result = run(*words)
        assert result.exit_code == 2
        assert "--all" in result.output


def test_everything_comes_from_a_folder(folder, shared):
    result = run("fetch", "--all", "--from", str(shared / "data/logs"))
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == sum(len(log.files) for log in catalogue())
    assert {entry["fetched"] for entry in json.loads(run("list", "--json").stdout)} == {"yes"}


def test_all_leaves_out_what_nobody_serves_and_says_so(folder, server, monkeypatch):
    text = entries.CATALOGUE.read_text()
    unserved = text.replace('"small"', '"unserved"').replace("small.swf", "unserved.swf")
    unserved = "\n".join(line for line in unserved.splitlines() if not line.startswith("addresses"))
    entries.CATALOGUE.with_name("both.toml").write_text(text + unserved)
    monkeypatch.setattr(entries, "CATALOGUE", entries.CATALOGUE.with_name("both.toml"))
    result = run("fetch", "--all")
    assert result.exit_code == 0, result.output
    assert "unserved is skipped" in result.stderr
    assert result.stdout == f"{folder / 'small.swf'}\n"


def test_help_and_list_load_no_network_library(folder):
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from bfreplay.commands.datasets import datasets\n"
        "loaded = {'pooch', 'requests', 'numpy', 'rich.progress'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "assert CliRunner().invoke(datasets, ['list']).exit_code == 0\n"
        "assert 'requests' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
