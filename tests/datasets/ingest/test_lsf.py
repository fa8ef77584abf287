"""LSF: JOB_FINISH of lsb.acct, HOST_CTRL of lsb.events."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.lsf import LsfReader
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.datasets.ingest.what_was_read import check_damaged
from tests.examples import examples

T = 1_700_000_000
US = 1_000_000
UNREADABLE = "rows that cannot be read were skipped: their nodes look idle"


def finished(end, start, hosts=("h1", "h1", "h2"), job=7, index=0, asked=(), name="run", command="a.out", status=64):
    """A JOB_FINISH record, in the order that LSF writes it."""
    fields = [
        '"JOB_FINISH"',
        '"10.1"',
        end,
        job,
        500,
        33_554_434,
        4,
        T - 1_000,
        0,
        0,
        start,
        '"ann"',
        '"normal"',
        '"span[ptile=2]"',
        '""',
        '""',
        '"login1"',
        '"/home/ann"',
        '""',
        '"%J.out"',
        '""',
        '"17.7"',
        len(asked),
        *(f'"{host}"' for host in asked),
        len(hosts),
        *(f'"{host}"' for host in hosts),
        status,
        "60.0",
        f'"{name}"',
        f'"{command}"',
        "0.25",
        "0.50",
        *[-1] * 17,
        '""',
        '"default"',
        0,
        4,
        '""',
        '""',
        index,
        2_048,
        0,
        '""',
        '""',
        '""',
        '""',
        0,
    ]
    return " ".join(map(str, fields))


def control(at, code, host):
    return f'"HOST_CTRL" "10.1" {at} {code} "{host}" 0 "root" "why ""so"""'


def read(tmp_path, *files, **options):
    logs = []
    for i, records in enumerate(files):
        path = tmp_path / str(i)
        path.write_text("\n".join(records) + "\n", encoding="utf-8", errors="surrogateescape")
        logs.append(LogFile(path, str(i)))
    record = ScheduleRecord()
    LsfReader().read(logs, record, ReadOptions(**options))
    assert record.report.rows_read == sum(record.report.kept.values()) + record.report.rows_skipped
    return record


def runs(record):
    """(start, end, nodes), by start."""
    found = []
    for rows, _ in record.jobs.slices():
        for j in range(len(rows)):
            assert rows.end_us[j] != OPEN_END
            nodes = rows.nodes[rows.first_node[j] : rows.first_node[j + 1]]
            found.append((rows.start_us[j] / US, rows.end_us[j] / US, tuple(record.nodes[i] for i in nodes)))
    return sorted(found)


def outages(record):
    return [
        (one.state, one.start_us / US, None if one.end_us == OPEN_END else one.end_us / US, record.nodes[one.nodes[0]])
        for one in record.outages
    ]


def skipped(record):
    return {reason: tally.count for reason, tally in record.report.skipped.items()}


def test_a_job_runs_from_its_start_to_the_time_of_its_record(tmp_path):
    record = read(tmp_path, [finished(T + 60, T)])
    assert runs(record) == [(T, T + 60, ("h1", "h2"))]
    assert not record.report.warnings
    assert record.source_format == "lsf lsb.acct"
    assert record.report.facts["time zone"] == "epoch seconds: no zone needed"


@pytest.mark.parametrize(
    ("hosts", "nodes"),
    [
        (("h1",), ("h1",)),
        (("h2", "h1", "h2"), ("h2", "h1")),
        (("16*h1-ib", "16*h2-ib"), ("h1-ib", "h2-ib")),
        (("ip-10-0.site.internal",), ("ip-10-0.site.internal",)),
    ],
)
def test_hosts_are_listed_once_a_slot_or_with_their_slots(tmp_path, hosts, nodes):
    assert runs(read(tmp_path, [finished(T + 60, T, hosts)])) == [(T, T + 60, nodes)]


def test_hosts_that_were_asked_for_are_no_hosts_of_the_job(tmp_path):
    assert runs(read(tmp_path, [finished(T + 60, T, ("h3",), asked=("h8", "h9"))])) == [(T, T + 60, ("h3",))]


def test_doubled_quotes_blanks_and_line_ends_in_strings_are_text(tmp_path):
    command = '#!/bin/sh;#BSUB -R ""span[ptile=2]"" 64 1.0\n""JOB_FINISH"" ""10.1"" 5\n\nexit'
    record = read(tmp_path, [finished(T + 60, T, command=command), finished(T + 90, T + 70, job=8)])
    assert runs(record) == [(T, T + 60, ("h1", "h2")), (T + 70, T + 90, ("h1", "h2"))]
    assert record.report.rows_read == 2
    assert not record.report.warnings


def test_a_quote_that_is_never_closed_costs_its_own_record_only(tmp_path):
    record = read(tmp_path, [finished(T + 60, T, name='cut"'), finished(T + 90, T + 70, job=8)])
    assert runs(record) == [(T + 70, T + 90, ("h1", "h2"))]
    assert record.report.warnings[UNREADABLE].count == 1


