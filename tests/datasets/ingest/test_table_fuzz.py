"""Whatever happens to a line of a table or an ALCF file: a record or InputError, and nothing lost in silence."""

import contextlib
import random
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay.datasets.ingest.cobalt.reader import CobaltReader
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.table.reader import TableReader
from bfreplay.errors import InputError
from tests.examples import examples

JUNK = (
    b"",
    b'"',
    b'""',
    b",",
    b"\x00",
    b"\xff",
    b"-1",
    b"0",
    b"nan",
    b"inf",
    b"1e9",
    b"99999999999999999999",
    b"None",
    b"\n",
    b"9999-12-31 23:59:59",
    b"0001-01-01 00:00:00",
    b"2021-10-31 02:30:00",
    b"n[1-",
    b"n[1-99999999]",
    b"RUNNING",
    "１２".encode(),
    b"\xef\xbb\xbf",
    b"#",
    b" ",
    b"=1+1",
    b"2021-03-28 02:30:00",
)


@dataclass(frozen=True)
class Case:
    """A small valid log: its reader, options, texts of its files; those after the first stay as they are."""

    reader: type
    options: ReadOptions
    texts: tuple[bytes, ...]


def _stamp(hour: int) -> str:
    return f"2021-{3 + hour // 24:02d}-{1 + hour // 12 % 27:02d} {hour % 24:02d}:00:00"


def _cases() -> dict[str, Case]:
    listed = ["job_id,start_time,end_time,nodelist,num_nodes,run_time,state,name"]
    counted = ["id;start;end;node_count"]
    djc = ["JOB_NAME,COBALT_JOBID,MACHINE_NAME,START_TIMESTAMP,END_TIMESTAMP,RUNTIME_SECONDS,NODES_USED,LOCATION"]
    outages = ["node,start,end,state"]
    written = ["id,begin,dur_min,nodes"]
    raw, windows = [], []
    for i in range(12):
        start, end = _stamp(5 * i), _stamp(5 * i + 7 - i % 3)
        nodes = f'"n[{i + 1}-{i + 3}],m{i}"'
        name = f'"a ""name"", number {i}"' if i % 4 else f'"two\nlines {i}"'
        listed.append(f"{100 + i},{start},{end},{nodes},4,,COMPLETED,{name}")
        counted.append(f"{i};{1614556800 + 600 * i};{1614557800 + 900 * i};{1 + i % 5}")
        where = ",".join(f"x300{i % 3}c0s{k}b0n0" for k in range(1 + i % 4))
        djc.append(f'{i}.polaris,{i},polaris,{start},{end},,{1 + i % 4},"{where}"')
        cells = [start, start, end, "20210301", "20210301", "20210301", "", "7200.0", "1", "1", "512.0", "512.0"]
        cells += ["1"] * 6 + ["MIR-08000-3B331-512", "0", "1", "script", "mira", "-1", "", str(i), "1"]
        raw.append(",".join(f'"{cell}"' for cell in cells))
        outages.append(f"n{i % 3 + 1},{start},{end},{('down', 'drain', 'maint')[i % 3]}")
        written.append(f"{i},{1 + i:02d}.03.2021 {5 + i % 3:02d}:30:00,{60 + i}.5,n{i} m{i}")
        windows.append(f"{_stamp(6 * i)},{_stamp(6 * i + 3)}")
    zoned = ReadOptions(timezone="Europe/Berlin")
    one_job = (
        b"START_TIMESTAMP,END_TIMESTAMP,NODES_USED,MACHINE_NAME\n2021-03-01 00:00:00,2021-03-02 00:00:00,512,mira\n"
    )

    def text(lines):
        return "\n".join(lines).encode() + b"\n"

    return {
        "listed": Case(TableReader, zoned, (text(listed),)),
        "counted": Case(TableReader, ReadOptions(), (text(counted),)),
        "outages": Case(TableReader, zoned, (text(outages), text(listed))),
        "written": Case(
            TableReader,
            ReadOptions(timezone="UTC", time_format="%d.%m.%Y %H:%M:%S", mapping={"elapsed": "dur_min:min"}),
            (text(written),),
        ),
        "djc": Case(CobaltReader, ReadOptions(), (text(djc),)),
        "raw": Case(CobaltReader, ReadOptions(), (text(raw),)),
        "maintenance": Case(CobaltReader, ReadOptions(), (text(windows), one_job)),
    }


CASES = _cases()


class LinesDropped(ImportReport):
    """A report that remembers every line that was left out."""

    def __init__(self):
        super().__init__()
        self.lines = set()

    def skip(self, reason, file="", line=None, value="", count=1):
        assert count == 0 or line is not None
        self.lines.add((file, line))
        super().skip(reason, file, line, value, count)


