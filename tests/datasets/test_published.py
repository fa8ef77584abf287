import io
import pickle
import tarfile

import numpy as np
import pandas as pd
import pytest

from bfreplay.datasets import load_events, read_published_events
from bfreplay.datasets.published import matrix as matrix_module
from bfreplay.errors import InputError
from tests.datasets.small_logs import BUSY, IDLE, rows_of

START = 1_612_915_732_000_000


def matrix(values, columns=("b", "a"), dtype=np.int8, times=None):
    default = pd.DatetimeIndex(["2021-02-10 00:08:52", "2021-02-10 00:08:53", "2021-02-10 00:08:55"])
    index = default if times is None else times
    return pd.DataFrame(np.array(values, dtype=dtype), index=index, columns=list(columns))


def pickled(folder, frame, name="matrix.pkl"):
    (folder / name).write_bytes(pickle.dumps(frame))
    return folder / name


def archive(folder, members):
    file = folder / "matrix.tar.gz"
    with tarfile.open(file, "w:gz") as out:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return file


GOOD = [[0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float64, bool])
def test_a_matrix_becomes_its_first_row_and_the_changes(tmp_path, dtype):
    events = load_events(pickled(tmp_path, matrix(GOOD, dtype=dtype)))
    assert rows_of(events) == [
        (START, "a", IDLE),
        (START, "b", BUSY),
        (START + 1_000_000, "a", BUSY),
        (START + 1_000_000, "b", IDLE),
        (START + 3_000_000, "a", IDLE),
    ]
    assert (events.window_start_us, events.window_end_us) == (START, START + 3_000_000)
    assert events.metadata.node_inventory == "metadata"


def test_a_matrix_of_several_blocks_is_read(tmp_path):
    frame = matrix(GOOD)
    frame["c"] = np.array([1.0, 1.0, 0.0])
    frame["0"] = np.array([0, 1, 1], dtype=np.int8)
    assert rows_of(load_events(pickled(tmp_path, frame)))[-2:] == [
        (START + 3_000_000, "a", IDLE),
        (START + 3_000_000, "c", BUSY),
    ]


def test_a_node_that_never_changes_is_in_the_inventory(tmp_path):
    events = read_published_events(pickled(tmp_path, matrix([[0, 0], [0, 1], [0, 0]])))
    assert events.nodes == ("a", "b")
    assert rows_of(events)[1] == (START, "b", BUSY)


def test_the_matrix_may_be_in_an_archive_with_other_files(tmp_path):
    file = archive(tmp_path, {"README": b"hello", "../../deep/matrix.pkl": pickle.dumps(matrix(GOOD))})
    assert rows_of(load_events(file)) == rows_of(load_events(pickled(tmp_path, matrix(GOOD))))
    assert not (tmp_path.parent.parent / "deep").exists()


def test_an_archive_needs_exactly_one_pickle(tmp_path):
    good = pickle.dumps(matrix(GOOD))
    for members in ({}, {"a.txt": b""}, {"a.pkl": good, "b.pkl": good}):
        with pytest.raises(InputError, match="exactly one pickle"):
            load_events(archive(tmp_path, members))


def test_an_absurd_member_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix_module, "MAX_MEMBER_BYTES", 10)
    with pytest.raises(InputError, match="too large"):
        load_events(archive(tmp_path, {"a.pkl": pickle.dumps(matrix(GOOD))}))


def test_a_cut_archive_is_refused(tmp_path):
    file = archive(tmp_path, {"a.pkl": pickle.dumps(matrix(np.random.default_rng(0).integers(0, 2, (3, 2))))})
    for content in (file.read_bytes()[:60], b"no archive", b""):
        file.write_bytes(content)
        with pytest.raises(InputError, match="archive cannot be read"):
            load_events(file)


@pytest.mark.parametrize(
    ("frame", "problem", "row", "column", "value"),
    [
        (matrix([[0, 1], [1, 2], [1, 1]]), "neither 0 nor 1", 2, "a", 2),
        (matrix([[0, 1], [np.nan, 1], [1, 1]], dtype=float), "neither 0 nor 1", 2, "b", None),
        (matrix([["x", 1]] * 3, dtype=object), "values that are not numbers", None, "b", "object"),
        (
            matrix(GOOD, times=pd.DatetimeIndex(["2021-02-10", "2021-02-12", "2021-02-11"])),
            "do not increase",
            3,
            "index",
            None,
        ),
        (
            matrix(GOOD, times=pd.DatetimeIndex(["2021-02-10", None, "2021-02-11"])),
            "missing or finer",
            2,
            "index",
            "NaT",
        ),
        (matrix(GOOD, columns=("a", "a")), "two nodes", None, "node", "a"),
        (matrix(GOOD, columns=(1, 2)), "not named after a node", None, "1", 1),
        (pd.DataFrame({"x": [1, 2]}), "not a node-state matrix", None, None, None),
    ],
)
def test_a_faulty_matrix_names_row_and_node(tmp_path, frame, problem, row, column, value):
    frame = frame.copy()
    frame.columns = frame.columns.astype(object)
    with pytest.raises(InputError, match=problem) as caught:
        load_events(pickled(tmp_path, frame))
    assert (caught.value.row, caught.value.column) == (row, column)
    assert value is None or caught.value.value == value


@pytest.mark.slow
def test_the_published_matrix_has_the_transitions_of_the_event_file(shared):
    """The event file lacks only the first instant and the 54 nodes that were never idle."""
    folder = shared / "data/bftrainer"
    whole = read_published_events(folder / "ndstat-10sdn6-evt.tar.gz")
    seen = load_events(folder / "summit-2021-02-node-events.parquet")
    assert (len(whole.nodes), len(seen.nodes)) == (4_734, 4_680)
    batches = list(whole.batches())
    assert (batches[0].state == BUSY).all()
    assert sum(map(len, batches[1:])) == 846_856
    part = list(whole.between(seen.window_start_us, seen.window_end_us).batches(50_000))
    others = list(seen.batches(50_000))
    position = np.searchsorted(whole.nodes, seen.nodes)
    assert (part[0].state[position] == others[0].state).all()
    assert (np.delete(part[0].state, position) == BUSY).all()
    join = [
        [np.concatenate([getattr(b, name) for b in side[1:]]) for name in ("time_us", "node", "state")]
        for side in (part, others)
    ]
    join[1][1] = position[join[1][1]]
    for ours, theirs in zip(*join, strict=True):
        assert np.array_equal(ours, theirs)
