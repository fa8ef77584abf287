"""Node lists of many rows at once: the same nodes, in the same order, as list by list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.ingest import known_nodes
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.known_nodes import KnownNodes
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord

NAMES = expand_nodes("n[0-12],n[00-12],n[099-101],cn1[5-7],gpu.a,login-7,n1x")


def record_with(*names, **options):
    record = ScheduleRecord(**options)
    record.node_ids(names)
    return record


def read(record, *texts, counts=None):
    """The nodes of each list that was read, ``None`` for others, as far as one call reads."""
    known = KnownNodes(record)
    known.learn()
    content = "|".join(texts).encode()
    lengths = np.array([len(text.encode()) for text in texts])
    first = np.cumsum(lengths + 1) - lengths - 1
    counts = np.zeros(len(texts), np.int64) if counts is None else np.array(counts)
    n_listed, nodes = known.read_lists(np.frombuffer(content, np.uint8), first, first + lengths, counts)
    ends = np.cumsum(n_listed)
    return [nodes[end - n : end].tolist() if n else None for n, end in zip(n_listed, ends, strict=True)]


def one_by_one(record, text):
    try:
        names = expand_nodes(text)
    except ValueError:
        return None
    return record.node_ids(names).tolist() if names and set(names) <= set(NAMES) else None


FIELD = st.sampled_from(
    [
        "0",
        "1",
        "00",
        "01",
        "9",
        "09",
        "12",
        "5-7",
        "8-11",
        "08-11",
        "099-101",
        "0-3",
        "0-03",
        "3-1",
        "1-13",
        "1-",
        "-1",
        "1-3/2",
        "5.",
    ]
)
PART = st.one_of(
    st.builds(
        lambda prefix, fields, end: f"{prefix}[{','.join(fields)}{end}",
        st.sampled_from(["n", "cn1", "cn", "n0", "", "x"]),
        st.lists(FIELD, min_size=1, max_size=3),
        st.sampled_from(["]", "]", "]", "]x", "", "][1-2]"]),
    ),
    st.sampled_from(["gpu.a", "login-7", "n1x", "n1", "n099", "n13", "", " ", "None", "n1 ", "101"]),
)


@given(st.lists(st.lists(PART, min_size=1, max_size=3).map(",".join), min_size=1, max_size=4))
def test_a_list_gives_the_nodes_that_it_gives_when_it_is_read_alone(texts):
    record = record_with(*NAMES)
    for text, found in zip(texts, read(record, *texts), strict=True):
        assert found is None or found == one_by_one(record, text)


@pytest.mark.parametrize(
    "text", ["n1", "gpu.a,login-7", "n[0-3,9-12]", "n[00-03],n099", "n[099-101]", "n1x,n[1,3,5],gpu.a", "n[8-10]"]
)
def test_ordinary_lists_are_read(text):
    record = record_with(*NAMES)
    assert read(record, text) == [one_by_one(record, text)]


def test_digits_before_a_bracket_are_left_to_the_library_which_refuses_some():
    assert read(record_with("n08", "n09", "n010", "n011"), "n0[8-11]", "n08,n09") == [None, [0, 1]]
    with pytest.raises(ValueError, match="padding"):
        expand_nodes("n0[8-11]")


OTHERS = ["n[0-03]", "n[08-011]", "n[3-1]", "n[1-]", "n[-1]", "n[1", "n1]", "n[1]x", "n[5,3]", "n[1,1]", "n[1-3,3]"]
OTHERS += ["", "n1,", ",n1", "n1,,n2", "n[1][2]", "n[]", "n[1,]", "n[1-3/2]", "n1 ", "[1]", "n[1-3-5]", "n[1],"]


@pytest.mark.parametrize("text", OTHERS)
def test_lists_of_other_forms_are_left(text):
    assert read(record_with(*NAMES), text) == [None]


def test_lists_that_are_not_read_leave_the_others_in_their_places():
    record = record_with("n1", "n2", "n3")
    assert read(record, "n[1-2]", "n[1-4]", "n3,x", "n[3-1]", "n2") == [[0, 1], None, None, None, [1]]


def test_a_list_of_another_length_than_the_count_is_not_read():
    assert read(record_with("n1", "n2"), "n[1-2]", "n[1-2]", "n1", counts=[2, 1, 0]) == [[0, 1], None, [0]]


def test_a_node_counts_once_however_it_is_spelt():
    record = record_with("N1", "n1", "n2", node_names="lower")
    assert read(record, "n1,n2,N1,n[1-2]", "n2,n1") == [[0, 1], [1, 0]]


def test_what_does_not_fit_into_one_call_is_left_for_the_next(monkeypatch):
    monkeypatch.setattr(known_nodes, "LEAST_NODES", 4)
    record = record_with("n1", "n2", "n3")
    assert read(record, "n[1-3]", "n[1-2]", "n3") == [[0, 1, 2]]


def test_a_second_call_does_not_remember_the_nodes_of_the_first():
    known = KnownNodes(record_with("n1"))
    known.learn()
    arguments = np.frombuffer(b"n1", np.uint8), np.array([0]), np.array([2]), np.array([0])
    assert [known.read_lists(*arguments)[1].tolist() for _ in range(3)] == [[0], [0], [0]]


def test_names_that_come_later_are_learned():
    record = record_with("n1")
    known = KnownNodes(record)
    known.learn()
    record.node_ids(["n2"])
    arguments = np.frombuffer(b"n2", np.uint8), np.array([0]), np.array([2]), np.array([0])
    assert known.read_lists(*arguments)[0].tolist() == [0]
    known.learn()
    assert known.read_lists(*arguments)[1].tolist() == [1]


@pytest.mark.parametrize(("is_restricted", "found"), [(False, [[0], None]), (True, [[0], [1]])])
def test_a_node_outside_of_the_given_inventory_is_left_to_its_warning(is_restricted, found):
    record = ScheduleRecord()
    record.give_inventory(["n1"], is_restricted)
    record.node_ids(["n2"])
    assert read(record, "n1", "n2") == found


def test_every_one_of_many_names_is_found():
    names = [f"{prefix}{i:0{width}d}" for prefix in ("a", "b.c-", "rack1n") for width in (1, 4) for i in range(1000)]
    record = record_with(*dict.fromkeys(names))
    assert read(record, *names) == [record.node_ids([name]).tolist() for name in names]