def test_a_job_that_never_started_is_skipped(tmp_path):
    record = read(tmp_path, [finished(T, 0, ()), finished(T + 60, T), finished(T + 60, T + 1, (), job=9)])
    assert skipped(record) == {"never started": 1, "a job without nodes": 1}
    assert not record.report.warnings


def test_members_of_an_array_and_requeued_runs_are_runs_of_their_own(tmp_path):
    record = read(
        tmp_path,
        [
            finished(T + 60, T, ("h1",), index=1),
            finished(T + 60, T, ("h2",), index=2),
            finished(T + 95, T + 70, ("h1",), index=1),
            finished(T + 95, T + 70, ("h1",), index=1),
        ],
    )
    assert runs(record) == [(T, T + 60, ("h1",)), (T, T + 60, ("h2",)), (T + 70, T + 95, ("h1",))]


def test_resizes_and_reservations_and_other_records_are_counted(tmp_path):
    others = [
        f'"JOB_RESIZE" "10.1" {T} 7 0 {T} 500 "ann" 1',
        f'"EVENT_ADRSV_FINISH" "10.1" {T} {T} 1',
        f'"JOB_NEW" "10.1" {T} 7',
    ]
    record = read(tmp_path, [*others, finished(T + 60, T)])
    assert skipped(record) == {"resize of a job": 1, "advance reservation": 1, "other record type": 1}
    assert len(record.report.warnings) == 1
    assert len(read(tmp_path, [*others, finished(T + 60, T)], reservations="reserved").report.warnings) == 2


def test_a_record_of_an_unknown_type_is_a_warning(tmp_path):
    record = read(tmp_path, [finished(T + 60, T), GOOD.replace("FINISH", "FINSH")])
    assert skipped(record) == {"other record type": 1}
    assert len(record.report.warnings) == 1


def test_hosts_of_another_cluster_are_left_out_with_a_warning(tmp_path):
    record = read(tmp_path, [finished(T + 60, T, ("h1", "x1@far")), finished(T + 60, T, ("x1@far",), job=8)])
    assert runs(record) == [(T, T + 60, ("h1",))]
    assert skipped(record) == {"ran in another cluster": 1}
    assert [tally.count for tally in record.report.warnings.values()] == [2]


def test_event_times_that_go_back_are_a_warning(tmp_path):
    record = read(tmp_path, [finished(T + 90_000, T), finished(T + 60, T, job=8)])
    assert len(runs(record)) == 2
    assert len(record.report.warnings) == 1


def test_a_host_is_drained_from_when_it_was_closed_until_it_was_opened(tmp_path):
    events = [
        "#1234",
        control(T - 5, 1, "h3"),
        control(T, 2, "h1"),
        control(T + 1, 2, "h1"),
        control(T + 30, 1, "h1"),
        control(T + 40, 2, "h2"),
        control(T + 50, 4, "h2"),
        f'"JOB_START" "10.1" {T} 7 4 0 0 60.0 1 "h1"',
    ]
    record = read(tmp_path, events, [finished(T + 60, T)], events)
    assert outages(record) == [(NodeState.DRAIN, T, T + 30, "h1"), (NodeState.DRAIN, T + 40, None, "h2")]
    assert skipped(record) == {
        "host opened that was not closed in this log": 1,
        "host closed that was closed": 1,
        "host opened, its outage is known from when it was closed": 1,
        "host control other than open and close": 1,
        "host control that was read twice": 6,
        "other record type": 2,
    }
    assert record.source_format == "lsf lsb.acct + lsf lsb.events"


def test_events_alone_are_refused_with_the_command_to_run(tmp_path):
    with pytest.raises(InputError, match=r"only lsb\.acct has the hosts of each job") as error:
        read(tmp_path, [control(T, 2, "h1")])
    assert "LSF_ENVDIR" in error.value.fix


def test_a_file_of_another_kind_is_refused_by_its_name(tmp_path):
    with pytest.raises(InputError, match="neither") as error:
        read(tmp_path, [finished(T + 60, T)], ["JobID|State", "1|COMPLETED"])
    assert (error.value.file, error.value.row) == ("1", "line 1")


GOOD = finished(T + 60, T, job=8)


@pytest.mark.parametrize(
    "bad",
    [
        "half a record",
        GOOD[:60],
        " ".join(GOOD.split(" ")[:11]),
        GOOD[:220],
        finished("1_700_000_060", T),
        finished("１７", T),
        finished(T + 60, "nan"),
        finished(T + 60, -T),
        finished(T + 60, T, job="7a"),
        finished(T + 60, T, index="x"),
        finished(T + 60, T, ("16*",)),
        finished(T + 60, T, ("h 1",)),
        finished(T + 60, T, ("h[1-9]",)),
        finished(T + 60, T, status="DONE"),
        finished(T + 60, T - 200_000),
        finished(T + 60, T + 61),
        GOOD.replace(' 3 "h1"', ' 2 "h1"'),
        GOOD.replace(' 3 "h1"', ' 4 "h1"'),
        GOOD.replace(' 3 "h1"', ' 999999999 "h1"'),
        GOOD.replace('"ann" ', ""),
        GOOD.replace('"h2"', '"h2"x'),
        GOOD.replace('"h2"', "h2"),
        control(T, "x", "h1"),
        control(T, 2, "h 1"),
        f'"HOST_CTRL" "10.1" {T} 2',
    ],
)
def test_a_record_that_cannot_be_read_is_left_out_with_a_warning(tmp_path, bad):
    record = read(tmp_path, [finished(T + 30, T), bad])
    assert runs(record) == [(T, T + 30, ("h1", "h2"))]
    assert not record.outages
    assert {sentence: tally.count for sentence, tally in record.report.warnings.items()} == {UNREADABLE: 1}
    assert record.report.warnings[UNREADABLE].examples[0].line == 2


