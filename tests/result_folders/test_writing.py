"""A run folder appears whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay.errors import InputError, OutputExistsError
from bfreplay.result_folders.records import RUN
from bfreplay.result_folders.writing import new_folder, table_writer


def _write(target: Path, text: str = "new", *, overwrite: bool = False) -> None:
    with new_folder(target, RUN, overwrite=overwrite) as folder:
        (folder / RUN.record_file).write_text(text)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_appears_when_the_block_ends(tmp_path):
    with new_folder(tmp_path / "run", RUN, overwrite=False) as folder:
        (folder / RUN.record_file).write_text("x")
        assert not (tmp_path / "run").exists()
    assert _names(tmp_path) == ["run"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_when_the_block_fails(tmp_path, error):
    with pytest.raises(error), new_folder(tmp_path / "run", RUN, overwrite=False):
        raise error
    assert _names(tmp_path) == []


def test_an_earlier_run_stays_when_its_replacement_fails(tmp_path):
    _write(tmp_path / "run", "old")
    with pytest.raises(ValueError, match="no"), new_folder(tmp_path / "run", RUN, overwrite=True):
        raise ValueError("no")
    assert (tmp_path / "run" / RUN.record_file).read_text() == "old"
    assert _names(tmp_path) == ["run"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError])
def test_an_earlier_run_comes_back_when_the_exchange_is_interrupted(tmp_path, monkeypatch, error):
    _write(tmp_path / "run", "old")
    rename = Path.rename

    def interrupted(self, target):
        if ".partial-" in self.name:
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(InputError if error is OSError else error):
        _write(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / RUN.record_file).read_text() == "old"
    assert _names(tmp_path) == ["run"]


def test_a_run_is_replaced_only_on_request(tmp_path):
    _write(tmp_path / "run", "old")
    with pytest.raises(OutputExistsError):
        _write(tmp_path / "run")
    _write(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / RUN.record_file).read_text() == "new"
    assert _names(tmp_path) == ["run"]


def test_an_empty_folder_may_be_taken_and_a_file_never(tmp_path):
    (tmp_path / "empty").mkdir()
    _write(tmp_path / "empty")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputExistsError):
        _write(tmp_path / "file", overwrite=True)
    assert (tmp_path / "file").read_text() == "mine"


def test_what_appears_meanwhile_is_not_overwritten(tmp_path):
    place = new_folder(tmp_path / "run", RUN, overwrite=False)
    place.__enter__()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "theirs").touch()
    with pytest.raises(OutputExistsError):
        place.__exit__(None, None, None)
    assert _names(tmp_path / "run") == ["theirs"]


def test_links_are_followed_and_stay(tmp_path):
    _write(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    _write(tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / RUN.record_file).read_text() == "new"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    _write(tmp_path / "dangling")
    assert (tmp_path / "nowhere" / RUN.record_file).read_text() == "new"


def test_missing_parents_are_made_and_a_parent_that_is_a_file_is_refused(tmp_path):
    _write(tmp_path / "a" / "b" / "run")
    assert (tmp_path / "a" / "b" / "run" / RUN.record_file).is_file()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        _write(tmp_path / "file" / "run")


def test_the_folder_one_stands_in_is_not_replaced(tmp_path, monkeypatch):
    _write(tmp_path / "run", "old")
    monkeypatch.chdir(tmp_path / "run")
    with pytest.raises(OutputExistsError, match="contains the current directory"):
        _write(Path(), overwrite=True)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody may write: /proc")
def test_a_folder_that_cannot_be_written_is_an_input_error():
    with pytest.raises(InputError, match="cannot be written"):
        _write(Path("/proc") / f"run{os.getpid()}")


def test_only_texts_have_a_dictionary(tmp_path):
    kinds = {"word": pa.dictionary(pa.int16(), pa.string()), "text": pa.string(), "x": pa.float64(), "n": pa.int64()}
    schema = pa.schema({**kinds, "counts": pa.list_(pa.int32())})
    row = {"word": "a", "text": "b", "x": 1.0, "n": 1, "counts": [1, 1]}
    with table_writer(tmp_path / "t.parquet", schema) as writer:
        writer.write_table(pa.Table.from_pylist([row] * 9, schema))
    columns = pq.read_metadata(tmp_path / "t.parquet").row_group(0)
    with_one = [columns.column(i).path_in_schema for i in range(5) if columns.column(i).has_dictionary_page]
    assert with_one == ["word", "text"]
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == [row] * 9
