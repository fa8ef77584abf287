"""The folder of a sweep: what is finished, what failed, who is at work."""

from __future__ import annotations

import json
import multiprocessing

import pytest

from bfreplay.errors import InputError, LedgerError, OutputExistsError
from bfreplay.experiments.sweep.store import Failure, Store, failure_of
from bfreplay.runs import RunResult
from tests.experiments.sweep.small_sweeps import options, write_files


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(OutputExistsError, match="is not a sweep folder"):
        Store.create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((InputError, OutputExistsError), match=r"output folder|folder of the sweep"):
        Store.create(tmp_path / "file" / "sweep")


def test_a_second_sweep_is_kept_out_while_the_first_is_at_work(tmp_path):
    store = Store.create(tmp_path / "sweep")
    with (
        store.lock(),
        pytest.raises(OutputExistsError, match="another sweep is at work") as caught,
        Store.create(tmp_path / "sweep").lock(),
    ):
        pass
    assert "fix:" in str(caught.value)
    with Store.create(tmp_path / "sweep").lock():
        pass


def _hold(folder, held, go):
    with Store(folder).lock(), Store(folder).claim("aa"):
        (folder / "runs" / ".aa.partial-x").mkdir()
        held.set()
        go.wait(60)


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_locked_and_its_leftovers_are_removed(tmp_path):
    store = Store.create(tmp_path / "sweep")
    (store.runs / ".bb.partial-y").mkdir()
    context = multiprocessing.get_context("spawn")
    held, go = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(store.folder, held, go))
    process.start()
    assert held.wait(60)
    store.tidy()
    assert [path.name for path in store.runs.iterdir()] == [".aa.partial-x"]  # somebody is at it
    process.kill()
    process.join()
    with store.lock():
        store.tidy()
    assert list(store.runs.iterdir()) == []


def test_half_written_documents_and_probes_of_a_killed_sweep_are_removed(tmp_path):
    store = Store.create(tmp_path / "sweep")
    for name in (".sweep.json.part-0a-1-2", "failures/.aa.json.part-0a-1-2", ".probe-0f"):
        (store.folder / name).touch()
    with store.lock():
        store.tidy()
    assert sorted(path.name for path in store.folder.iterdir()) == [".claims", "failures", "runs"]
    assert list((store.folder / "failures").iterdir()) == []


def test_who_claims_a_run_finds_nothing_half_done(tmp_path):
    store = Store.create(tmp_path / "sweep")
    (store.runs / ".aa.partial-x").mkdir()
    with store.claim("aa"):
        assert list(store.runs.iterdir()) == []


def test_a_run_is_there_when_it_is_whole(tmp_path):
    store = Store.create(tmp_path / "sweep")
    assert not store.has("aa")
    options(write_files(tmp_path), efficiency=False).run(store.run_folder("aa"))
    assert store.has("aa")
    run = RunResult.load(store.run_folder("aa"))
    assert run.summary.n_decisions > 0
    assert run.session.seconds.total_s > 0


def test_a_failure_is_noted_and_forgotten(tmp_path):
    store = Store.create(tmp_path / "sweep")
    assert store.failure("aa") is None
    store.note_failure("aa", Failure("ValueError", "no luck", "no luck\nat all"), {"t-fwd": 60.0})
    assert store.failure("aa") == Failure("ValueError", "no luck", "no luck\nat all")
    assert json.loads((store.folder / "failures" / "aa.json").read_text())["options"] == {"t-fwd": 60.0}
    store.forget_failure("aa")
    store.forget_failure("aa")
    assert store.failure("aa") is None


def test_a_note_that_cannot_be_read_is_named(tmp_path):
    store = Store.create(tmp_path / "sweep")
    for text in ("{", "[]", '{"type": "E"}'):
        (store.folder / "failures" / "aa.json").write_text(text)
        with pytest.raises(InputError, match=r"aa\.json"):
            store.failure("aa")


def test_what_the_table_shows_of_an_error_is_one_line_without_paths(tmp_path):
    try:
        (tmp_path / "nothing").read_text()
    except OSError as error:
        said = failure_of(error)
    assert said.problem == "FileNotFoundError: No such file or directory"
    assert str(tmp_path) in said.message
    ours = failure_of(InputError("the file is broken", file=tmp_path / "x.csv", row=3))
    assert (ours.type, ours.problem) == ("InputError", "the file is broken")
    assert "row:      3" in ours.message
    assert failure_of(LedgerError("off by one")).type == "LedgerError"
    assert failure_of(SystemExit(3)).problem == "SystemExit: 3"