def read(case, folder, first):
    """Read the log with ``first`` as its first file; ``None`` if it was refused."""
    paths = []
    for i, text in enumerate((first, *case.texts[1:])):
        path = Path(folder) / f"{i}.csv"
        path.write_bytes(text)
        paths.append(LogFile(path))
    record = ScheduleRecord(report=LinesDropped())
    try:
        case.reader().read(paths, record, case.options)
    except InputError as error:
        refusal = error
    else:
        return record
    assert refusal.file is not None
    return None


def content(record):
    """Everything that tells who held what when, comparable."""
    found = []
    for rows, _ in record.jobs.slices():
        for j in range(len(rows)):
            listed = rows.nodes[rows.first_node[j] : rows.first_node[j + 1]]
            times = (int(rows.start_us[j]), int(rows.end_us[j]), int(rows.limit_end_us[j]), int(rows.count[j]))
            found.append((*times, tuple(record.nodes[i] for i in listed)))
    outages = [
        (outage.state, outage.start_us, outage.end_us, None if outage.nodes is None else tuple(map(int, outage.nodes)))
        for outage in record.outages
    ]
    return sorted(found), outages, record.nodes, record.machine_size


def without(text, numbers):
    kept = [line for number, line in enumerate(re.split(rb"\r*\n|\r", text), 1) if number not in numbers]
    return b"\n".join(kept)


def check(case, folder, text):
    record = read(case, folder, text)
    if record is None:
        return False
    report = record.report
    assert report.rows_read == sum(report.kept.values()) + report.rows_skipped
    first = str(Path(folder) / "0.csv")
    numbers = {line for file, line in report.lines if file == first}
    if numbers:
        again = read(case, folder, without(text, numbers))
        assert again is not None
        assert content(again) == content(record)
    return True


def mutated(text, randoms):
    lines = text.split(b"\n")
    for _ in range(randoms.randint(1, 3)):
        i = randoms.randrange(len(lines))
        line = lines[i]
        kind = randoms.randrange(9)
        at = randoms.randrange(len(line) + 1)
        if kind == 0:
            lines[i] = line[:at] + bytes([randoms.randrange(256)]) + line[at + 1 :]
        elif kind == 1:
            lines[i] = line[:at] + line[at + randoms.randint(1, 5) :]
        elif kind == 2:
            lines[i] = line[:at] + randoms.choice(JUNK) + line[at:]
        elif kind in (3, 4):
            separator = b";" if b";" in line else b","
            cells = line.split(separator)
            cells[randoms.randrange(len(cells))] = randoms.choice(JUNK)
            lines[i] = separator.join(cells)
        elif kind == 5:
            lines.insert(i, lines[randoms.randrange(len(lines))])
        elif kind == 6:
            lines[i] = line[:at]
        elif kind == 7:
            j = randoms.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines[i] = line[:at] + b'"' + line[at:]
    return b"\n".join(lines)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_small_logs_come_in_whole(name, tmp_path):
    record = read(CASES[name], tmp_path, CASES[name].texts[0])
    assert record is not None
    assert sum(record.report.kept.values()) == record.report.rows_read >= 12
    assert not record.report.warnings


@pytest.mark.parametrize("name", sorted(CASES))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_no_mutation_does_more_than_the_report_says(name, tmp_path, seed):
    check(CASES[name], tmp_path, mutated(CASES[name].texts[0], random.Random(seed)))


@pytest.mark.parametrize("name", sorted(CASES))
def test_most_mutated_logs_are_still_read(name, tmp_path):
    randoms = random.Random(7)
    texts = [mutated(CASES[name].texts[0], randoms) for _ in range(100)]
    assert sum(check(CASES[name], tmp_path, text) for text in texts) > 50


@pytest.mark.parametrize("name", sorted(CASES))
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.binary(max_size=300))
def test_bytes_of_any_kind_are_recognised_or_not_but_never_an_accident(name, tmp_path, text):
    path = tmp_path / "x"
    path.write_bytes(text)
    CASES[name].reader().recognise(LogFile(path))
    if text:
        read(CASES[name], tmp_path, text)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1), value=st.integers(0, 255))
def test_damaged_parquet_is_read_or_refused(tmp_path, at, value):
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "job_id": [1, 2, 3],
            "start_time": [100, 200, 300],
            "end_time": [160, 260, 360],
            "nodelist": ["a1", "a2,a3", "b[1-4]"],
        }
    )
    pq.write_table(table, path, compression="none")
    content_ = bytearray(path.read_bytes())
    content_[min(len(content_) - 1, int(at * len(content_)))] = value
    path.write_bytes(content_)
    TableReader().recognise(LogFile(path))
    record = ScheduleRecord()
    with contextlib.suppress(InputError):
        TableReader().read([LogFile(path)], record, ReadOptions())
        assert record.report.rows_read == sum(record.report.kept.values()) + record.report.rows_skipped
