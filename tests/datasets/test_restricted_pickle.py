import io
import os
import pickle
import struct
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay.datasets.published.pickled_frames import cell_list, load_frame
from bfreplay.datasets.published.restricted_pickle import ALLOWED, Record
from bfreplay.errors import InputError
from tests.examples import examples
from tests.refusals import refusal_of

FILE = Path("given.pkl")


class Calls:
    """Pickles as a call of ``function``."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def load(content):
    return load_frame(io.BytesIO(content), FILE)


def object_frame(*values):
    frame = pd.DataFrame({"x": pd.Series(list(values), dtype=object)})
    frame.columns = frame.columns.astype(object)
    return frame


@pytest.mark.parametrize(
    ("attack", "named"),
    [
        (Calls(os.system, "touch pwned"), "system"),
        (Calls(eval, "1"), "builtins.eval"),
        (Calls(exec, "1"), "builtins.exec"),
        (Calls(getattr, "a", "upper"), "builtins.getattr"),
        (Calls(partial, print, 1), "functools.partial"),
        (Calls(np.load, "x.npy", None, True), "load"),
        (Calls(np.fromfile, "/etc/passwd"), "fromfile"),
        (Calls(np.memmap, "/etc/passwd"), "memmap"),
        (Calls(pd.read_pickle, "x.pkl"), "read_pickle"),
        (Calls(pickle.loads, b"N."), "loads"),
        (Calls(open, "/etc/passwd"), "open"),
        (Calls(__import__, "os"), "builtins.__import__"),
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_forbidden_call_is_named_and_not_made(tmp_path, monkeypatch, attack, named, protocol):
    monkeypatch.chdir(tmp_path)
    for thing in (attack, [{"a": attack}], object_frame(1, [attack])):
        with pytest.raises(InputError, match="forbidden") as caught:
            load(pickle.dumps(thing, protocol=protocol))
        if thing is attack or protocol > 1:
            assert str(caught.value.value).endswith(named.split(".")[-1])
        assert caught.value.file == "given.pkl"
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "name", ["numpy\nndarray.tofile", "pandas\neval", "numpy.core.multiarray\nfromfile", "numpy\nNDArray"]
)
def test_names_are_compared_exactly(name):
    with pytest.raises(InputError, match="forbidden"):
        load(f"c{name}\n.".encode())


def test_dotted_names_do_not_reach_attributes_of_allowed_classes():
    content = b"\x80\x04\x8c\x06pandas\x8c\x13DataFrame.to_pickle\x93."
    with pytest.raises(InputError, match="forbidden"):
        load(content)


def frame_around(array):
    """A DataFrame pickle of one column whose block is ``array``, written by hand."""
    return (
        b"cpandas\nDataFrame\n)\x81}X\x04\x00\x00\x00_mgrcpandas.core.internals.managers\nBlockManager\n("
        b"(cpandas._libs.internals\n_unpickle_block\n("
        + array
        + b"cbuiltins\nslice\n(K\x00K\x01K\x01tRK\x02tRt]("
        + 2
        * b"cpandas.core.indexes.base\n_new_Index\n(cpandas\nRangeIndex\n}(X\x05\x00\x00\x00startK\x00"
        b"X\x04\x00\x00\x00stopK\x01X\x04\x00\x00\x00stepK\x01utR" + b"etRsb."
    )


def array_of(dtype, state, data, shape=b"K\x01K\x01\x86"):
    kind = b"cnumpy\ndtype\n(X" + struct.pack("<I", len(dtype)) + dtype + b"I0\nI1\ntR" + state + b"b"
    return b"cnumpy._core.numeric\n_frombuffer\n(" + data + kind + shape + b"X\x01\x00\x00\x00CtR"


PLAIN = b"(K\x03X\x01\x00\x00\x00<NNNI-1\nI-1\nK\x00t"
EIGHT = b"C\x08\x01\x00\x00\x00\x00\x00\x00\x00"


def test_the_frame_written_by_hand_is_good_without_tricks():
    assert load(frame_around(array_of(b"i8", PLAIN, EIGHT))).blocks[0][1].tolist() == [[1]]


@pytest.mark.parametrize(
    "array",
    [
        array_of(b"O8", PLAIN, EIGHT),  # bytes as pointers to objects
        array_of(b"V8", PLAIN, EIGHT),  # raw memory
        array_of(b"i8", PLAIN, EIGHT, b"K\x02K\x01\x86"),  # more than there is
        array_of(b"i8", PLAIN, EIGHT, b"J\xff\xff\xff\xffJ\xff\xff\xff\xff\x86"),  # negative sizes
        array_of(b"i8", PLAIN, EIGHT, b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86"),  # absurd sizes
        array_of(b"i8", b"(K\x03X\x01\x00\x00\x00<X\x01\x00\x00\x00ONNI-1\nI-1\nK\x3ft", EIGHT),  # a hidden subtype
        array_of(b"i8", b"(K\x03X\x01\x00\x00\x00<N(X\x01\x00\x00\x00atNI-1\nI-1\nK\x00t", EIGHT),  # hidden fields
        b"cnumpy\nndarray\n(K\x01tR",  # the class itself as an array
        b"cpandas\nDataFrame\n)\x81",
        b"N",
        b"cbuiltins\nslice\n(N" + EIGHT + b"tR",
    ],
)
def test_tricks_with_allowed_classes_make_no_array(array):
    with pytest.raises(InputError, match="not a usable DataFrame"):
        load(frame_around(array))


@pytest.mark.parametrize(
    "content",
    [
        b"cpandas\nDataFrame\n}X\x01\x00\x00\x00aK\x01sb.",  # state for the class, not for a frame
        b"cpandas\nDataFrame\n(N}X\x03\x00\x00\x00argK\x01stb.",
        b"cpandas\nDataFrame\n)\x81K\x01a.",  # append to a frame
        b"cpandas\nDataFrame\n)\x81K\x01K\x01s.",  # item of a frame
        b"Pnowhere\n.",  # persistent id
        b"\x82\x01.",  # extension code
        b"]" * 3 + b"(",
        b"",
        b"not a pickle",
        b"\x80\x04Nr\xff\xff\xff\x7f.",  # memo of 2^31 entries
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",  # bytes of 2^63
        b"cpandas\nDataFrame\n)R)R.",
    ],
)
def test_a_malformed_pickle_is_refused_and_changes_nothing(content):
    before = {cls: dict(vars(cls)) for cls in {*ALLOWED.values(), Record}}
    with pytest.raises(InputError):
        load(content)
    assert {cls: dict(vars(cls)) for cls in before} == before


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_frame_of_this_pandas_gives_its_arrays(protocol):
    frame = pd.DataFrame(
        {
            "number": [1.5, 2.5],
            "count": [1, 2],
            "flag": [True, False],
            "time": pd.to_datetime(["2021-02-10", "2021-02-11"]),
            "list": [[0, 1], np.array([0.0, 2.0])],
        },
        index=["J0", "J1"],
    )
    read = load(pickle.dumps(frame, protocol=protocol))
    assert read.columns.tolist() == list(frame.columns)
    assert read.index.tolist() == ["J0", "J1"]
    for name in ("number", "count", "flag"):
        assert read.column(name).tolist() == frame[name].tolist()
    assert (read.column("time") == frame["time"].to_numpy()).all()
    assert [cell_list(cell) for cell in read.column("list")] == [[0, 1], [0.0, 2.0]]
    with pytest.raises(KeyError):
        read.column("other")


def test_times_with_a_zone_are_refused():
    frame = pd.DataFrame({"x": [1]}, index=pd.DatetimeIndex(["2021-02-10"], tz="UTC"))
    with pytest.raises(InputError, match="DatetimeTZDtype, which is forbidden"):
        load(pickle.dumps(frame))


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_pickle_with_any_bytes_changed_is_read_or_refused_cleanly(data):
    content = bytearray(pickle.dumps(object_frame([1, 2], 3.0, "text"), protocol=data.draw(st.sampled_from([4, 5]))))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InputError):  # anything else fails the test
        load(bytes(content))


CLAIM = struct.pack("<Q", 3 << 30)


@pytest.mark.often("\\x80\\x02X\\xff\\xff\\xff\\xff")
@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x05\x96" + CLAIM,  # bytearray
        b"\x80\x05\x8e" + CLAIM,  # bytes
        b"\x80\x05\x8d" + CLAIM,  # text
        b"\x80\x05\x95" + CLAIM,  # frame
        b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1),  # number
        b"\x80\x02B" + struct.pack("<I", 2**32 - 1),  # bytes, older
        b"\x80\x02X" + struct.pack("<I", 2**32 - 1),  # text, older
        b"\x80\x02T" + struct.pack("<i", 2**31 - 1),  # bytes, of Python 2
    ],
)
def test_a_claim_of_more_bytes_than_there_are_takes_no_memory(tmp_path, content):
    path = tmp_path / "x.pkl"
    path.write_bytes(content + b"abc.")
    found = refusal_of("bfreplay.datasets:load_events", path)
    assert "bytes where 4 are left" in found.problem
    assert found.file == str(path)


def test_a_bytearray_is_as_good_as_bytes():
    array = array_of(b"i8", PLAIN, b"\x96" + struct.pack("<Q", 8) + EIGHT[2:])
    assert load(frame_around(array)).blocks[0][1].tolist() == [[1]]


@pytest.mark.parametrize("shape", [b"K\x00J\xff\xff\xff\x7f\x86", b"J\xff\xff\xff\x7fK\x00\x86"])
def test_an_array_without_values_may_not_claim_long_axes(tmp_path, shape):
    array = array_of(b"i8", PLAIN, b"C\x00", shape)
    path = tmp_path / "x.pkl"
    long_axis = b"X\x04\x00\x00\x00stopJ\xff\xff\xff\x7f"
    path.write_bytes(frame_around(array).replace(b"X\x04\x00\x00\x00stopK\x01", long_axis))
    assert "absurd shape" in refusal_of("bfreplay.datasets:load_events", path).problem


def test_an_axis_may_not_claim_more_columns_than_there_are(tmp_path):
    path = tmp_path / "x.pkl"
    long_axis = b"X\x04\x00\x00\x00stopJ\xff\xff\xff\x7f"
    path.write_bytes(frame_around(array_of(b"i8", PLAIN, EIGHT)).replace(b"X\x04\x00\x00\x00stopK\x01", long_axis))
    assert "a column is missing" in refusal_of("bfreplay.datasets:load_events", path).problem
