"""Thousands of spoilt lines of every format: none changes the log without a word.

Each spoilt log gives the events of the valid one, or is refused with the file's name, or its report says something else
than that of the valid log; or the spoilt line is one that the scheduler could have written, by a grammar that has
nothing of the readers. BFREPLAY_MUTATED_LINES sets how many a format.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.pbs import records
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.errors import InputError
from tests.datasets.ingest.line_grammars import is_well_formed
from tests.datasets.ingest.line_mutations import FIELDS, Mutated, mutated
from tests.datasets.ingest.small_logs_of_formats import SMALL_LOGS, SmallLog
from tests.examples import examples

N_MUTATIONS = int(os.environ.get("BFREPLAY_MUTATED_LINES", examples(300)))
FIELDS_OF = {
    "sacct": "pipes",
    "sacct-json": "json",
    "node-events": "pipes",
    "sinfo": "pipes",
    "snapshots": "blanks",
    "pbs-pro": "pbs",
    "torque": "pbs",
    "lsf": "blanks",
    "grid-engine": "colons",
    "grid-engine-objects": "json",
    "swf": "blanks",
    "swf-extended": "blanks",
    "alcf": "commas",
    "table": "commas",
    "flux": "json",
    "batsim": "commas",
}
HAS_LINES = [name for name in SMALL_LOGS if FIELDS_OF[name] != "json"]
ORDER_ONLY = ("line doubled", "line moved")
SAME, REFUSED, TOLD = "same events", "refused", "told in drops and warnings"
COUNTED, WELL_FORMED = "told in counts and facts", "well formed"
BAD = SILENT, NAMELESS, WRONG_DROP = "SILENT", "REFUSED WITHOUT A FILE", "NOT AS WITHOUT THE DROPPED LINE"


@dataclass(frozen=True)
class Result:
    """Nodes and rows of the events; what the report says of rows and warnings, and of the rest; skipped lines."""

    rows: tuple[Any, ...]
    told: tuple[Any, ...]
    counted: tuple[Any, ...]
    skipped: frozenset[tuple[int | None, str]]


@pytest.fixture
def drops(monkeypatch) -> Iterator[list[tuple[str, int | None, str]]]:
    """File, line and reason of every row that is skipped from now on."""
    found: list[tuple[str, int | None, str]] = []
    plain = ImportReport.skip

    def skip(self, reason, file="", line=None, value="", count=1):
        plain(self, reason, file, line, value, count)
        found.append((file, line, reason))

    monkeypatch.setattr(ImportReport, "skip", skip)
    return found


def result(log: SmallLog, content: bytes, folder: Path, drops: list[tuple[str, int | None, str]]) -> Result:
    drops.clear()
    paths = log.write(folder, content)
    read = read_log(paths, log.reader, log.options)
    facts = {key: str(value).replace(str(folder), "") for key, value in read.record.report.facts.items()}
    skipped = frozenset((line, reason) for file, line, reason in drops if file == str(paths[0]))
    built = read.build(log.rules)
    report = built.report
    rows = [
        (int(time), built.events.nodes[node], int(state))
        for batch in built.events.batches()
        for time, node, state in zip(batch.time_us, batch.node, batch.state, strict=True)
    ]
    node_us: Counter[int] = Counter()
    since: dict[str, tuple[int, int]] = {}
    end_us = built.events.window_end_us
    for time, node, state in [*rows, *((end_us, node, -1) for node in built.events.nodes)]:
        if node in since:
            node_us[since[node][1]] += time - since[node][0]
        since[node] = (time, state)
    assert sum(report.facts["node_hours"].values()) * 3_600_000_000 == pytest.approx(sum(node_us.values()))
    told = [{key: tally.count for key, tally in tallies.items()} for tallies in (report.skipped, report.warnings)]
    return Result((built.events.nodes, tuple(rows)), (*told,), (report.rows_read, report.kept, facts), skipped)


def outcome(
    name: str, base: Result, lines: tuple[bytes, ...], spoilt: Mutated, folder: Path, drops: list[Any], without: dict
) -> str:
    """Outcome of a spoilt log."""
    log = SMALL_LOGS[name]
    try:
        found = result(log, b"\n".join(spoilt.lines) + b"\n", folder, drops)
    except InputError as error:
        return REFUSED if error.file is not None else NAMELESS
    number = None if spoilt.at is None else spoilt.at + 1
    is_skipped = {reason for line, reason in found.skipped if line == number} - {
        reason for line, reason in base.skipped if line == number
    }
    if name in ("pbs-pro", "torque"):  # these are said of runs, which start records tell of too
        is_skipped -= {"job of no length", records._IMPOSSIBLE}
    if name in HAS_LINES and number is not None and is_skipped:
        if number not in without:
            rest = (*lines[: number - 1], *lines[number:])
            without[number] = result(log, b"\n".join(rest) + b"\n", folder, drops).rows
        if found.rows != without[number]:
            return WRONG_DROP
    if found.rows == base.rows:
        return SAME
    if found.told != base.told:
        return TOLD
    if found.counted != base.counted:
        return COUNTED
    if spoilt.kind not in ORDER_ONLY:
        changed = Counter(spoilt.lines) - Counter(lines)
        if all(is_well_formed(name, line) for line in changed if line):
            return WELL_FORMED
    return SILENT


@pytest.mark.parametrize("name", SMALL_LOGS)
def test_the_lines_of_the_valid_logs_are_well_formed_and_leave_no_warning(name, tmp_path, drops):
    log = SMALL_LOGS[name]
    found = result(log, log.text.encode(), tmp_path, drops)
    assert found.told[1] == {}
    lines = log.text.encode().splitlines()
    well = [line for line in lines if is_well_formed(name, line)]
    assert len(well) >= len(lines) - 2  # the header; the lines around the records in JSON


@pytest.mark.parametrize("name", SMALL_LOGS)
def test_no_spoilt_line_changes_the_events_without_a_word(name, tmp_path, drops):
    log = SMALL_LOGS[name]
    lines = tuple(log.text.encode().splitlines())
    base = result(log, log.text.encode(), tmp_path, drops)
    rng = random.Random(f"{name} {os.environ.get('BFREPLAY_MUTATED_SEED', 0)}")
    without: dict[int, tuple[Any, ...]] = {}
    counts: Counter[str] = Counter()
    bad = []
    for _ in range(N_MUTATIONS):
        spoilt = mutated(lines, FIELDS[FIELDS_OF[name]], rng)
        what = outcome(name, base, lines, spoilt, tmp_path, drops, without)
        counts[what] += 1
        if what in BAD:
            changed = list((Counter(spoilt.lines) - Counter(lines)).elements())
            bad.append(f"{what}: {spoilt.kind}: {changed}")
    print(f"{name}: {dict(sorted(counts.items()))}")
    assert not bad, "\n".join(bad[:40])
