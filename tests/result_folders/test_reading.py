"""A folder that is not what it should be is refused with the reason; tables are read when asked for."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay.errors import InputError
from bfreplay.result_folders.reading import Result, read_documents
from bfreplay.result_folders.records import ResultKind, ResultRecord

CAKE = ResultKind("cake", "cake.json", 3, "bake --out", ("oven.json",), {"icing": "only with --icing"})


class CakeRecord(ResultRecord, frozen=True, kw_only=True):
    eggs: int = 2


class CakeResult(Result[CakeRecord]):
    kind = CAKE
    record_type = CakeRecord


def baked(folder=None, **tables):
    return CakeResult(CakeRecord(schema_version=3), folder, tables)


@pytest.fixture
def cake(tmp_path):
    (tmp_path / "cake.json").write_text(json.dumps({"schema_version": 3, "eggs": 2}))
    (tmp_path / "oven.json").write_text("{}")
    pq.write_table(pa.table({"gram": [250, 3]}), tmp_path / "flour.parquet")
    return tmp_path


def test_documents_come_in_their_order(cake):
    assert read_documents(cake, CAKE) == [{"schema_version": 3, "eggs": 2}, {}]


def test_texts_of_a_folder_steer_no_terminal(cake):
    (cake / "oven.json").write_text(json.dumps({"\x1b[2J": ["a\x1bb\nc"]}))
    names = pa.array(["plain", None, "\x1b[31mred"])
    pq.write_table(
        pa.table({"name": names, "kind": names.dictionary_encode(), "gram": [1, 2, 3]}), cake / "nuts.parquet"
    )
    assert read_documents(cake, CAKE)[1] == {r"\x1b[2J": ["a\\x1bb\nc"]}
    table = baked(cake).table("nuts")
    assert table["name"].to_pylist() == table["kind"].to_pylist() == ["plain", None, r"\x1b[31mred"]
    assert table["gram"].to_pylist() == [1, 2, 3]


def test_names_of_columns_and_texts_in_lists_steer_no_terminal(cake):
    texts = [["plain", "\x1b[2J"], None, []]
    columns = {"\x1b[31mred": texts, "packed": pa.array(texts, pa.list_(pa.dictionary(pa.int32(), pa.string())))}
    pq.write_table(pa.table(columns), cake / "nuts.parquet")
    shown = [["plain", r"\x1b[2J"], None, []]
    assert baked(cake).table("nuts").to_pydict() == {r"\x1b[31mred": shown, "packed": shown}


def test_a_table_with_bytes_that_are_no_text_is_refused(cake):
    spoilt = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))
    pq.write_table(pa.table({"name": spoilt}), cake / "nuts.parquet")
    with pytest.raises(InputError, match="the table cannot be read"):
        baked(cake).table("nuts")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("cake.json", None, "it has no cake.json"),
        ("oven.json", None, "it has no oven.json"),
        ("cake.json", b"[]", "cake.json is a JSON list, not an object"),
    ],
)
def test_what_is_no_such_folder_is_told_why(cake, name, content, why):
    (cake / name).unlink() if content is None else (cake / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_documents(cake, CAKE)
    assert f"this is not a cake folder: {why}" in str(refused.value)
    assert "a folder with cake.json and oven.json" in str(refused.value)
    assert "'bake --out'" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("cake.json", b"{", "cake.json is no JSON document"),
        ("oven.json", b"\xff", "oven.json is no JSON document"),
        ("cake.json", b"[" * 100_000, "cake.json is no JSON document (nested more than 64 deep)"),
        ("cake.json", b'{"eggs": NaN}', "cake.json is no JSON document (NaN is no number)"),
        ("oven.json", b'{"heat": -Infinity}', "oven.json is no JSON document (-Infinity is no number)"),
        ("oven.json", b'{"heat": 1e999}', "oven.json is no JSON document (1e999 is no number)"),
    ],
)
def test_a_folder_with_a_broken_document_is_damaged_and_to_be_made_again(cake, name, content, why):
    (cake / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_documents(cake, CAKE)
    assert f"the cake folder is damaged: {why}" in str(refused.value)
    assert refused.value.fix == "make it again: 'bake --out'"


def test_a_folder_that_is_not_there_and_a_file_are_told_apart_from_another_kind(cake):
    with pytest.raises(InputError, match="there is no such folder"):
        read_documents(cake / "nowhere", CAKE)
    with pytest.raises(InputError, match="it is a file"):
        read_documents(cake / "flour.parquet", CAKE)


@pytest.mark.parametrize("record", [{"schema_version": 4}, {"schema_version": "3"}, {}])
def test_another_schema_version_is_refused(cake, record):
    (cake / "cake.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="the cake folder has another schema version"):
        read_documents(cake, CAKE)


def test_a_table_is_read_once_and_one_in_memory_never(cake):
    result = baked(cake, sugar=pa.table({"gram": [5]}))
    assert result.frame("flour")["gram"].tolist() == [250, 3]
    (cake / "flour.parquet").unlink()
    assert result.table("flour").num_rows == 2
    assert result.frame("sugar")["gram"].tolist() == [5]


def test_a_missing_table_is_named_with_its_hint(cake):
    with pytest.raises(InputError, match=r"the cake has no table 'icing'[\s\S]*only with --icing"):
        baked(cake).table("icing")
    with pytest.raises(InputError, match="the cake has no table 'flour'"):
        baked().table("flour")


def test_a_damaged_table_is_an_input_error(cake):
    whole = (cake / "flour.parquet").read_bytes()
    (cake / "flour.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"the table cannot be read[\s\S]*make the folder again: 'bake --out'"):
        baked(cake).table("flour")


def test_a_folder_is_no_table(cake):
    (cake / "icing.parquet").mkdir()
    assert baked(cake).has_table("icing")  # damaged, which is not left out
    with pytest.raises(InputError, match=r"the table cannot be read: it is no file[\s\S]*icing\.parquet"):
        baked(cake).table("icing")


def nuts(folder, monkeypatch):
    """Five rows in three row groups, read one at a time."""
    monkeypatch.setattr("bfreplay.result_folders.reading._ROW_GROUPS", 1)
    table = pa.table({"gram": [1, 2, 3, 4, 5], "kind": ["a", "b", "c", "d", "\x1b"], "more": [0] * 5})
    pq.write_table(table, folder / "nuts.parquet", row_group_size=2)
    return baked(folder)


def test_a_table_is_read_some_rows_at_a_time_without_keeping_them(cake, monkeypatch):
    result = nuts(cake, monkeypatch)
    batches = [batch.to_pydict() for batch in result.batches("nuts", ("gram", "kind", "missing"))]
    assert batches == [
        {"gram": [1, 2], "kind": ["a", "b"]},
        {"gram": [3, 4], "kind": ["c", "d"]},
        {"gram": [5], "kind": [r"\x1b"]},
    ]
    assert result.tables == {}


def test_a_table_is_read_backwards_with_the_rows_of_a_batch_in_their_order(cake, monkeypatch):
    batches = nuts(cake, monkeypatch).batches("nuts", ["gram"], backwards=True)
    assert [batch["gram"].to_pylist() for batch in batches] == [[5], [3, 4], [1, 2]]


def test_a_table_without_rows_is_one_batch_without_rows(cake):
    with pq.ParquetWriter(cake / "nuts.parquet", pa.schema([("gram", pa.int64())])):
        pass
    (batch,) = baked(cake).batches("nuts", ["gram"])
    assert (batch.num_rows, batch.column_names) == (0, ["gram"])


def test_a_table_in_memory_is_one_batch():
    (batch,) = baked(sugar=pa.table({"gram": [5], "kind": ["a"]})).batches("sugar", ["gram"])
    assert batch.to_pydict() == {"gram": [5]}


def test_the_checksum_of_a_table_is_taken_once_whatever_is_read_of_it(cake, monkeypatch):
    nuts(cake, monkeypatch)
    taken = []
    monkeypatch.setattr("bfreplay.result_folders.reading.check_digest", lambda path, *rest: taken.append(path.name))
    result = CakeResult(CakeRecord(schema_version=3, sha256={"nuts.parquet": "0"}), cake)
    assert result.check() == 1
    assert result.tables == {}  # nothing was read
    for _ in range(2):
        [*result.batches("nuts", ["gram"])]
    assert result.table("nuts").num_rows == 5
    assert taken == ["nuts.parquet"]


def test_a_file_with_another_checksum_is_refused_before_a_row_is_read(cake, monkeypatch):
    nuts(cake, monkeypatch)
    result = CakeResult(CakeRecord(schema_version=3, sha256={"nuts.parquet": "0" * 64}), cake)
    for read in (result.check, lambda: next(result.batches("nuts", ["gram"])), lambda: result.table("nuts")):
        with pytest.raises(InputError, match="the file is damaged, was changed"):
            read()


def test_columns_and_the_number_of_rows_are_had_without_keeping_the_table(cake, monkeypatch):
    result = nuts(cake, monkeypatch)
    assert result.columns("nuts", "gram", "missing").to_pydict() == {"gram": [1, 2, 3, 4, 5]}
    assert result.n_rows("nuts") == 5
    assert result.tables == {}
    assert baked(sugar=pa.table({"gram": [5, 6]})).n_rows("sugar") == 2
