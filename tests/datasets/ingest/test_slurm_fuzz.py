"""Slurm's outputs with mistakes in them: a filled record or an ``InputError``, and no change that is not told."""

import json
import re
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.reader import SlurmReader
from bfreplay.errors import InputError
from tests.datasets.ingest.slurm_logs import files_of, jobs, outages, rows_balance
from tests.examples import examples

SACCT = """JobIDRaw|JobID|Cluster|State|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NodeList
11|11|hill|COMPLETED|2024-10-25T08:00:00|2024-10-26T09:00:00|90000|1600|2|n[1-2]
12|12_3|hill|TIMEOUT|2024-10-26T22:00:00|2024-10-27T01:00:00|10800|180|1|n3
13|13|hill|CANCELLED by 7|2024-10-27T01:10:00|2024-10-27T03:10:00|7200|300|3|n[1,4-5]
14|14|hill|PENDING|Unknown|Unknown|0|60|1|None assigned
15|15+0|hill|NODE_FAIL|2024-10-27T00:30:00|2024-10-27T00:45:00|900|60|1|n6
16|16|hill|RUNNING|2024-10-27T04:00:00|Unknown|600|60|2|n[7-8]
17.batch|17.batch|hill|COMPLETED|2024-10-25T08:00:00|2024-10-26T09:00:00|90000||1|n1
"""
EVENTS = """Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
hill|n1|2024-10-26T08:00:00|2024-10-26T09:00:00|DOWN*|disk|root
hill||2024-10-26T08:00:00|2024-10-26T09:00:00||Cluster Registered TRES|slurm
hill|n2|2024-10-26T10:00:00|2024-10-27T09:00:00|IDLE+DRAIN|fan|root
hill|n3|2024-10-27T01:00:00|Unknown|DRAIN|x|root
"""
RESERVATIONS = """Cluster|Name|TimeStart|TimeEnd|NodeNames|Flags
hill|pm|2024-10-26T08:00:00|2024-10-26T09:00:00|n[1-4]|MAINT,SPEC_NODES
hill|course|2024-10-26T10:00:00|2024-10-26T11:00:00|n2|SPEC_NODES
"""
JOB = "JobID|State|Start|End|NodeList\n1|COMPLETED|1729900800|1729904400|n1\n"
"""Stands beside outages, which say nothing without jobs."""
SINFO = "".join(
    f"{1_729_900_800 + 60 * i}|n{node}|{state}\n"
    for i in range(6)
    for node, state in ((1, "idle"), (2, "mixed" if i % 2 else "idle-"), (3, "down*"))
)
XDMOD = "".join(
    f"{i}|{i}|hill|p|q|a|g|1|u|2|2024-10-26T11:00:00|2024-10-26T11:00:00|2024-10-26T12:00:00|2024-10-26T13:00:00|01:00:00|"
    f"0:0|COMPLETED|2|8|8|4Gn|cpu=8|cpu=8|02:00:00|n[{i},{i + 1}]|name\n"
    for i in range(1, 6)
)
TEXTS = {"sacct": SACCT, "events": EVENTS, "reservations": RESERVATIONS, "sinfo": SINFO, "xdmod": XDMOD}
JSON = json.dumps(
    {
        "meta": {"Slurm": {"release": "23.11"}},
        "jobs": [
            {
                "job_id": i,
                "allocation_nodes": 1,
                "nodes": f"n{i}",
                "association": {"cluster": "hill"},
                "state": {"current": ["COMPLETED"]},
                "time": {
                    "start": 1_729_900_800,
                    "end": {"set": True, "infinite": False, "number": 1_729_904_400},
                    "elapsed": 3600,
                    "limit": {"set": False, "infinite": True, "number": 0},
                },
            }
            for i in range(1, 4)
        ],
    }
)
PIECES = st.one_of(
    st.binary(max_size=4),
    st.sampled_from(
        [
            "|",
            "Unknown",
            "None",
            "0",
            "-1",
            "nan",
            "1e999",
            "99999999999999999999",
            "[",
            "]",
            ",",
            "9999-12-31T23:59:59",
            "0001-01-01T00:00:00",
            "\x00",
            "١",
            "2024-10-27T02:30:00",
            "2024-03-31T02:30:00",
            "n[1-999999999]",
            "(null)",
            "RUNNING",
            "PENDING",
            "{",
            "}",
            '"',
            "null",
            "true",
            "1.5",
        ]
    ).map(str.encode),
    st.sampled_from([b"", b"\n", b"\xff"]),
)


