"""Jobs and resource events of Flux."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.datasets.ingest.flux import (
    EVENTS_UNREADABLE,
    LONG_CLEANUP,
    NO_INACTIVE,
    NO_NAMES,
    PERHAPS_CUT,
    FluxReader,
)
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.examples import examples

T = 1_700_000_000


def job(**changes):
    plain = {
        "id": 5_000_000_000,
        "t_submit": T + 0.5,
        "t_depend": T + 0.6,
        "t_run": T + 1.25,
        "t_cleanup": T + 11.5,
        "t_inactive": T + 12.75,
        "nnodes": 2,
        "ranks": "[4-5]",
        "nodelist": "tux[04-05]",
        "expiration": T + 61.25,
        "duration": 60.0,
        "state": "INACTIVE",
        "result": "COMPLETED",
    } | changes
    return {key: value for key, value in plain.items() if value is not ...}


def event(name, after, **context):
    return json.dumps({"timestamp": T + after, "name": name, "context": context})


def read(folder, *contents):
    files = []
    for i, content in enumerate(contents):
        path = folder / f"{i}.json"
        text = json.dumps({"jobs": content}) if isinstance(content, list) else content
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        files.append(LogFile(path))
    record = ScheduleRecord()
    FluxReader().read(files, record, ReadOptions())
    return record


def jobs_of(record):
    """Start, end and limit in seconds after T, nodes held, names listed."""
    found = []
    for part, _ in record.jobs.slices():
        for i in range(len(part)):
            ends = [None if t == OPEN_END else t / 1e6 - T for t in (part.end_us[i], part.limit_end_us[i])]
            nodes = part.nodes[part.first_node[i] : part.first_node[i + 1]]
            found.append((part.start_us[i] / 1e6 - T, *ends, int(part.count[i]), [record.nodes[n] for n in nodes]))
    return found


def outages_of(record):
    return [
        (
            outage.state,
            outage.start_us / 1e6 - T,
            None if outage.end_us == OPEN_END else outage.end_us / 1e6 - T,
            [record.nodes[n] for n in outage.nodes],
        )
        for outage in record.outages
    ]


def skipped(record):
    return {reason: tally.count for reason, tally in record.report.skipped.items()}


def test_a_job_holds_its_nodes_from_run_until_it_is_inactive(tmp_path):
    record = read(tmp_path, [job()])
    assert jobs_of(record) == [(1.25, 12.75, 61.25, 2, ["tux04", "tux05"])]
    assert (record.report.rows_read, record.report.skipped, record.report.warnings) == (1, {}, {})
    assert record.source_format == "flux jobs"


@pytest.mark.parametrize("state", ["RUN", "CLEANUP"])
def test_a_job_that_is_not_inactive_holds_its_nodes_still(tmp_path, state):
    cleanup = T + 11.5 if state == "CLEANUP" else ...
    record = read(tmp_path, [job(t_inactive=..., t_cleanup=cleanup, state=state)])
    assert jobs_of(record)[0][:3] == (1.25, None, 61.25)
    assert record.n_open == 1


def test_an_inactive_job_without_its_time_ends_at_cleanup_with_a_warning(tmp_path):
    record = read(tmp_path, [job(t_inactive=...)])
    assert jobs_of(record)[0][1] == 11.5
    assert list(record.report.warnings) == [NO_INACTIVE]


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({}, 61.25),
        ({"expiration": 0, "duration": 30.0}, 31.25),
        ({"expiration": 0.0, "duration": 0}, None),
        ({"expiration": ..., "duration": ...}, None),
        ({"expiration": None, "duration": "long"}, None),
    ],
)
def test_the_limit_is_the_expiration_or_the_duration_and_zero_is_none(tmp_path, changes, limit):
    assert jobs_of(read(tmp_path, [job(**changes)]))[0][2] == limit


@pytest.mark.parametrize(
    ("changes", "reason", "is_warning"),
    [
        ({"t_run": 0.0, "t_cleanup": ..., "t_inactive": ...}, "pending", False),
        ({"t_run": ..., "t_cleanup": ..., "t_inactive": ..., "nodelist": ...}, "pending", False),
        ({"t_run": ...}, "never ran", False),
        ({"t_run": 0}, "never ran", False),
        ({"t_inactive": T + 1.25}, "job of no length", False),
        ({"t_inactive": T + 1}, "job that ends before it starts", False),
        ({"t_run": "soon"}, "a time of a job is not a number of seconds", True),
        ({"t_inactive": -5}, "a time of a job is not a number of seconds", True),
        ({"t_inactive": 1e300}, "a time of a job is not a number of seconds", True),
        ({"t_run": True}, "a time of a job is not a number of seconds", True),
        ({"nodelist": "tux[04-"}, "the nodelist of a job cannot be read", True),
        ({"nodelist": 7}, "the nodelist of a job cannot be read", True),
        ({"nodelist": "", "nnodes": ...}, "a job that ran has neither nodelist nor nnodes", True),
        ({"id": ...}, "a job without an id", True),
    ],
)
def test_what_is_no_interval_is_skipped_by_reason_with_its_number(tmp_path, changes, reason, is_warning):
    record = read(tmp_path, [job(id=1), job(**{"id": 2} | changes), job(id=3)])
    assert skipped(record) == {reason: 1}
    assert record.report.skipped[reason].examples[0].line == 2
    assert list(record.report.warnings) == ([UNREADABLE] if is_warning else [])
    assert len(jobs_of(record)) == 2


def test_what_is_no_job_at_all_is_skipped_and_warned_of(tmp_path):
    record = read(tmp_path, [job(), 7, [job()]])
    assert skipped(record) == {"a job is not a JSON object": 2}


def test_a_job_that_lists_no_nodes_holds_as_many_as_it_says(tmp_path):
    assert jobs_of(read(tmp_path, [job(nodelist="")]))[0][3:] == (2, [])


def test_another_number_of_nodes_than_listed_has_warning_by_the_record(tmp_path):
    record = read(tmp_path, [job(nnodes=3)])
    assert jobs_of(record)[0][3:] == (3, ["tux04", "tux05"])
    assert len(record.report.warnings) == 1


def test_jobs_inside_of_jobs_are_not_read(tmp_path):
    record = read(tmp_path, [job(jobs=[job(id=1), job(id=2, jobs=[])])])
    assert len(jobs_of(record)) == 1
    assert 2 in record.report.facts.values()


def test_a_list_of_exactly_a_thousand_jobs_may_have_been_cut(tmp_path):
    record = read(tmp_path, [job(id=i) for i in range(1000)])
    assert list(record.report.warnings) == [PERHAPS_CUT]
    assert not read(tmp_path, [job(id=i) for i in range(999)]).report.warnings


def test_the_list_was_made_after_its_latest_time(tmp_path):
    record = read(tmp_path, [job(), job(t_submit=T + 99.0, t_depend=..., t_run=..., t_cleanup=..., t_inactive=...)])
    assert record.last_stamp_us == (T + 99) * 1_000_000


def test_other_keys_of_the_document_are_passed_over(tmp_path):
    text = json.dumps({"jobs2": [job()], "x": {"jobs": [job()]}, "y": [[1], {"a": 2}], "jobs": [job()]})
    assert len(jobs_of(read(tmp_path, text))) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (json.dumps({"jobs": [job()] * 3})[:-60], "broken or cut"),
        ('{"jobs": [' + "[" * 100_000, "nested more than 64 deep"),
        ('{"jobs": [1e99999999999999999999]}', "broken or cut"),
        ('{"jobs": [' + "1" * 5_000 + "]}", "broken or cut"),
        ('{"jobs": {}}', 'there is no list "jobs"'),
        ('{"jobs": []}', "no job of this list can be used"),
        (json.dumps(job()), 'there is no list "jobs"'),
        ("JobID|State\n", "neither a list of jobs nor an eventlog"),
    ],
)
def test_a_document_that_is_no_list_of_jobs_is_refused_with_the_command(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        read(tmp_path, text)
    assert "flux jobs -a -A -c 0 --json" in str(caught.value)
    assert "0.json" in str(caught.value)


def test_a_cut_document_says_after_which_job(tmp_path):
    with pytest.raises(InputError) as caught:
        read(tmp_path, json.dumps({"jobs": [job(), job(), job()]})[:-60])
    assert caught.value.row == "after record 2"


def test_a_list_in_which_nobody_ran_is_refused_with_the_reasons(tmp_path):
    with pytest.raises(InputError, match="0 of 2 ever ran") as caught:
        read(tmp_path, [job(t_run=...)] * 2)
    assert "2 x never ran" in str(caught.value)


# ---- resource events ---------------------------------------------------------------------------------------------


RESTART = event("restart", 0, ranks="0-3", online="0-3", nodelist="tux[00-03]")


def test_drained_nodes_are_out_until_they_are_undrained(tmp_path):
    drain = event("drain", 10, idset="0-1", nodelist="tux[00-01]", reason="disk", overwrite=0)
    again = event("drain", 20, idset="1", nodelist="tux01", reason="disks", overwrite=2)
    back = event("undrain", 30, idset="0", nodelist="tux00")
    record = read(tmp_path, "\n".join([drain, again, back]))
    assert outages_of(record) == [(NodeState.DRAIN, 10, 30, ["tux00"]), (NodeState.DRAIN, 10, None, ["tux01"])]
    assert skipped(record) == {"event of nodes that were out already": 1, "event of nodes that came back": 1}
    assert record.report.rows_read == 3
    assert record.source_format == "flux resource eventlog"


@pytest.mark.parametrize("spoilt", [{"online": "{0-3"}, {"torpid": "9"}, {"drain": {"9": {}}}, {"drain": {"x": {}}}])
def test_a_restart_that_cannot_be_read_names_no_ranks(tmp_path, spoilt):
    whole = {"ranks": "0-3", "online": "0-3", "nodelist": "tux[00-03]"}
    lines = [
        RESTART,
        event("restart", 5, **whole | {"nodelist": "new[00-03]"} | spoilt),
        event("offline", 9, idset="1"),
    ]
    record = read(tmp_path, "\n".join(lines))
    assert outages_of(record) == [(NodeState.DOWN, 9, None, ["tux01"])]
    assert len(record.report.warnings) == 1


def test_ranks_are_named_by_the_last_restart(tmp_path):
    lines = [RESTART, event("offline", 5, idset="1,3"), event("online", 9, idset="1-3")]
    assert outages_of(read(tmp_path, "\n".join(lines))) == [(NodeState.DOWN, 5, 9, ["tux01", "tux03"])]


def test_nodes_are_offline_from_a_restart_until_they_come_online(tmp_path):
    lines = [event("restart", 0, ranks="0-1", online="", nodelist="tux[00-01]"), event("online", 4, idset="1")]
    record = read(tmp_path, "\n".join(lines))
    assert outages_of(record) == [(NodeState.DOWN, 0, 4, ["tux01"]), (NodeState.DOWN, 0, None, ["tux00"])]


def test_a_restart_ends_what_it_shows_to_be_over(tmp_path):
    lines = [
        RESTART,
        event("offline", 5, idset="1-2"),
        event("torpid", 6, idset="3"),
        event("drain", 7, idset="0", nodelist="tux00", overwrite=0),
        RESTART.replace(str(T), str(T + 20)).replace('"online": "0-3"', '"online": "0-1,3"'),
    ]
    record = read(tmp_path, "\n".join(lines))
    assert sorted(outages_of(record), key=lambda outage: outage[1]) == [
        (NodeState.DOWN, 5, 20, ["tux01"]),
        (NodeState.DOWN, 5, None, ["tux02"]),
        (NodeState.DOWN, 6, 20, ["tux03"]),
        (NodeState.DRAIN, 7, None, ["tux00"]),
    ]


def test_a_truncated_journal_begins_with_what_was_out(tmp_path):
    first = event(
        "truncate",
        50,
        ranks="0-3",
        nodelist="tux[00-03]",
        online="0-2",
        torpid="2",
        drain={"0": {"timestamp": T + 8.5, "reason": "disk"}},
    )
    record = read(tmp_path, "\n".join([first, event("lively", 60, idset="2")]))
    assert outages_of(record) == [
        (NodeState.DOWN, 50, 60, ["tux02"]),
        (NodeState.DRAIN, 8.5, None, ["tux00"]),
        (NodeState.DOWN, 50, None, ["tux03"]),
    ]


def test_ranks_that_nobody_named_are_skipped_and_warned_of(tmp_path):
    old = event("resource-init", 0, restart=False, drain={"2": {"timestamp": T, "reason": ""}}, online="", exclude="")
    lines = [old, event("offline", 1, idset="1"), event("resource-define", 2, method="configuration")]
    record = read(tmp_path, "\n".join(lines))
    assert skipped(record) == {"an event of ranks without names": 2, "event of another kind": 1}
    assert record.report.warnings[NO_NAMES].count == 2
    assert not record.outages


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1]",
        "not json",
        '{"timestamp": "now", "name": "drain", "context": {}}',
        '{"timestamp": NaN, "name": "drain", "context": {}}',
        '{"timestamp": 1' + "0" * 400 + ', "name": "drain", "context": {}}',
        '{"timestamp": 1, "name": 4, "context": {}}',
        '{"timestamp": 1, "name": "drain", "context": []}',
        event("drain", 1),
        event("drain", 1, idset="x"),
        event("offline", 1, idset="3-1"),
        event("offline", 1, idset="0-9999999"),
        event("drain", 1, idset="1", nodelist="tux[01-"),
        event("restart", 1, ranks="0-1", online="", nodelist="tux[00-03]"),
        "[" * 100_000,
    ],
)
def test_an_event_that_cannot_be_read_is_skipped_and_warned_of_with_its_line(tmp_path, line):
    lines = [RESTART, line, event("offline", 9, idset="3")]
    record = read(tmp_path, "\n".join(lines))
    assert record.report.warnings[EVENTS_UNREADABLE].count == 1
    assert record.report.warnings[EVENTS_UNREADABLE].examples[0].line == 2
    assert outages_of(record) == [(NodeState.DOWN, 9, None, ["tux03"])]


def test_jobs_and_events_go_into_one_record(tmp_path):
    record = read(tmp_path, [job()], event("drain", 1, idset="0", nodelist="tux04", overwrite=0))
    assert (len(jobs_of(record)), len(record.outages)) == (1, 1)
    assert record.source_format == "flux jobs + flux resource eventlog"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (json.dumps({"jobs": [job()]}, indent=1), True),
        (RESTART + "\n", True),
        ('{"jobs": [{"job_id": 1, "nodes": "n1", "time": {"start": 1}}]}', False),
        ('{"timestamp": 1, "name": "login", "context": {}}\n', False),
        ('{"jobs": [{"id": 1, "subtime": 0, "profile": "p"}], "profiles": {}}', False),
        ("; Version: 2.2\n", False),
        ("[" * 100, False),
        ("", False),
    ],
)
def test_the_format_is_recognised_by_keys_that_only_it_has(tmp_path, text, is_one):
    path = tmp_path / "log"
    path.write_text(text)
    assert (FluxReader().recognise(LogFile(path)) is not None) == is_one


def test_no_real_log_of_another_format_is_taken_for_this_one(shared):
    assert not [p.name for p in (shared / "data" / "logs").iterdir() if FluxReader().recognise(LogFile(p))]


JUNK = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"0", b"-", b"null", b"1e999", b"\x00", b"\xff", b"\n", b"\\u12", b""]


def damaged(draw, content):
    for _ in range(draw(st.integers(1, 3))):
        at, cut = draw(st.integers(0, len(content))), draw(st.integers(0, 6))
        content = content[:at] + draw(st.sampled_from(JUNK)) + content[at + cut :]
    return content


def read_or_refused(path, content):
    """Return the record; None if it was refused with an error that names the file."""
    path.write_bytes(content)
    record = ScheduleRecord()
    try:
        FluxReader().read([LogFile(path)], record, ReadOptions())
    except InputError as error:
        if error.file != str(path):
            raise
        return None
    return record


@settings(max_examples=examples(400))
@given(data=st.data())
def test_a_damaged_list_of_jobs_is_refused_or_counted_to_the_last_job(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("flux") / "jobs.json"
    jobs = [job(id=i, t_run=T + i, nodelist=f"tux[{i:02d}-{i + 1:02d}]") for i in range(1, 6)]
    record = read_or_refused(path, damaged(data.draw, json.dumps({"jobs": jobs}).encode()))
    if record is not None:
        assert record.report.rows_read == record.report.kept["job intervals"] + record.report.rows_skipped


@settings(max_examples=examples(400))
@given(data=st.data())
def test_a_damaged_eventlog_is_refused_or_read_as_if_the_unreadable_lines_were_not_there(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("flux") / "eventlog"
    lines = [
        RESTART,
        event("drain", 10, idset="0-1", nodelist="tux[00-01]", overwrite=0),
        event("offline", 20, idset="2"),
        event("undrain", 30, idset="0", nodelist="tux00"),
        event("online", 40, idset="2"),
        event("torpid", 50, idset="3"),
    ]
    content = damaged(data.draw, "\n".join(lines).encode())
    record = read_or_refused(path, content)
    if record is None:
        return
    assert record.report.rows_read == sum(1 for line in content.split(b"\n") if line.strip())
    warnings = [
        tally for sentence, tally in record.report.warnings.items() if sentence in (EVENTS_UNREADABLE, NO_NAMES)
    ]
    if any(tally.count > len(tally.examples) for tally in warnings):
        return
    out = {example.line for tally in warnings for example in tally.examples}
    left = [line for number, line in enumerate(content.split(b"\n"), 1) if number not in out]
    again = read_or_refused(path, b"\n".join(left))
    if again is not None:
        assert outages_of(again) == outages_of(record)


def test_a_job_that_is_over_without_any_end_is_left_out_with_a_warning(tmp_path):
    record = read(tmp_path, [job(), job(id=6, t_cleanup=..., t_inactive=...)])
    assert len(jobs_of(record)) == 1
    assert skipped(record) == {"a job is over and has no end": 1}
    assert record.report.warnings


def test_a_cleanup_of_more_than_a_day_has_warning(tmp_path):
    record = read(tmp_path, [job(t_inactive=T + 11.5 + 86_401)])
    assert list(record.report.warnings) == [LONG_CLEANUP]
    assert not read(tmp_path, [job(t_inactive=T + 11.5 + 86_400)]).report.warnings
