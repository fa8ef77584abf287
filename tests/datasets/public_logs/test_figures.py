"""Figures of the public logs: the table in docs/public-logs.md is the output of their commands today.

``python -m tests.datasets.public_logs.test_figures`` prints it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.datasets.public_logs import catalogue

PAGE = Path(__file__).resolve().parents[3] / "docs" / "public-logs.md"
LOGS = [log for log in catalogue() if log.ingest]
HEAD = "| log | rows | job intervals | nodes | window (UTC) | mean idle nodes | idle | down |"


def row_of(log, folder):
    """Run the command of the catalogue, and say what came of it as a row of the table."""
    words = shlex.split(log.ingest)[1:]
    words = [str(folder / word) if any(word == file.name for file in log.files) else word for word in words]
    words = words[: words.index("-o")]
    result = CliRunner().invoke(main, [*words, "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    facts, window = report["facts"], report["window"]
    hours = facts["node_hours"]
    total = sum(hours.values())
    days = total / facts["nodes"] / 24
    start, end = (re.sub(r"T.*", "", window[edge]) for edge in ("start", "end"))
    cells = [
        log.name,
        f"{report['rows_read']:,}",
        f"{report['kept']['job intervals']:,}",
        f"{facts['nodes']:,}",
        f"{start} to {end} ({days:,.2f} days)",
        f"{hours.get('idle', 0) / days / 24:,.1f}",
        f"{hours.get('idle', 0) / total:.1%}",
        f"{hours.get('down', 0) / total:.1%}",
    ]
    return f"| {' | '.join(cells)} |"


@pytest.mark.often("kth-sp2-1996", "nrel-eagle-sample", "batsim-medium-easy", "ncar-casper-sample")
@pytest.mark.parametrize(
    "log",
    [
        pytest.param(log, id=log.name, marks=[pytest.mark.thorough] if log.name == "cea-curie-2011" else [])
        for log in LOGS
    ],
)
def test_the_table_shows_what_the_command_gives(shared, log):
    assert row_of(log, shared / "data" / "logs") in PAGE.read_text().splitlines()


def test_the_table_has_a_row_for_every_log_that_has_a_command():
    text = PAGE.read_text()
    assert HEAD in text
    table = text[text.index(HEAD) :].split("\n\n")[0]
    assert re.findall(r"^\| ([\w-]+) \|", table, re.MULTILINE) == ["log", *(log.name for log in LOGS)]


@pytest.mark.parametrize(
    ("file", "jobs", "nodes"),
    [
        ("CEA-Curie-2011-2.1-cln.swf.gz", 312_826, 5_544),
        ("KTH-SP2-1996-2.1-cln.swf.gz", 27_992, 100),
        ("SDSC-BLUE-2000-4.2-cln.swf.gz", 243_306, 144),
        ("xdmod-phillips-sacct.psv.gz", 4_285, 46),
        ("xdmod-pozidriv-sacct.psv.gz", 11_704, 105),
        ("METACENTRUM-2009-2.swf.gz", 103_656, 604),
    ],
)
def test_jobs_and_nodes_are_those_of_the_manifest(shared, file, jobs, nodes):
    manifest = (shared / "data" / "logs" / "MANIFEST.md").read_text()
    (line,) = [line for line in manifest.splitlines() if line.startswith(f"| {file} ")]
    assert f"{jobs:,} jobs" in line
    if "METACENTRUM" not in file:
        assert f"{nodes:,} nodes" in line
    (log,) = [log for log in LOGS if any(each.name == file for each in log.files)]
    cells = next(row for row in PAGE.read_text().splitlines() if row.startswith(f"| {log.name} | ")).split(" | ")
    assert (cells[1], cells[3]) == (f"{jobs:,}", f"{nodes:,}")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("LLNL-Thunder-2007-1.1-cln.swf.gz", ["column 3 is -1 in all 121,039 rows", "--missing-wait-is-zero"]),
        ("METACENTRUM-2009-2.swf.gz", ["at most 604 processors", "--nodes N --procs-per-node P"]),
        ("nrel-eagle-sample1000.csv.gz", ["no zone", "--tz"]),
        ("alcf-mira-maintenance-periods.csv", ["no jobs", "https://reports.alcf.anl.gov/data/"]),
        ("alcf-mira-cobalt-reservations-2013-2018.csv.gz", ["no jobs"]),
        ("alcf-mira-cobalt-job-columns.txt", ["no reader knows"]),
        ("batsim-easy-out_machine_states.csv", ["there is no out_jobs.csv"]),
        ("batsim-easy-out_schedule.csv", ["there is no out_jobs.csv"]),
        ("batsim-medium_late-workload.json.gz", ["there is no out_jobs.csv"]),
    ],
)
def test_what_cannot_go_in_alone_is_refused_with_what_to_change(shared, file, words):
    result = CliRunner().invoke(main, ["ingest", "auto", str(shared / "data" / "logs" / file)])
    assert result.exit_code == 2
    for word in words:
        assert word in " ".join(result.output.split())


def test_every_shared_log_is_in_a_command_or_refused(shared):
    named = {word for log in LOGS for word in shlex.split(log.ingest)}
    here = test_what_cannot_go_in_alone_is_refused_with_what_to_change
    refused = {case[0] for mark in here.pytestmark for case in mark.args[1]}
    files = {path.name for path in (shared / "data" / "logs").iterdir()} - {"MANIFEST.md"}
    assert files <= named | refused


if __name__ == "__main__":
    logs = Path(os.environ.get("BFREPLAY_SHARED") or PAGE.parents[2] / "shared") / "data" / "logs"
    print("\n".join([HEAD, "|" + "---|" * 8, *(row_of(each, logs) for each in LOGS)]))
