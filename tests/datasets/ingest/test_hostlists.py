import sys

import hostlist
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.ingest import hostlists
from bfreplay.datasets.ingest.hostlists import expand_nodes, fold_nodes
from tests.refusals import refusal_of

numbers = st.integers(0, 40)
widths = st.integers(1, 3)


@st.composite
def ranges(draw):
    width = draw(widths)
    fields = []
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(0, 9 if width == 1 else 90))
        last = first + draw(st.integers(0, 5))
        if width == 1 or len(str(last)) <= width:
            text = f"{first:0{width}d}"
            fields.append(text if draw(st.booleans()) else f"{text}-{last:0{width}d}")
    return "[" + ",".join(fields or ["1"]) + "]"


parts = st.builds(
    lambda prefix, brackets, suffix: prefix + "".join(brackets) + suffix,
    st.sampled_from(["n", "cpn-f13-", "r1i", "gpu.a", "tux"]),
    st.lists(ranges(), min_size=1, max_size=2),
    st.sampled_from(["", "-ib", "x"]),
)


@given(st.lists(parts, min_size=1, max_size=4).map(",".join))
def test_lists_expand_as_the_other_library_expands_them(text):
    found = expand_nodes(text)
    assert sorted(found) == sorted(set(hostlist.expand_hostlist(text)))
    assert len(set(found)) == len(found)


FIELDS = [
    "0", "1", "9", "00", "01", "09", "10", "012", "100", "2-4", "8-11", "08-11", "008-011", "4-2", "0-3", "0-05",
    "00-03", "99-101", "5-5", "3-", "1-3/2", "7a",
]  # fmt: skip
PIECES = st.tuples(
    st.sampled_from(["n", "cn0", "a1-", "gpu.a", "n01n", "x1c0s", "Frontier_", "1n", "a.b.c-", "-n"]),
    st.lists(st.sampled_from([*FIELDS, ""]), min_size=1, max_size=4).flatmap(
        lambda fields: st.sampled_from([fields, sorted(fields, key=lambda field: (len(field.split("-")[0]), field))])
    ),
    st.sampled_from(["", "", "", "-ib", "7"]),
)
"""Prefix, fields of the bracket, suffix."""


@given(st.lists(PIECES, min_size=1, max_size=3))
def test_ordinary_lists_expand_to_the_names_and_in_the_order_of_clustershell(pieces):
    text = ",".join(f"{prefix}[{','.join(fields)}]{suffix}" for prefix, fields, suffix in pieces)
    found = expanded(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostlists, "_ordinary", lambda part: None)
        assert expanded(text) == found


def expanded(text):
    try:
        return expand_nodes.__wrapped__(text)
    except ValueError as error:
        return str(error)


def test_an_ordinary_list_does_not_need_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "ClusterShell.NodeSet", None)
    assert expanded("frontier[00009-00011,00044],n[8-10],login1") == (
        "frontier00009",
        "frontier00010",
        "frontier00011",
        "frontier00044",
        "n8",
        "n9",
        "n10",
        "login1",
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cpn-f13-03-[01-02],cpn-f13-04-01", ["cpn-f13-03-01", "cpn-f13-03-02", "cpn-f13-04-01"]),
        ("r[1-2]i[0-1]", ["r1i0", "r1i1", "r2i0", "r2i1"]),
        ("tux[1-2][3-4]", ["tux13", "tux14", "tux23", "tux24"]),
        ("n[008-010]", ["n008", "n009", "n010"]),
        ("n1,n1", ["n1"]),
        ("x3005c0s19b1n0", ["x3005c0s19b1n0"]),
    ],
)
def test_forms_that_schedulers_write(text, names):
    assert sorted(expand_nodes(text)) == sorted(names)


@pytest.mark.parametrize("text", ["None assigned", "(null)", "", "  ", "none", "N/A", "Unknown"])
def test_what_means_no_nodes_is_no_node_of_that_name(text):
    assert expand_nodes(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "c505-[083,104",
        "n1,,n2",
        "n[3-1]",
        "a b",
        "@all",
        "n[1-3]&n2",
        "n[1-2]!n1",
        "x]",
        "n[",
        "n[]",
        "n[a-b]",
        "n[1-99999999]",
        "n[1-1000][1-10000]",
        "-n1",
        "n1\x00",
        "ñ1",
        "n[1-2]\n",
    ],
)
def test_junk_is_refused(text):
    text = text if not text.endswith("\n") else text + "x"
    with pytest.raises(ValueError):
        expand_nodes(text)


@given(st.text(max_size=20))
def test_any_text_is_expanded_or_refused(text):
    try:
        names = expand_nodes(text)
    except ValueError:
        return
    assert all(name.isprintable() and name == name.strip() and name for name in names)


TOO_MUCH = [
    ("n" * 16_000_000, "is not the name of a node"),
    ("n[1-99999999999]", "more than 1,000,000 nodes"),
    ("n[" + "0" * 4_000 + "1-1000000]", "names of more than 255 characters"),
    ("," * 16_000_000, "a list of more than"),
]
TOO_MUCH_AS_WELL = [
    ("n" * 256, "is not the name of a node"),
    ("n" * 250 + "[000001-200000]", "names of more than 255 characters"),
    ("n[1-1000000]" + "[1]" * 255, "names of more than 255 characters"),
    ("n[" + "1" * 5_000 + "]", "names of more than 255 characters"),
    ("n" + "[1]" * 5_000_000, "a list of more than"),
]


@pytest.mark.parametrize(("text", "why"), TOO_MUCH + TOO_MUCH_AS_WELL)
def test_names_and_lists_of_megabytes_are_refused_in_few_words(text, why):
    with pytest.raises(ValueError, match=why) as caught:
        expand_nodes(text)
    assert len(str(caught.value)) < 300


@pytest.mark.often("text0-is not the name of a node")
@pytest.mark.parametrize(
    ("text", "why"), [*TOO_MUCH, *(pytest.param(*each, marks=pytest.mark.thorough) for each in TOO_MUCH_AS_WELL)]
)
def test_names_and_lists_of_megabytes_take_no_memory(tmp_path, text, why):
    path = tmp_path / "nodes.txt"
    path.write_text(text + "\n")
    found = refusal_of("bfreplay.datasets.ingest.read_log:read_inventory", path)
    assert (why in found.problem, found.row) == (True, "line 1")


def test_the_longest_names_are_expanded():
    assert expand_nodes("n" * 255) == ("n" * 255,)
    assert expand_nodes("n" * 253 + "[01-02]")[-1] == "n" * 253 + "02"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ((), ""),
        (("n01", "n02", "n04"), "n[01-02,04]"),
        (("n9", "n10", "gpu"), "gpu,n[9-10]"),
        (("cn-1.hpc", "cn-2.hpc"), "cn-[1-2].hpc"),
        (("a!b", "c"), "a!b,c"),
        (("@all", "x"), "@all,x"),
        (("n*",), "n*"),
        (("a&b", "a^b"), "a&b,a^b"),
    ],
)
def test_names_are_folded_where_no_other_meaning_is_possible(names, text):
    assert fold_nodes(names) == text
