"""The catalogue that ships with bfreplay."""

from __future__ import annotations

import gzip
import hashlib
import re
import shlex
from urllib.parse import urlsplit

import pytest

from bfreplay.datasets.public_logs import catalogue
from bfreplay.datasets.public_logs.entries import QUALITIES, public_log
from bfreplay.datasets.public_logs.fetching import fetch_state
from bfreplay.errors import InputError

LOGS = pytest.mark.parametrize("log", catalogue(), ids=lambda log: log.name)
INGESTIBLE = ("slurm", "pbs", "swf", "cobalt", "lsf", "flux", "batsim", "table")


def test_names_of_logs_and_of_files_are_unique():
    names = [log.name for log in catalogue()]
    files = [file.name for log in catalogue() for file in log.files]
    assert len(set(names)) == len(names) >= 12
    assert len(set(files)) == len(files)


def test_every_file_of_the_manifest_is_in_the_catalogue_with_the_same_size_and_hash(shared):
    rows = re.findall(
        r"^\| (\S+) \| (\d+) \|.*\| `([0-9a-f]{64})` \|$", (shared / "data/logs/MANIFEST.md").read_text(), re.MULTILINE
    )
    assert len(rows) == 17
    assert {(f.name, f.bytes, f.sha256) for log in catalogue() for f in log.files} == {
        (name, int(size), digest) for name, size, digest in rows
    }


@LOGS
def test_the_shared_files_of_a_log_are_right_byte_by_byte_and_in_content(log, shared):
    assert fetch_state(log, shared / "data/logs") == "yes"
    for file in log.files:
        body = (shared / "data/logs" / file.name).read_bytes()
        content = gzip.decompress(body) if file.name.endswith(".gz") else body
        assert (len(body), hashlib.sha256(body).hexdigest()) == (file.bytes, file.sha256)
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.content_bytes, file.content_sha256)


@LOGS
def test_an_entry_says_everything_a_user_has_to_know(log):
    for words in (log.title, log.clock, log.good_for, log.bad_for, log.licence, log.acknowledge, log.citation):
        assert words.strip()
    assert log.traps
    assert log.format in INGESTIBLE
    assert log.quality in QUALITIES
    assert log.page.startswith("https://")
    assert (log.start is None) == (log.end is None)
    if log.start and log.end:
        assert log.start <= log.end
    else:
        assert log.clock.startswith("relative")


@LOGS
def test_addresses_do_not_move_and_an_unserved_file_says_why(log):
    for file in log.files:
        assert file.addresses or file.about
        for address in file.addresses:
            parts = urlsplit(address)
            assert parts.scheme == "https"
            if parts.netloc == "raw.githubusercontent.com":  # a commit, never a branch
                assert re.fullmatch(r"[0-9a-f]{40}", parts.path.split("/")[3])
            else:
                assert parts.netloc == "www.cs.huji.ac.il"
                assert address == log.page + file.name


@pytest.mark.parametrize("log", [log for log in catalogue() if log.ingest], ids=lambda log: log.name)
def test_the_ingest_command_reads_files_of_the_log(log):
    words = shlex.split(log.ingest)
    assert words[:2] == ["bfreplay", "ingest"]
    assert words[2] == log.format
    assert words[3] in {file.name for file in log.files}
    assert words[-2:] == ["-o", f"{log.name}.parquet"]


def test_logs_that_give_nothing_sensible_have_no_command():
    assert [log.name for log in catalogue() if log.ingest is None] == ["llnl-thunder-2007", "alcf-mira-maintenance"]


def test_a_misspelt_name_gets_the_nearest_one_told():
    with pytest.raises(InputError, match="did you mean 'kth-sp2-1996'") as error:
        public_log("kth-sp2")
    assert "xdmod-phillips" in str(error.value)


def test_a_name_like_nothing_is_pointed_to_the_list():
    with pytest.raises(InputError, match="bfreplay datasets list"):
        public_log("zzzz")
