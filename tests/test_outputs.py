"""Outputs appear whole; what killed processes left is removed, and what living ones write stays."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile

import pytest

from bfreplay import outputs
from bfreplay.errors import InputError
from bfreplay.outputs import remove_leftovers, scratch_prefix, temporary_name, write_whole, written_whole
from bfreplay.result_folders.records import RUN
from bfreplay.result_folders.writing import new_folder


def name_of_dead_process(name, kind):
    """The temporary name that a process used that has ended."""
    script = f"from bfreplay.outputs import temporary_name; print(temporary_name({name!r}, {kind!r}))"
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_text(file, text="new"):
    with written_whole([file], overwrite=True) as (part,):
        part.write_text(text)


def a_run(folder, text):
    folder.mkdir(parents=True)
    (folder / RUN.record_file).write_text(text)


def make_run(folder, *, overwrite=False):
    with new_folder(folder, RUN, overwrite=overwrite) as made:
        (made / RUN.record_file).write_text("new")


def test_a_file_that_a_killed_process_had_begun_is_removed_when_the_file_is_written_again(tmp_path):
    stale = tmp_path / name_of_dead_process("log.csv", "part")
    stale.write_text("half")
    (tmp_path / f"{stale.name}.form").write_text("half")
    other = tmp_path / name_of_dead_process("other.csv", "part")
    other.write_text("half")
    write_text(tmp_path / "log.csv")
    assert names(tmp_path) == [other.name, "log.csv"]
    assert (tmp_path / "log.csv").read_text() == "new"


def test_a_folder_that_a_killed_process_had_begun_is_removed_when_it_is_made_again(tmp_path):
    (tmp_path / f"{name_of_dead_process('run', 'partial')}-x1").mkdir()
    make_run(tmp_path / "run")
    assert names(tmp_path) == ["run"]


def test_what_a_living_process_writes_stays(tmp_path):
    ours = tmp_path / temporary_name("log.csv", "part")
    ours.write_text("half")
    remove_leftovers(tmp_path / "log.csv")
    assert names(tmp_path) == [ours.name]


def test_a_later_process_with_the_number_of_a_killed_one_keeps_nothing(tmp_path):
    machine_and_number = temporary_name("log.csv", "part").rpartition("-")[0]
    (tmp_path / f"{machine_and_number}-1").write_text("half")
    remove_leftovers(tmp_path / "log.csv")
    assert names(tmp_path) == []


def test_a_killed_process_that_nobody_has_waited_for_yet_counts_as_dead(tmp_path):
    script = "from bfreplay.outputs import temporary_name as name; print(name('log.csv', 'part'), flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    (tmp_path / process.stdout.readline().strip()).write_text("half")
    remove_leftovers(tmp_path / "log.csv")
    assert len(names(tmp_path)) == 1
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    remove_leftovers(tmp_path / "log.csv")
    assert names(tmp_path) == []
    process.communicate()


@pytest.mark.parametrize("owner", ["0a1b2c3d-17-99", "0a1b2c3d-17-99-x1", "xk3f9q2z"])
def test_what_another_machine_may_be_writing_is_named_and_stays(tmp_path, caplog, owner):
    foreign = tmp_path / f".run.partial-{owner}"
    foreign.mkdir()
    make_run(tmp_path / "run")
    assert names(tmp_path) == [foreign.name, "run"]
    assert f"{foreign} was left by another machine" in caplog.text


def test_a_machine_of_the_same_name_is_another_machine(tmp_path, monkeypatch, caplog):
    foreign = tmp_path / name_of_dead_process("log.csv", "part")
    foreign.touch()
    monkeypatch.setattr(outputs, "_BOOT_ID", tmp_path / "missing")
    remove_leftovers(tmp_path / "log.csv")
    assert names(tmp_path) == [foreign.name]
    assert f"{foreign} was left by another machine" in caplog.text


def test_a_leftover_that_another_process_removes_at_the_same_time_is_no_error(tmp_path, monkeypatch):
    listed = [name_of_dead_process("log.csv", "part")]
    monkeypatch.setattr(os, "listdir", lambda _: listed)
    remove_leftovers(tmp_path / "log.csv")


def test_a_process_of_another_user_is_not_the_one_that_wrote(tmp_path, monkeypatch):
    def refuse(process, number):
        raise PermissionError

    ours = tmp_path / temporary_name("log.csv", "part")
    ours.touch()
    monkeypatch.setattr(os, "kill", refuse)
    remove_leftovers(tmp_path / "log.csv")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["a" * 251 + ".csv", "ü" * 127])
def test_the_longest_names_are_written_and_their_leftovers_removed(tmp_path, name):
    other = tmp_path / name_of_dead_process(f"{name[:-1]}x", "part")
    for stale in (other, tmp_path / name_of_dead_process(name, "part")):
        stale.touch()
    write_text(tmp_path / name)
    assert names(tmp_path) == [other.name, name]
    make_run(tmp_path / name[:100] / name)


def test_an_output_below_an_executable_file_is_refused(tmp_path):
    script = tmp_path / "script"
    script.touch(mode=0o755)
    with pytest.raises(InputError, match="folder of the output does not exist"):
        write_text(script / "log.csv")


def test_the_command_line_shows_such_a_note_on_stderr(tmp_path):
    (tmp_path / ".curves.part-0a1b2c3d-17-99").touch()
    script = (
        "import sys; from pathlib import Path; from bfreplay.outputs import remove_leftovers as r; r(Path('curves'))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr.startswith("Note: .curves.part-0a1b2c3d-17-99 was left by another machine")
    assert done.stderr.endswith("remove it.\n")


def test_an_earlier_run_that_a_killed_process_had_moved_aside_comes_back_before_anything_is_written(tmp_path, caplog):
    a_run(tmp_path / f"{name_of_dead_process('run', 'replaced')}-x1" / "run", "old")
    with pytest.raises(ValueError, match="no"), new_folder(tmp_path / "run", RUN, overwrite=True):
        raise ValueError("no")
    assert names(tmp_path) == ["run"]
    assert (tmp_path / "run" / RUN.record_file).read_text() == "old"
    assert f"{tmp_path / 'run'} was restored" in caplog.text


def test_an_earlier_run_is_removed_where_the_new_one_had_taken_its_place(tmp_path):
    a_run(tmp_path / f"{name_of_dead_process('run', 'replaced')}-x1" / "run", "old")
    a_run(tmp_path / "run", "newer")
    with pytest.raises(ValueError, match="no"), new_folder(tmp_path / "run", RUN, overwrite=True):
        raise ValueError("no")
    assert names(tmp_path) == ["run"]
    assert (tmp_path / "run" / RUN.record_file).read_text() == "newer"


def test_an_earlier_run_that_another_machine_has_moved_aside_is_left_where_it_is_and_named(tmp_path, caplog):
    a_run(tmp_path / ".run.replaced-0a1b2c3d-17-99-x1" / "run", "old")
    make_run(tmp_path / "run")
    assert (tmp_path / ".run.replaced-0a1b2c3d-17-99-x1" / "run" / RUN.record_file).read_text() == "old"
    assert "move what is in it back" in caplog.text


def test_temporary_folders_of_killed_processes_are_removed_from_the_place_for_them(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"{name_of_dead_process('bfreplay-ingest', 'partial')}-x1").mkdir()
    with tempfile.TemporaryDirectory(prefix=scratch_prefix("ingest")) as ours:
        scratch_prefix("ingest")
        assert names(tmp_path) == [os.path.basename(ours)]  # noqa: PTH119
    assert not caplog.records


def test_a_folder_that_cannot_be_listed_is_no_reason_to_fail(tmp_path):
    remove_leftovers(tmp_path / "missing" / "run")


@pytest.mark.parametrize(
    "write",
    [
        "with written_whole([Path('out.csv')], overwrite=False) as (part,): part.write_text('a' * 100_000)",
        "with written_whole([Path('out.csv')], overwrite=False) as (part,): pq.write_table(table, part)",
    ],
    ids=["text", "parquet"],
)
def test_a_write_to_a_full_disk_names_the_file_and_leaves_nothing(tmp_path, write):
    script = f"""
import resource, signal
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from bfreplay.outputs import written_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
table = pa.table({{"a": np.arange(99_999.0)}})
try:
    {write}
except OSError as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(error.errno, error.filename)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "27 out.csv\n", done.stderr
    assert names(tmp_path) == []


def test_an_error_that_names_a_file_keeps_it(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, written_whole([tmp_path / "out"], overwrite=False):
        (tmp_path / "in").read_text()
    assert caught.value.filename == str(tmp_path / "in")


def test_writing_many_small_files_does_not_look_at_their_folder_each_time(tmp_path, caplog):
    (tmp_path / ".note.json.part-0a1b2c3d-17-99").touch()
    with caplog.at_level(logging.WARNING):
        write_whole(tmp_path / "note.json", "{}")
    assert not caplog.records