def test_a_log_without_any_run_is_refused_with_what_was_found(tmp_path):
    with pytest.raises(InputError, match="never started: 2"):
        read(tmp_path, [finished(T, 0, ()), finished(T, 0, (), job=8)])


def test_quotes_without_end_take_no_time_that_grows_with_their_square(tmp_path):
    record = read(tmp_path, [finished(T + 60, T), finished(T + 90, T, command='"' * 400_001)])
    assert len(runs(record)) == 1


def test_it_recognises_its_own_and_nothing_else(tmp_path):
    def reason(text):
        path = tmp_path / "log"
        path.write_text(text)
        return LsfReader().recognise(LogFile(path))

    assert "JOB_FINISH" in reason(f"{GOOD}\n")
    assert "HOST_CTRL" in reason(f"#99\n{control(T, 2, 'h1')}\n")
    for other in (
        "11/14/2023 10:00:00;E;7.srv;start=1 end=2 exec_host=n1/0\n",
        '"JobID","State"\n"1","COMPLETED"\n',
        '"COMMAND" "1.0" 1700000000 x\n',
        "JobID|State\n",
        "",
    ):
        assert reason(other) is None


def test_no_shared_log_of_another_scheduler_is_taken_for_lsf(shared):
    logs = [path for path in sorted((shared / "data/logs").iterdir()) if path.is_file()]
    assert logs
    assert [path.name for path in logs if LsfReader().recognise(LogFile(path))] == []


# ---- damage --------------------------------------------------------------------------------------------------------

VALID = [
    finished(T + 30, T, index=3),
    finished(T + 40, T + 5, ("16*h4", "8*h5"), job=8, command='sh ""x"" 1'),
    control(T + 41, 2, "h1"),
    finished(T + 50, 0, (), job=9, status=32),
    finished(T + 90, T + 60, ("h4",), job=10, asked=("h4", "h5")),
    control(T + 95, 1, "h1"),
]
MALFORMED = {"no record, or a quote in it is not closed", "fields that cannot be read"}


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_gives_a_record_or_an_error_and_what_is_left_out_changes_nothing_else(tmp_path, data):
    lines = list(VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(lines) - 1))
        at = data.draw(st.integers(0, max(0, len(lines[i]) - 1)))
        text = data.draw(st.text('0123456789 "*@-.nh', max_size=3))
        lines[i] = lines[i][:at] + text + lines[i][at + data.draw(st.sampled_from([0, 1, 2, 10_000])) :]
    caught = None
    try:
        record = read(tmp_path, lines)
    except InputError as error:
        caught = error
    if caught is not None:
        assert caught.file
        return
    tallies = [record.report.skipped[reason] for reason in sorted(MALFORMED & set(record.report.skipped))]
    bad = {example.line for tally in tallies for example in tally.examples}
    assert not bad or UNREADABLE in record.report.warnings
    if sum(tally.count for tally in tallies) != len(bad):
        return  # more of a kind than the report names
    # a string without its end takes the lines up to the next record with it
    good = [line for number, line in enumerate(lines, 1) if number not in bad]
    if record.report.rows_read != len([line for line in lines if line.strip() and not line.startswith("#")]):
        return
    without = read(tmp_path, good)
    assert runs(without) == runs(record)
    assert outages(without) == outages(record)


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_never_end_in_another_error(tmp_path, data):
    content = bytearray("\n".join(VALID).encode())
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    check_damaged(LsfReader(), content, tmp_path / "log")


@pytest.mark.parametrize("start", [0, -1])
@pytest.mark.parametrize("index", [-1, 0, 108])
def test_an_element_killed_while_pending_never_started(tmp_path, start, index):
    record = read(tmp_path, [finished(T + 9, T), finished(T, start, hosts=(), job=51, index=index, status=32)])
    assert (skipped(record), record.report.warnings) == ({"never started": 1}, {})
    assert len(runs(record)) == 1


def test_a_start_of_minus_one_with_hosts_is_no_job_that_never_started(tmp_path):
    record = read(tmp_path, [finished(T + 9, T), finished(T, -1, hosts=("h3",), job=51)])
    assert skipped(record) == {"fields that cannot be read": 1}


def test_hosts_of_another_cluster_do_not_change_how_many_are_idle(tmp_path):
    record = read(tmp_path, [finished(T + 9, T), finished(T + 7_200, T, hosts=("h3@c2", "h4@c2"), job=51)])
    (found,) = record.report.warnings.values()
    assert (found.node_hours, bool(found.aside)) == (2 * 2.0, True)
