import pytest

from bfreplay.datasets.ingest.occupancy.build import build_events
from bfreplay.datasets.ingest.occupancy.report_text import render
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.log.states import NodeState

S = 10**6
HOUR = 3_600 * S
T = 1_700_000_000 * S


def rendered(record, reader="slurm", **rules):
    return render(build_events(record, OccupancyRules(**{"window": "full", **rules})), reader)


def unwrapped(text):
    """Wrapped lines put together, blanks as one."""
    return " ".join(text.split())


def small_log():
    record = ScheduleRecord()
    record.add_format("slurm sacct")
    record.report.read(12_345)
    record.add_job(1, T, T + HOUR, record.node_ids("a"))
    record.add_job(2, T, T + 4 * HOUR, record.node_ids("b"))
    return record


def test_the_report_of_a_small_log_line_by_line():
    record = small_log()
    record.report.skip("never started", "jobs.psv", 3, "7|PENDING", count=1_200)
    record.report.skip("a job step", count=11_143)
    record.report.facts["time zone"] = "given as UTC"
    lines = rendered(record).splitlines()
    when = "2023-11-14T22:13:20Z to 2023-11-15T02:13:20Z (0.17 days)"
    assert lines[:10] == [
        "read        12,345 rows as slurm sacct",
        "kept        2 job intervals",
        "skipped     12,343 rows",
        "            11,143 x a job step",
        "            1,200 x never started, e.g. jobs.psv:3: 7|PENDING",
        f"window      {when}, the whole log, as requested: from the",
        "            first start to the last time in it",
        "nodes       2 seen in the log; --inventory adds the others",
        "noted       time zone: given as UTC",
        "node-hours  idle 3 (37.5 %), busy 5 (62.5 %)",
    ]
    assert "noted       no job on the whole machine for 0 % of the window" in lines[10:]


def test_a_known_inventory_is_not_asked_for():
    record = small_log()
    record.add_inventory("ab")
    assert "nodes       2\n" in rendered(record)


def test_one_row_is_no_rows_and_no_rows_are_rows():
    record = small_log()
    record.report.rows_read = 1
    text = rendered(record)
    assert "read        1 row as" in text
    assert "skipped     0 rows" in text


def test_a_log_without_a_format_is_that_of_a_schedule():
    record = small_log()
    record.source_format = ""
    assert "rows as schedule" in rendered(record, "my.own:Reader")


def test_nodes_that_a_rule_chose_are_said_to_be_simulated():
    record = small_log()
    record.set_machine_size(4)
    record.add_job(3, T, T + HOUR, None, 2)
    text = unwrapped(rendered(record, assignment="least-recently-used"))
    assert "assignment Which node a job had is simulated (least-recently-used): the log has only counts." in text
    assert "assignment" not in rendered(small_log())


def test_an_empty_machine_is_reported_with_what_was_assumed():
    record = small_log()
    record.add_job(3, T + 10 * HOUR, T + 12 * HOUR, record.node_ids("a"))
    text = unwrapped(rendered(record))
    assert "no job on the whole machine for 50 % of the window; 1 such time of more than 60 min" in text
    assert "6 h together) assumed down" in text
    assert "(--empty-machine idle: otherwise)" in text
    text = unwrapped(rendered(record, empty_machine="idle"))
    assert "no job on the whole machine for 50 % of the window" in text
    assert "assumed down" not in text


def test_short_idle_intervals_are_reported_with_their_time():
    record = small_log()
    record.add_job(3, T + HOUR + 9 * S, T + 2 * HOUR, record.node_ids("a"))
    text = unwrapped(rendered(record))
    assert "1 idle interval shorter than 10 s (0.00250 node-hours) ignored" in text
    assert "shorter than" not in rendered(record, min_gap_s=0)


def test_node_hours_are_named_by_state_with_their_share():
    record = small_log()
    record.add_outage(NodeState.DRAIN, T + 2 * HOUR, T + 4 * HOUR, record.node_ids("a"))
    assert "node-hours  idle 1 (12.5 %), busy 5 (62.5 %), drain 2 (25 %)" in rendered(record)


def test_warnings_come_last_with_their_places():
    record = small_log()
    for line in (4, 5):
        record.report.warn("two stories of one job", "jobs.psv", line, f"job {line}", count=600)
    record.add_job(3, T, None, record.node_ids("a"), limit_end_us=T + HOUR)
    lines = rendered(record).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("WARNING     1,200 x two stories of one job (about"))
    assert lines[at + 1 : at + 3] == ["            e.g. jobs.psv:4: job 4", "            e.g. jobs.psv:5: job 5"]
    assert lines[at + 3].startswith("WARNING     1 x jobs without an end are long over their time limit")
    assert not any(line.startswith("noted") for line in lines[at:])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12_345, "12,345"),
        (0.000123, "0.000123"),
        (1234.5, "1,230"),
        (["a.psv: slurm", "b.psv: slurm"], "a.psv: slurm; b.psv: slurm"),
        ({"early": 3, "hours": 0.5}, "early 3, hours 0.500"),
        ({"zones": ["UTC", "CET"]}, "zones UTC; CET"),
        (None, "None"),
    ],
)
def test_facts_of_any_kind_are_written_as_people_read_them(value, text):
    record = small_log()
    record.report.facts["found"] = value
    assert f"noted       found: {text}\n" in rendered(record)


def test_lines_are_narrow_but_names_are_never_broken():
    record = small_log()
    record.report.skip("never started", "/a-very-long/" + "folder-" * 20 + "jobs.psv", 3, "word " * 30)
    text = rendered(record)
    assert "folder-" * 20 in text
    assert all(len(line) <= 110 for line in text.splitlines() if "folder" not in line)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