class Counted(ImportReport):
    """Keeps the line of every row that is skipped."""

    def __init__(self):
        super().__init__()
        self.lines: set[int] = set()

    def skip(self, reason, file="", line=None, value="", count=1):
        super().skip(reason, file, line, value, count)
        self.lines.add(line)


@contextmanager
def folder():
    with TemporaryDirectory() as name:
        yield Path(name)


def read(content: bytes, zone: str = "UTC", kind: str = "sacct") -> ScheduleRecord:
    record = ScheduleRecord(Counted())
    beside = (JOB,) if kind in ("events", "reservations") else ()
    options = ReadOptions(timezone=zone, reservations="reserved")
    with folder() as where:
        SlurmReader().read(files_of(where, content, *beside), record, options)
    return record


def read_or_refuse(content: bytes, zone: str = "UTC", kind: str = "sacct") -> ScheduleRecord | None:
    """Return the record, or ``None`` where the log was refused by name."""
    try:
        return read(content, zone, kind)
    except InputError as error:
        refused = error
    assert refused.file == "log0"
    return None


def result(record: ScheduleRecord) -> tuple:
    return jobs(record), outages(record)


@st.composite
def mutated(draw, content: bytes):
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 12))
        content = content[:at] + draw(PIECES) + content[at + length :]
    return content


@st.composite
def one_cell_changed(draw, text: str):
    """The text with one cell of one row replaced, or with a piece in it; and the number of that line."""
    lines = text.encode().splitlines()
    first = 0 if b"State" not in lines[0] and b"Flags" not in lines[0] else 1
    i = draw(st.integers(first, len(lines) - 1))
    cells = lines[i].split(b"|")
    c = draw(st.integers(0, len(cells) - 1))
    at = draw(st.integers(0, len(cells[c])))
    length = draw(st.integers(0, len(cells[c])))
    cells[c] = cells[c][:at] + draw(PIECES).replace(b"\n", b" ") + cells[c][at + length :]
    lines[i] = b"|".join(cells)
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("kind", [*TEXTS, "json"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
def test_the_logs_of_these_tests_are_good(kind, zone):
    record = read((TEXTS | {"json": JSON})[kind].encode(), zone, kind)
    assert record.report.kept
    assert not record.report.warnings or (kind, zone) == ("sacct", "Europe/Paris")
    assert rows_balance(record)


@pytest.mark.parametrize("kind", [*TEXTS, "json"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
@settings(max_examples=examples(150))
@given(data=st.data())
def test_whatever_bytes_change_there_is_a_record_or_an_input_error(kind, zone, data):
    content = data.draw(mutated((TEXTS | {"json": JSON})[kind].encode()))
    record = read_or_refuse(content, zone, kind)
    if record is not None:
        assert rows_balance(record)
        assert record.report.kept


@pytest.mark.parametrize("kind", list(TEXTS))
@settings(max_examples=examples(200))
@given(data=st.data())
def test_the_record_is_that_of_the_log_without_the_skipped_lines(kind, data):
    content = data.draw(one_cell_changed(TEXTS[kind]))
    record = read_or_refuse(content, kind=kind)
    if record is None:
        return
    assert rows_balance(record)
    lines = re.split(rb"\r*\n|\r", content)
    rest = b"\n".join(line for i, line in enumerate(lines, 1) if i not in record.report.lines)
    assert result(read(rest, kind=kind)) == result(record)


@settings(max_examples=examples(400))
@given(data=st.data())
def test_a_change_of_one_cell_that_changes_a_job_is_told(data):
    """Names of nodes and jobs apart: one that is another good name cannot be told from it."""
    content = data.draw(one_cell_changed(SACCT))
    before = read(SACCT.encode())
    record = read_or_refuse(content)
    if record is None:
        return
    times = [job[:3] for job in jobs(record)]
    if times == [job[:3] for job in jobs(before)]:
        return
    is_skipped_anew = record.report.rows_skipped > before.report.rows_skipped
    assert record.report.warnings or is_skipped_anew, content.decode("utf-8", "replace")
