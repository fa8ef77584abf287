"""Tables of outages: which tables are some, whose nodes were out, and files of outages beside any log."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.table.open_tables import CUT_END
from bfreplay.datasets.ingest.table.reader import TableReader
from bfreplay.datasets.ingest.table.table_jobs import NODE_STATES
from bfreplay.datasets.ingest.table.table_outages import (
    IN_USE,
    OUTAGE_UNKNOWN,
    OUTAGES_BACKWARDS,
    OUTAGES_UNREADABLE,
    read_outages,
)
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError

JOBS = "id,start,end,nodelist\n1,100,160,c[1-4]\n"
SECOND = 1_000_000


@pytest.fixture
def read(tmp_path):
    """Write texts as files and read them as one log."""

    def read_texts(*texts, **options):
        files = []
        for i, text in enumerate(texts):
            path = tmp_path / f"{i}.csv"
            path.write_text(text)
            files.append(LogFile(path))
        record = ScheduleRecord()
        TableReader().read(files, record, ReadOptions(**options))
        return record

    return read_texts


@pytest.fixture
def add(tmp_path):
    """Write a text as a file and read it as outages beside a log that was read already."""

    def add_outages(text, record=None, **options):
        path = tmp_path / "outages.csv"
        path.write_text(text)
        record = ScheduleRecord() if record is None else record
        read_outages(LogFile(path), record, ReadOptions(**options))
        return record

    return add_outages


def outages(record):
    """(state, start in s, end in s or None, names or None for the whole machine) of all outages."""
    return [
        (
            outage.state,
            outage.start_us / SECOND,
            None if outage.end_us == OPEN_END else outage.end_us / SECOND,
            None if outage.nodes is None else tuple(record.nodes[i] for i in outage.nodes),
        )
        for outage in record.outages
    ]


def balances(record):
    return record.report.rows_read == sum(record.report.kept.values()) + record.report.rows_skipped


@pytest.mark.parametrize("column", ["node", "nodes", "host", "Hostname", "node_name", "NodeName", "nodelist"])
def test_the_column_of_nodes_of_an_outage_has_many_names(read, column):
    record = read(JOBS, f"{column},start,end,what\nc2,200,260,down\n", mapping={"outage_state": "what"})
    assert outages(record) == [(NodeState.DOWN, 200, 260, ("c2",))]


@pytest.mark.parametrize("header", ["where_is_it,start,end,what", "nodes,start,end,what"])
def test_outages_of_which_nobody_says_the_nodes_are_refused(read, header):
    """A number in a column of nodes says how many, not which."""
    with pytest.raises(InputError, match="has no column of nodes") as caught:
        read(JOBS, f"{header}\n2,200,260,down\n", mapping={"outage_state": "what"})
    assert "--map nodes=" in caught.value.fix
    assert "--map nodes=ALL" in caught.value.fix


def test_the_whole_machine_was_out_if_the_user_says_so(read):
    record = read(JOBS, "start,end,what\n200,260,down\n", mapping={"outage_state": "what", "nodes": "ALL"})
    assert outages(record) == [(NodeState.DOWN, 200, 260, None)]
    assert record.report.facts["columns of 1.csv"]["nodes"] == "the whole machine, as given"
    assert record.jobs.n_rows == 1


def test_all_nodes_is_for_tables_without_a_column_of_them(read):
    record = read(
        JOBS,
        "node,start,end,what\nc2,200,260,down\nALL,300,360,down\n",
        mapping={"outage_state": "what", "nodes": "ALL"},
    )
    assert [outage[3] for outage in outages(record)] == [("c2",), None]


def test_a_column_called_outage_state_makes_a_table_one_of_outages(read):
    record = read(JOBS, "node,start,end,outage_state\nc2,200,260,failed\n")
    assert outages(record) == [(NodeState.DOWN, 200, 260, ("c2",))]
    assert record.jobs.n_rows == 1


@pytest.mark.parametrize("column", ["state", "Event", "node_state", "status"])
@pytest.mark.parametrize("words", [("down", "DOWN*"), ("drain", "drained", ""), ("maintenance", "maint"), ("offline",)])
def test_states_that_only_nodes_have_make_a_table_one_of_outages(read, column, words):
    rows = "".join(f"{7 + i},c{i + 1},{200 + i},260,{word}\n" for i, word in enumerate(words))
    record = read(JOBS, f"id,node,start,end,{column}\n{rows}")
    assert len(record.outages) == sum(bool(word) for word in words)
    assert record.jobs.n_rows == 1
    assert (OUTAGES_UNREADABLE in record.report.warnings) == ("" in words)
    assert balances(record)


@pytest.mark.parametrize("words", [("FAILED", "FAILED"), ("UNKNOWN",), ("error",), ("",), ("COMPLETED", "FAILED")])
def test_states_of_jobs_make_no_outages(read, words):
    rows = "".join(f"{7 + i},c{i + 1},{200 + i},260,{word}\n" for i, word in enumerate(words))
    record = read(f"id,nodelist,start,end,state\n{rows}")
    assert record.jobs.n_rows == len(words)
    assert not record.report.warnings


def test_jobs_with_states_of_nodes_are_a_warning(read):
    record = read("id,nodelist,start,end,state\n1,c1,100,160,COMPLETED\n2,c2,100,160,down\n3,c3,100,160,idle\n")
    assert record.report.warnings[NODE_STATES].count == 2
    assert not record.outages


def test_nodes_in_use_are_a_warning_in_a_table_that_only_looks_like_outages(read):
    found = "node,start,end,outage_state\nc1,200,260,down\nc2,200,260,allocated\n"
    assert read(JOBS, found).report.warnings[IN_USE].count == 1
    assert IN_USE not in read(JOBS, found, mapping={"outage_state": "outage_state"}).report.warnings


def test_parquet_tables_of_outages_are_told_from_jobs_too(tmp_path):
    jobs, out = tmp_path / "jobs.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"id": [1], "start": [100], "end": [160], "nodelist": [["c1", "c2"]]}), jobs)
    pq.write_table(pa.table({"node": ["c2"], "start": [200], "end": [None], "state": ["down"]}), out)
    record = ScheduleRecord()
    TableReader().read([LogFile(jobs), LogFile(out)], record, ReadOptions())
    assert outages(record) == [(NodeState.DOWN, 200, None, ("c2",))]
    assert "table of outages" in (TableReader().recognise(LogFile(out)) or "")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("node,start,end,state\nc1,1,2,down\n", True),
        ("node,start,end,outage_state\nc1,1,2,failed\n", True),
        ("node,start,end,state\nc1,1,2,idle\n", False),
        ("time,node,state\n1,c1,down\n", False),
        ("start,end,state\n1,2,down\n", False),
    ],
)
def test_tables_of_outages_are_recognised_by_their_words(tmp_path, text, is_one):
    path = tmp_path / "x"
    path.write_text(text)
    reason = TableReader().recognise(LogFile(path))
    assert (reason is not None) == is_one
    assert reason is None or "table of outages" in reason


def test_an_outage_that_ends_before_it_starts_is_a_warning(read):
    record = read(JOBS, "node,start,end,state\nc1,260,200,down\n")
    assert OUTAGES_BACKWARDS in record.report.warnings
    assert balances(record)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("DOWN*", NodeState.DOWN),
        ("IDLE+DRAIN", NodeState.DRAIN),
        ("DRAIN+DOWN", NodeState.DOWN),
        ("Unknown", NodeState.UNKNOWN),
        ("POWERED_DOWN", NodeState.OFF),
        ("MAINT", NodeState.DOWN),
        ("reserved", NodeState.RESERVED),
        ("Not responding", NodeState.DOWN),
        ("DOWN + DRAIN", NodeState.DOWN),
        ("upgrade", None),
        ("up", None),
        ("IDLE+CLOUD", None),
        ("resumed by root", None),
    ],
)
def test_words_of_people_and_schedulers_are_states(add, word, state):
    record = add(f"node,start,end,state\nc1,100,160,{word}\nc2,100,160,down\n")
    assert [outage.state for outage in record.outages[:-1]] == ([] if state is None else [state])


# ---- a file of outages beside any log ----------------------------------------------------------------------------


def test_a_file_of_outages_adds_to_what_was_read(add):
    record = ScheduleRecord()
    record.add_format("slurm sacct")
    record.report.facts["time zone"] = "as the jobs say"
    record.timezone = "Europe/Paris"
    add(
        "node,start,end,state\n"
        "c[1-2],2024-10-22T03:11:20Z,2024-10-23T00:00:00Z,down\n"
        "c3 c4,1729566680,,drain\n"
        "ALL,2024-12-02 07:00:00,2024-12-02 19:00:00,maint\n",
        record,
        timezone="Europe/Paris",
    )
    assert outages(record) == [
        (NodeState.DOWN, 1_729_566_680, 1_729_641_600, ("c1", "c2")),
        (NodeState.DRAIN, 1_729_566_680, None, ("c3", "c4")),
        (NodeState.DOWN, 1_733_119_200, 1_733_162_400, None),
    ]
    assert record.source_format == "slurm sacct + outage table"
    assert (record.time_origin, record.timezone) == ("epoch", "Europe/Paris")
    assert record.outages_known
    assert record.report.facts["time zone"] == "as the jobs say"
    assert "in Europe/Paris as given" in record.report.facts["time zone of outages.csv"]
    assert balances(record)
    assert not record.report.warnings


def test_without_a_column_of_states_the_nodes_were_down(add):
    assert outages(add("host\tstart\tend\nc1\t100\t160\n")) == [(NodeState.DOWN, 100, 160, ("c1",))]


def test_options_for_the_log_do_not_reach_the_file_of_outages(add):
    record = add(
        "node,start,end\nc1,100,160\n", columns=("a", "b"), delimiter="|", mapping={"start": "begin", "nodes": "x"}
    )
    assert len(record.outages) == 1


@pytest.mark.parametrize("cell", ["2024-10-22T03:11:20", "22.10.2024 03:11:20"])
def test_a_time_format_is_used_if_the_outages_are_in_it(add, cell):
    record = add(f"node,start,end\nc1,{cell},\n", timezone="UTC", time_format="%d.%m.%Y %H:%M:%S")
    assert outages(record)[0][1] == 1_729_566_680


def test_a_list_of_no_outages_says_that_there_were_none(add):
    record = add("node,start,end,state\n")
    assert record.outages_known
    assert not record.outages


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("start,end,state\n100,160,down\n", "has no column of nodes"),
        ("node,state\nc1,down\n", "no column is known to be the start or the end"),
        ("job_id,start,end,nodes\n1,100,160,c1\n", "a table of jobs"),
        ("id,start,end,nodes\n1,100,160,c1\n", "a table of jobs"),
        ("node,start,end\nc1,yesterday,160\n", r"no row .*: an outage that cannot be read \(1 x\)"),
        ("node,start,end,state\nc1,100,160,COMPLETED\n", r"no row .*: a state that is not an outage \(1 x\)"),
    ],
)
def test_what_is_no_table_of_outages_is_refused_with_what_works(add, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        add(text)
    assert caught.value.file.endswith("outages.csv")
    assert "node,start,end,state" in caught.value.fix or "--time-format" in caught.value.fix


def test_rows_that_cannot_be_read_are_warnings(add):
    record = add(
        "node,start,end,state\nc1,100,160,down\n,100,160,down\nc1,x,160,down\nc1,100,160,purple\nc1,100\nc1,100,2"
    )
    assert record.report.warnings[OUTAGES_UNREADABLE].count == 5
    assert CUT_END in record.report.warnings
    assert balances(record)


@pytest.mark.parametrize(
    ("row", "node_hours"),
    [
        ("n[1-3],2024-10-01T01:00:00Z,2024-10-01T03:00:00Z,asleep", 3 * 2.0),
        ("n[1-3],soon,2024-10-01T03:00:00Z,asleep", None),
        ("n[1-3],soon,2024-10-01T03:00:00Z,down", None),
    ],
)
def test_an_outage_of_an_unknown_state_concerns_its_nodes_as_long_as_it_lasts(tmp_path, row, node_hours):
    path = tmp_path / "outages.csv"
    path.write_text(f"node,start,end,state\nn1,2024-10-01T00:00:00Z,2024-10-01T01:00:00Z,down\n{row}\n")
    record = ScheduleRecord()
    read_outages(LogFile(path), record, ReadOptions())
    found = record.report.warnings[OUTAGES_UNREADABLE]
    assert (found.node_hours, found.why) == (node_hours, OUTAGE_UNKNOWN if node_hours is None else "")
    assert record.nodes == ("n1",)
