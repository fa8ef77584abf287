"""Text, TOML and JSON that ask for too much, and files that are something else."""

import gzip
import json
import sqlite3
import tomllib
import zipfile

import pytest

from bfreplay.campaigns.load import is_campaign, load_campaign
from bfreplay.datasets import load_jobs
from bfreplay.datasets.log.event_tables import LogHeader
from bfreplay.documents import (
    DEEPEST,
    LARGEST_TOML,
    LONGEST_LINE,
    other_kind,
    parse_json,
    parse_toml,
    pick,
    refuse_other_toml,
    unpacked_limit,
)
from bfreplay.errors import InputError
from bfreplay.experiments.sweep.spec import read_spec
from bfreplay.milp.files.decision_json import read_decision
from bfreplay.systems.gavel.throughputs import read_throughputs
from tests.refusals import refusal_of

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("parse", [parse_json, lambda text: parse_toml(f"a = {text}")["a"]])
def test_lists_may_lie_inside_one_another_to_a_depth(parse):
    most = DEEPEST if parse is parse_json else DEEPEST - 1
    assert parse("[" * most + "]" * most)
    for depth in (most + 1, 100_000):
        with pytest.raises(ValueError, match="nested more than 64 deep"):
            parse("[" * depth + "]" * depth)


@pytest.mark.parametrize("part", ["a", '"a b"', "'#'"])
@pytest.mark.parametrize(
    "line",
    [
        "{} = 1",
        "[{}]",
        "x = {{ {} = 1 }}",
        'x = ["""\nit\'s """, {{ {} = 1 }}]',
        'x = ["""a\\""""", \'\'\'b"\'\'\'\', "", {{ {} = 1 }}]',
        "x = 1 # it's\n{} = 1",
        'x = "\\"#" # "\n{} = 1',
    ],
)
def test_keys_have_few_parts(part, line):
    assert parse_toml(line.format(" . ".join([part] * 12)))
    for parts in ([part] * 1000, [part, "b"] * 600):
        with pytest.raises(tomllib.TOMLDecodeError, match="more than 16 parts"):
            parse_toml(line.format(".".join(parts)))


def test_long_lists_of_numbers_and_sentences_are_no_keys():
    for value in ([0.5] * 5_000, ["One. Two."] * 5_000, [".csv"] * 60, "0:0.5 1:18.5 " * 5_000):
        assert parse_toml(f"a.b = {json.dumps(value)}")["a"]["b"] == value
    joined = ".".join("a" * 17)
    for value in (joined, f"x\n{joined}", ". 'a'" * 64):
        for text in (json.dumps(value), f'"""{value}"""', f"'''{value} '''"):
            assert parse_toml(f"a = {text}")["a"].strip() == value
    assert parse_toml(f"a = 1 # OID {joined}") == {"a": 1}
    assert parse_toml("a = 1 # " + "x" * 1_000_000 + '"' * 1_000_000) == {"a": 1}


def _toml_readers():
    return {"jobs": load_jobs, "campaign": load_campaign, "sweep": read_spec}


@pytest.mark.parametrize("quotes", ['"', "'", '"""', "'''", '\\"', '\\"""', ".", '".', "a."])
def test_a_toml_text_is_looked_through_once(quotes):
    with pytest.raises(tomllib.TOMLDecodeError):
        parse_toml(f"a = {quotes * 500_000}")


@pytest.mark.parametrize("reader", _toml_readers())
@pytest.mark.parametrize("text", [f"a = {DEEP}\n", ".".join("a" * 1000) + " = 1\n"])
def test_every_toml_file_is_read_within_the_limits(tmp_path, reader, text):
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"cannot be read as TOML: (nested more|a key has more)") as caught:
        _toml_readers()[reader](path)
    assert caught.value.file == str(path)
    assert caught.value.fix


@pytest.mark.parametrize("reader", [*_toml_readers().values(), is_campaign])
def test_a_toml_file_that_is_too_large_is_refused_unread(tmp_path, reader):
    path = tmp_path / "x.toml"
    path.touch()
    with path.open("r+b") as stream:
        stream.truncate(LARGEST_TOML + 1)
    with pytest.raises(InputError, match="the TOML file is too large") as caught:
        reader(path)
    assert (caught.value.value, caught.value.expected) == ("4,194,305 bytes", "at most 4,194,304 bytes")


@pytest.mark.parametrize(
    ("reader", "problem"),
    [
        (read_decision, "is no JSON: nested more than 64 deep"),
        (read_throughputs, "the throughput file is not JSON: nested more than 64 deep"),
        (lambda path: LogHeader.from_text(path.read_bytes(), path), "are not JSON: nested more than 64 deep"),
    ],
)
def test_every_json_file_is_read_within_the_limits(tmp_path, reader, problem):
    path = tmp_path / "x.json"
    for depth in (DEEPEST + 1, 100_000):
        path.write_text("[" * depth + "]" * depth)
        with pytest.raises(InputError, match=problem) as caught:
            reader(path)
        assert caught.value.file == str(path)


def test_a_short_key_of_many_parts_takes_no_memory(tmp_path):
    path = tmp_path / "jobs.toml"
    path.write_text(".".join("a" * 20_000) + " = 1\n")
    assert "more than 16 parts" in refusal_of("bfreplay.datasets:load_jobs", path).problem


def pack(path, start, byte):
    """Write ``start`` and 600 MiB of one byte, packed: the same MiB again and again."""
    path.write_bytes(gzip.compress(start) + 600 * gzip.compress(byte * (1 << 20), 1))


