"""Damaged Standard Workload Format files: whatever they hold, nothing is lost without a word."""

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.swf.machine import most_at_once
from bfreplay.datasets.ingest.swf.reader import SwfReader
from bfreplay.datasets.ingest.swf.rows import Block, read_line
from bfreplay.errors import InputError
from tests.examples import examples

STANDARD = "{} {} {} {} {} 7.5 -1 {} -1 -1 1 1 1 -1 -1 -1 -1 -1"
LINES = [
    b"; Version: 2.2",
    b"; UnixStartTime: 1000000",
    b"; MaxNodes: 16",
    b"; MaxProcs: 32",
    *(STANDARD.format(i, 10 * i, i % 4, 5 + i % 9, 1 + 3 * i % 16, 4).encode() for i in range(1, 12)),
    b"; Note: in the middle",
    *((STANDARD.format(i, 10 * i, 1, 9, 2, 4) + f" {{{i},{i + 1}}} q 2:x").encode() for i in range(12, 15)),
]
BITS = [b"-", b".", b" ", b"\t", b"\r", b"\n", b";", b"{", b"}", b",", b"e", b"nan", b"0", b"9" * 11, b"\x00", b"\xff"]


def mutated(line, choose):
    """``line`` with one field or some bytes changed, by ``choose(n)``, a number below n."""
    kind = choose(6)
    if kind == 0:
        fields = line.split(b" ")
        fields[choose(len(fields))] = (b"-1", b"0", b"-0", b"3.5", b"1e3", b"x", b"", b"007", b"1" * 13)[choose(9)]
        return b" ".join(fields)
    if kind == 1:
        at = choose(len(line) + 1)
        return line[:at] + BITS[choose(len(BITS))] + line[at:]
    if kind == 2:
        at = choose(max(1, len(line)))
        return line[:at] + bytes([choose(256)]) + line[at + 1 :]
    if kind == 3:
        at = choose(len(line) + 1)
        return line[:at] + line[at + 1 + choose(5) :]
    if kind == 4:
        return line[: choose(len(line) + 1)]
    return line + b" " + line[: choose(len(line) + 1)]


def by_hand(lines):
    """Rows by line, and lines that are none, one at a time."""
    rows, unreadable = {}, {}
    for number, line in enumerate(lines, 1):
        text = line.strip(b" \t\r")
        if not text or text.startswith(b";"):
            continue
        found = read_line(line)
        if isinstance(found, str):
            unreadable[number] = found
        else:
            rows[number] = found
    return rows, unreadable


def test_a_block_at_a_time_and_a_line_at_a_time_accept_the_same_ten_thousand_mutated_lines():
    choose = random.Random(20).randrange
    jobs = [line for line in LINES if not line.startswith(b";")]
    data = b"\n".join(mutated(jobs[choose(len(jobs))], choose) for _ in range(10_000)) + b"\n"
    rows, unreadable = by_hand(data[:-1].split(b"\n"))
    block = Block(data, 1)
    assert dict(block.unreadable) == unreadable
    assert len(unreadable) > 1_000
    found = {}
    for part in (block.standard, block.extended):
        columns = (part.job, part.submit_us, part.wait_us, part.run_us, part.processors, part.requested, part.status)
        for i, line in enumerate(part.line.tolist()):
            found[line] = (tuple(int(c[i]) for c in columns), part.node_lists[i] if part.node_lists else None)
        assert np.all(np.diff(part.line) > 0)
    assert found == rows
    assert len(rows) > 1_000


class AllDrops(ImportReport):
    """Remembers each line that is left out."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def skip(self, reason, file="", line=None, value="", count=1):
        super().skip(reason, file, line, value, count)
        if line is not None:
            self.lines.append(line)


def read(path, data):
    path.write_bytes(data)
    record = ScheduleRecord(AllDrops())
    SwfReader().read([LogFile(path)], record, ReadOptions())
    return record


def read_or_refused(path, data):
    """Return the record; None if it was refused with an error that names the file."""
    try:
        return read(path, data)
    except InputError as error:
        if error.file != str(path):
            raise
        return None


def intervals(record):
    return [
        (part.start_us.tolist(), part.end_us.tolist(), part.count.tolist(), [record.nodes[i] for i in part.nodes])
        for part, _ in record.jobs.slices()
    ]


@settings(max_examples=examples(400))
@given(data=st.data())
def test_a_damaged_log_is_refused_or_read_without_the_lines_that_were_reported(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("swf") / "log.swf"
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(lines) - 1))
        lines[i] = mutated(lines[i], lambda n: data.draw(st.integers(0, n - 1)))
    content = b"\n".join(lines)
    record = read_or_refused(path, content)
    if record is None:
        return
    report = record.report
    assert report.rows_read == sum(report.kept.values()) + report.rows_skipped
    assert len(report.lines) == report.rows_skipped
    left = [line for number, line in enumerate(re.split(rb"\r*\n|\r", content), 1) if number not in report.lines]
    again = read(path, b"\n".join(left))
    assert intervals(again) == intervals(record)
    assert again.report.rows_skipped == 0


@settings(max_examples=examples(200))
@given(content=st.binary(max_size=300))
def test_bytes_at_random_are_refused_by_name(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("swf") / "log.swf"
    record = read_or_refused(path, content)
    if record is None:
        return
    pytest.fail(f"taken for a log: {record.report.to_json()}")


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10), st.integers(1, 5)), min_size=1, max_size=40))
def test_the_most_at_once_is_that_of_counting_each_second(jobs):
    record = ScheduleRecord()
    for i, (start, length, count) in enumerate(jobs):
        record.add_job(i, start, start + length, None, count)
    usage = [sum(count for start, length, count in jobs if start <= t < start + length) for t in range(31)]
    assert most_at_once(record.jobs) == max(usage)
