"""Records of long JSON files, whole and hostile ones."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.ingest import json_stream
from bfreplay.datasets.ingest.json_stream import records
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.errors import InputError

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def read(tmp_path):
    """Elements of "jobs" in a text."""

    def elements(text, *, are_several=False):
        path = tmp_path / "jobs.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return [value for _, value in records(LogFile(path, "jobs.json"), "jobs", "export it", are_several=are_several)]

    return elements


@given(
    before=st.dictionaries(st.text(max_size=4), values, max_size=2),
    jobs=st.lists(values, max_size=5),
    after=st.dictionaries(st.text(max_size=4), values, max_size=2),
    indent=st.sampled_from([None, 0, 2]),
    is_ascii=st.booleans(),
    chunk=st.integers(1, 40),
)
def test_wherever_chunks_end_the_elements_are_those_of_the_whole(
    before, jobs, after, indent, is_ascii, chunk, tmp_path_factory
):
    document = {key: value for key, value in before.items() if key != "jobs"} | {"jobs": jobs}
    document |= {key: value for key, value in after.items() if key != "jobs"}
    path = tmp_path_factory.mktemp("json") / "jobs.json"
    path.write_bytes(json.dumps(document, indent=indent, ensure_ascii=is_ascii).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHUNK", chunk)
        numbered = list(records(LogFile(path), "jobs", "export it"))
    assert [value for _, value in numbered] == jobs
    assert [number for number, _ in numbered] == list(range(1, len(jobs) + 1))


def test_several_documents_are_one_series_where_that_is_allowed(read):
    text = '{"jobs": [1, 2]} {"x": 3}\n{"jobs": [4]}'
    assert read(text, are_several=True) == [1, 2, 4]
    with pytest.raises(InputError, match="something follows the document"):
        read(text)


def test_bytes_that_are_no_utf8_spoil_no_other_record(read):
    assert read(b'{"jobs": ["\xe9", "b"]}') == ["\udce9", "b"]


@pytest.mark.parametrize("where", ['{"jobs": [%s]}', '{"jobs": [{"a": [%s]}]}', '{"meta": %s, "jobs": [1]}'])
@pytest.mark.parametrize(
    ("hostile", "problem"),
    [
        ("1" * 5_000, "broken or cut: Exceeds the limit"),
        ("-" + "7" * 1_000_000, "broken or cut: Exceeds the limit"),
        ("1e400", "a number is too large"),
        ("NaN", "NaN is not a number"),
        ("-Infinity", "-Infinity is not a number"),
        ("[" * 100_000 + "]" * 100_000, "nested more than 64 deep"),
        ("[" * 100_000, "nested more than 64 deep"),
        ('{"a":' * 100_000, "nested more than 64 deep"),
        ("[" * 70 + "]" * 70, "nested more than 64 deep"),
        ("[1, 2,]", "broken or cut"),
        ('"' + "a" * 100, "broken or cut"),
        ("tru", "broken or cut"),
    ],
    ids=str.__len__,
)
def test_hostile_values_are_refused_by_name(read, where, hostile, problem):
    with pytest.raises(InputError, match=problem) as caught:
        read(where % hostile)
    assert caught.value.file == "jobs.json"
    assert "export it" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{",
        '{"jobs"',
        '{"jobs": [',
        "]",
        '{"jobs": [1',
        '{"jobs": [1}',
        "{1: [2]}",
        '{"jobs": [1]',
        '{"jobs" [1]}',
    ],
)
def test_what_is_no_document_is_refused(read, text):
    with pytest.raises(InputError) as caught:
        read(text)
    assert caught.value.file == "jobs.json"


def test_a_record_that_does_not_end_is_not_read_for_ever(read, tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "_CHUNK", 1_000)
    monkeypatch.setattr(json_stream, "LONGEST_RECORD", 20_000)
    whole = '{"jobs": [' + ", ".join(['"' + "a" * 15_000 + '"'] * 3) + "]}"
    assert [len(value) for value in read(whole)] == [15_000] * 3
    endless = tmp_path / "endless.json"
    endless.write_text('{"jobs": ["' + "a" * 10_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="broken or cut"):
            list(records(LogFile(endless), "jobs", "export it"))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