@pytest.mark.slow
def test_a_table_in_one_endless_line_takes_no_memory(tmp_path):
    jobs = tmp_path / "jobs.csv"
    with jobs.open("wb") as stream:
        stream.write(b"name,min_nodes\n")
        stream.truncate(1 << 30)
    found = refusal_of("bfreplay.datasets:load_jobs", jobs)
    assert (found.problem, found.row) == ("a line does not end", "line 2")
    events = tmp_path / "events.csv.gz"
    for start, row in ((b"", "line 1"), (b"time,node,idle\n", "line 2")):
        pack(events, start, b"x")
        found = refusal_of("bfreplay.datasets:load_events", events)
        assert (found.problem, found.file, found.row) == ("a line does not end", str(events), row)
        assert found.expected == f"lines of text of at most {16 if row == 'line 1' else 1} MiB"


def test_the_longest_line_of_a_table_is_read(tmp_path):
    path = tmp_path / "jobs.csv"
    for length, problem in ((LONGEST_LINE, "field larger than field limit"), (LONGEST_LINE + 1, "a line does not end")):
        path.write_text("x" * (length - 1) + "\n")
        with pytest.raises(InputError, match=problem):
            load_jobs(path)


def test_packed_throughputs_that_unpack_to_far_more_take_no_memory(tmp_path):
    path = tmp_path / "throughputs.json.gz"
    pack(path, b"", b" ")
    found = refusal_of("bfreplay.systems.gavel.throughputs:read_throughputs", path)
    assert (found.problem, found.expected) == ("the throughput file is too large", "at most 67,108,864 bytes, unpacked")


def test_what_an_archive_may_unpack_to_grows_with_it(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"x")
    assert unpacked_limit(path) == 1 << 28
    with path.open("r+b") as stream:
        stream.truncate(1 << 24)
    assert unpacked_limit(path) == 200 << 24


def spreadsheet(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")


def database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("create table jobs(id)")


def written(content):
    return lambda path: path.write_bytes(content)


OTHER_KINDS = {
    "a spreadsheet": (spreadsheet, "as CSV"),
    "an SQLite database": (database, "sqlite3 -header -csv"),
    "a PDF document": (written(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), "export"),
    "a web page": (written(b"\n<!DOCTYPE HTML><html></html>\n"), "fetch the file again"),
    "a 7-Zip archive": (written(b"7z\xbc\xaf\x27\x1c\x00\x04"), "unpack it"),
    "a RAR archive": (written(b"Rar!\x1a\x07\x01\x00"), "unpack it"),
    "a log of Slurm's own daemons": (
        written(b"[2024-05-01T00:00:01.123] slurmctld version 23.02.7 started on cluster hpc\n"),
        "bfreplay ingest slurm --how",
    ),
    "text in UTF-16": (written("JobID|NodeList\n".encode("utf-16")), "iconv -f UTF-16 -t UTF-8"),
}


@pytest.mark.parametrize(("what", "made"), OTHER_KINDS.items())
def test_a_file_of_another_kind_is_called_by_its_name(tmp_path, what, made):
    path = tmp_path / "jobs.dat"
    make, fix = made
    make(path)
    with pytest.raises(InputError, match=f"this is {what}") as caught:
        load_jobs(path)
    assert caught.value.file == str(path)
    assert fix in caught.value.fix


def test_a_spreadsheet_that_is_called_csv_is_called_a_spreadsheet(tmp_path):
    path = tmp_path / "jobs.csv"
    spreadsheet(path)
    with path.open("ab") as stream:
        stream.write(b"\xff")
    with pytest.raises(InputError, match="this is a spreadsheet"):
        load_jobs(path)


@pytest.mark.parametrize(("encoding", "name"), [("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")])
def test_utf_16_is_known_without_its_mark(encoding, name):
    assert other_kind("JobID|NodeList".encode(encoding))[1] == f"convert it: iconv -f {name} -t UTF-8 FILE > FILE.utf8"


@pytest.mark.parametrize(
    "start", [b"", b"\0", b"J", b"time,node", b"PAR1\0\0", b"[1, 2]", b"\0\0\0", b"\1\0\0\0", b"<jobs>"]
)
def test_other_starts_are_no_other_kind(start):
    assert other_kind(start) is None


def test_attributes_are_picked_in_the_order_of_their_names():
    picked_parts = pick(1 + 2j, "real", "imag")
    assert list(picked_parts.items()) == [("real", 1.0), ("imag", 2.0)]


def test_an_error_told_with_its_file_keeps_its_other_parts():
    error = InputError("this is no number", column="weight", value="x", expected="a number", fix="write 1")
    changed = error.with_changes(file="jobs.csv", row=3)
    assert str(changed).splitlines() == [
        "this is no number",
        "  file:     jobs.csv",
        "  row:      3",
        "  column:   weight",
        "  value:    'x'",
        "  expected: a number",
        "  fix:      write 1",
    ]
    assert "value" not in str(InputError("it is missing", column="weight").with_changes(row=1))


@pytest.mark.parametrize(
    ("tables", "own", "says"),
    [
        ({"run": {}, "vary": {}}, "a job set", "this is a sweep, not a job set"),
        ({"campaign": {}}, "a sweep", "this is a campaign, not a sweep"),
        ({"job": []}, "a campaign", "this is a job set, not a campaign"),
    ],
)
def test_a_toml_file_of_another_kind_is_called_what_it_is(tables, own, says):
    with pytest.raises(InputError, match=says):
        refuse_other_toml(tables, "x.toml", own)
    refuse_other_toml({**tables, "campaign": {}, "run": {}, "job": []}, "x.toml", own)  # its own unknown keys
