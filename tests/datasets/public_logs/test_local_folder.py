"""Taking logs out of a folder."""

from __future__ import annotations

import gzip

import pytest

from bfreplay.datasets.public_logs import catalogue, fetch, fetch_all
from bfreplay.datasets.public_logs.fetching import data_folder, fetch_state
from bfreplay.errors import InputError
from tests.datasets.public_logs.web_server import made_file, made_log

BODY = b"1 0 0 60 4\n" * 1000
PACKED = gzip.compress(BODY, 9, mtime=7)
LOG = made_log("mine", made_file("a.swf.gz", PACKED, "https://example.org/raw/data.txt", content=BODY))
PLAIN = made_log("plain", made_file("a.swf", BODY))


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "folder").mkdir()
    (folder / "empty").write_bytes(b"")
    return folder


@pytest.mark.parametrize("name", ["a.swf.gz", "data.txt.gz", "renamed"])
def test_a_file_is_found_under_its_name_that_of_its_address_or_any(source, tmp_path, name):
    (source / name).write_bytes(PACKED)
    (path,) = fetch(LOG, tmp_path / "data", source=source)
    assert path == tmp_path / "data" / "a.swf.gz"
    assert path.read_bytes() == PACKED


@pytest.mark.parametrize("name", ["a.swf", "data.txt", "renamed"])
def test_an_uncompressed_one_is_compressed(source, tmp_path, name):
    (source / name).write_bytes(BODY)
    (path,) = fetch(LOG, tmp_path / "data", source=source)
    assert gzip.decompress(path.read_bytes()) == BODY
    assert fetch_state(LOG, tmp_path / "data") == "yes"


def test_one_compressed_in_another_way_is_taken_as_it_is(source, tmp_path):
    other = gzip.compress(BODY, 1, mtime=8)
    (source / "renamed").write_bytes(other)
    assert fetch(LOG, tmp_path / "data", source=source)[0].read_bytes() == other


def test_a_compressed_one_is_unpacked_where_the_name_asks_for_it(source, tmp_path):
    (source / "a.swf.gz").write_bytes(PACKED)
    assert fetch(PLAIN, tmp_path / "data", source=source)[0].read_bytes() == BODY


def test_a_wrong_file_of_the_right_name_does_not_hide_the_right_one(source, tmp_path):
    (source / "a.swf.gz").write_bytes(b"something else")
    (source / "zz").write_bytes(PACKED)
    assert fetch(LOG, tmp_path / "data", source=source)[0].read_bytes() == PACKED


@pytest.mark.parametrize(
    "damaged",
    [PACKED[:-3], PACKED[:20] + b"\0\0\0" + PACKED[23:], gzip.compress(BODY + b"1", mtime=7)],
    ids=["cut", "spoilt", "longer"],
)
def test_a_damaged_or_longer_file_is_refused_by_name(source, tmp_path, damaged):
    (source / "a.swf.gz").write_bytes(damaged)
    with pytest.raises(InputError) as error:
        fetch(LOG, tmp_path / "data", source=source)
    assert "a.swf.gz in it is another file" in str(error.value)
    assert LOG.files[0].sha256 in str(error.value)
    assert "https://example.org/raw/data.txt" in str(error.value)
    assert not (tmp_path / "data").exists()


def test_all_that_is_missing_is_told_at_once_and_the_rest_is_taken(source, tmp_path):
    (source / "a.swf").write_bytes(BODY)
    lost = [made_log(name, made_file(name, name.encode())) for name in ("one", "two")]
    with pytest.raises(InputError, match="2 of 3 public logs could not be fetched") as error:
        fetch_all([*lost, PLAIN], tmp_path / "data", source=source)
    assert "one: one (3 bytes)" in str(error.value)
    assert "two: two (3 bytes)" in str(error.value)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["a.swf"]


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="the folder to take files from is not there"):
        fetch(PLAIN, tmp_path, source=tmp_path / "nowhere")


def test_a_log_half_there_is_said_to_be(tmp_path):
    log = made_log("two", made_file("a", b"a"), made_file("b", b"b"))
    assert fetch_state(log, tmp_path) == "no"
    (tmp_path / "a").write_bytes(b"a")
    assert fetch_state(log, tmp_path) == "in part"
    (tmp_path / "b").write_bytes(b"c")
    assert fetch_state(log, tmp_path) == "wrong file"
    (tmp_path / "b").write_bytes(b"b")
    assert fetch_state(log, tmp_path) == "yes"


def test_the_whole_catalogue_comes_out_of_the_shared_folder(shared, tmp_path):
    there = fetch_all([log.name for log in catalogue()], tmp_path, source=shared / "data/logs")
    assert set(there) == {log.name for log in catalogue()}
    for paths in there.values():
        for path in paths:
            assert path.read_bytes() == (shared / "data/logs" / path.name).read_bytes()


def test_the_data_folder_is_the_users_unless_the_variable_names_another(tmp_path, monkeypatch):
    monkeypatch.setenv("BFREPLAY_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("BFREPLAY_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "bfreplay"
