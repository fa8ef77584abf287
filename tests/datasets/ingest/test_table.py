"""Tables of jobs of any make: columns, times, nodes, identities, files."""

import gzip

import pytest

from bfreplay.datasets.ingest.delimited import rows_of
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.table.reader import TableReader
from bfreplay.datasets.ingest.table.table_jobs import (
    ELAPSED_DIFFERS,
    LISTS_UNREADABLE,
    NO_JOB,
    OVER_WITHOUT_END,
    SEVERAL_TASKS,
)
from bfreplay.datasets.ingest.table.table_times import AMBIGUOUS_CHOSEN, ZONE_WRONG
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.datasets.ingest import what_was_read
from tests.datasets.ingest.what_was_read import balances, record_of, skipped

SECOND = 1_000_000


def read_files(*paths, **options):
    return record_of(TableReader(), *paths, **options)


@pytest.fixture
def read(tmp_path):
    """Write texts as files and read them as one log."""

    def read_texts(*texts, name="jobs.csv", **options):
        paths = []
        for i, text in enumerate(texts):
            path = tmp_path / f"{i}-{name}"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            paths.append(path)
        return read_files(*paths, **options)

    return read_texts


def intervals(record):
    return what_was_read.intervals(record, SECOND)


def test_columns_are_found_by_their_usual_names_and_said_in_the_report(read):
    record = read("JobID,Start,End,NNodes,NodeList\n7,100,160,2,n[1-2]\n")
    assert intervals(record) == [(100, 160, 2, ("n1", "n2"))]
    assert record.report.facts["columns"] == {
        "job": "JobID",
        "nodes": "NodeList",
        "node_count": "NNodes",
        "start": "Start",
        "end": "End",
    }
    assert balances(record)


@pytest.mark.parametrize(
    ("header", "row", "held"),
    [
        ("job_id,user,nodes_req,start_time,end_time,wallclock_req", "1,u,3,100,160,60.0", 3),
        (
            "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
            "1,u,v,8,64,4,COMPLETED,90,100,160,60,10",
            4,
        ),
        ("allocation_id,num_nodes,begin_time,end_time", "1,5,100,160", 5),
        ("jid,nnumr,sdt,edt", "1,6,100,160", 6),
        ("job_id,num_nodes_alloc,nodes,start_time,end_time", '1,2,"[857, 12]",100,160', 2),
    ],
)
def test_tables_that_many_know_need_no_mapping(read, header, row, held):
    record = read(f"{header}\n{row}\n")
    assert [interval[:3] for interval in intervals(record)] == [(100, 160, held)]


def test_a_column_called_nodes_may_be_a_number_or_a_list(read):
    assert intervals(read("id,start,end,nodes\n1,100,160,4\n")) == [(100, 160, 4, ())]
    assert intervals(read("id,start,end,nodes\n1,100,160,a1 b2\n")) == [(100, 160, 2, ("a1", "b2"))]


def test_a_mapping_says_which_column_is_what(read):
    record = read(
        "k,begin,finish,where\n1,100,160,c1+c2\n", mapping={"start": "begin", "end": "finish", "nodes": "where"}
    )
    assert intervals(record) == [(100, 160, 2, ("c1", "c2"))]


def test_a_missing_role_gives_the_columns_and_what_to_type(read):
    with pytest.raises(InputError) as caught:
        read("id,begin_stamp,end,nodes\n1,100,160,2\n")
    assert "begin_stamp" in str(caught.value.value)
    assert "--map start=" in caught.value.fix


def test_two_columns_for_the_same_time_are_the_users_to_choose(read):
    text = "id,start_time,begin_time,end,nodes\n1,100,110,160,2\n"
    with pytest.raises(InputError, match="could both be the start") as caught:
        read(text)
    assert caught.value.fix == "name the columns: --map start=start_time"
    assert intervals(read(text, mapping={"start": "begin_time"}))[0][0] == 110


def test_a_mapping_to_a_column_or_a_role_that_is_not_there_is_refused(read):
    text = "id,start,end,nodes\n1,100,160,2\n"
    with pytest.raises(InputError, match="no column 'strat'") as caught:
        read(text, mapping={"start": "strat"})
    assert "--map start=start" in caught.value.fix
    with pytest.raises(InputError, match="unknown role"):
        read(text, mapping={"begin": "start"})


def test_a_column_that_is_there_twice_is_refused_only_if_it_is_used(read):
    assert len(intervals(read("id,start,end,nodes,x,x\n1,100,160,2,,\n"))) == 1
    with pytest.raises(InputError, match="two columns are called 'end'"):
        read("id,start,end,nodes,end\n1,100,160,2,170\n")


def test_columns_of_a_file_without_a_header_are_given(read):
    record = read("1;100;160;2\n", columns=("id", "start", "end", "nodes"), delimiter=";")
    assert intervals(record) == [(100, 160, 2, ())]


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_separator_is_found(read, delimiter):
    lines = ["id start end nodes", "1 100 160 2"]
    assert len(intervals(read("\n".join(line.replace(" ", delimiter) for line in lines)))) == 1


def test_a_byte_order_mark_comments_padding_and_windows_line_ends_do_no_harm(read):
    text = "\ufeffid, start, end, nodes\r\n\r\n1, 100, 160, 2\r\n"
    assert intervals(read(text)) == [(100, 160, 2, ())]
    assert intervals(read("# made by hand\nid,start,end,nodes\n1,100,160,2\n")) == [(100, 160, 2, ())]


def test_spaces_are_no_part_of_a_number_where_the_header_has_none(read):
    record = read("id,start,end,nodes\n1,100,160,2\n2,100,160, 3\n")
    assert skipped(record) == {"a number of nodes that cannot be read": 1}


def test_processors_make_whole_nodes_when_their_number_is_known(read):
    text = "id,start,end,ncpus\n1,100,160,49\n"
    assert intervals(read(text, procs_per_node=48)) == [(100, 160, 2, ())]
    with pytest.raises(InputError, match="the processors of a node are not known") as caught:
        read(text)
    assert "--procs-per-node" in caught.value.fix


# ---- times -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2021-03-01T00:00:00Z", 1_614_556_800),
        ("2021-03-01 01:00:00+01:00", 1_614_556_800),
        ("2021-02-28T18:00:00.250-0600", 1_614_556_800.25),
        ("2021/03/01 00:00 UTC", 1_614_556_800),
        ("1614556800", 1_614_556_800),
        ("1614556800.5", 1_614_556_800.5),
    ],
)
def test_times_with_a_zone_and_numbers_are_exact(read, text, seconds):
    record = read(f"id,start,end,nodes\n1,{text},1614556900,2\n")
    assert intervals(record)[0][0] == seconds


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_numbers_are_in_the_unit_given(read, unit, factor):
    record = read(f"id,start,end,nodes\n1,{1_614_556_800 * factor},{1_614_556_860 * factor},2\n", time_unit=unit)
    assert intervals(record) == [(1_614_556_800, 1_614_556_860, 2, ())]


def test_numbers_in_another_unit_are_refused_with_the_unit(read):
    with pytest.raises(InputError) as caught:
        read("id,start,end,nodes\n1,1614556800000,1614556860000,2\n")
    assert "--time-unit ms" in caught.value.fix
    with pytest.raises(InputError, match="time_unit is unknown"):
        read("id,start,end,nodes\n1,1,2,2\n", time_unit="minutes")


def test_times_that_count_from_the_start_of_the_log_are_recognised(read):
    record = read("id,start,end,nodes\n1,0,60,2\n2,30,90,1\n")
    assert record.time_origin == "relative"
    assert len(intervals(record)) == 2


def test_local_times_need_a_zone(read):
    text = "id,start,end,nodes\n1,2021-03-01 00:00:00,2021-03-01 01:00:00,2\n"
    with pytest.raises(InputError, match="no zone") as caught:
        read(text)
    assert "--tz" in caught.value.fix
    record = read(text, timezone="America/Denver")
    assert intervals(record) == [(1_614_556_800 + 7 * 3600, 1_614_556_800 + 8 * 3600, 2, ())]
    assert record.timezone == "America/Denver"
    assert "1 rows have local times, in America/Denver" in record.report.facts["time zone"]


def test_running_time_settles_the_hour_that_occurs_twice(read):
    header = "id,start,end,elapsed,nodes\n"
    early = read(header + "1,2021-10-31 01:30:00,2021-10-31 02:30:00,3600,2\n", timezone="Europe/Berlin")
    late = read(header + "1,2021-10-31 01:30:00,2021-10-31 02:30:00,7200,2\n", timezone="Europe/Berlin")
    assert [end - start for start, end, _, _ in intervals(early) + intervals(late)] == [3600, 7200]
    assert "1 rows at the end of summer time were resolved" in late.report.facts["time zone"]
    assert not late.report.warnings


def test_what_nothing_settles_is_refused_or_chosen(read):
    text = "id,start,end,nodes\n1,2021-10-31 01:30:00,2021-10-31 02:30:00,2\n"
    with pytest.raises(InputError, match="occurs twice") as caught:
        read(text, timezone="Europe/Berlin")
    assert caught.value.row == "line 2"
    assert "--dst-fold" in caught.value.fix
    for fold, seconds in (("earlier", 3600), ("later", 7200)):
        record = read(text, timezone="Europe/Berlin", dst_fold=fold)
        assert [end - start for start, end, _, _ in intervals(record)] == [seconds]
        assert AMBIGUOUS_CHOSEN in record.report.warnings


def test_a_time_that_the_clock_skips_speaks_against_the_zone(read):
    good = "2,2021-03-27 10:00:00,2021-03-27 11:00:00,1\n"
    record = read(f"id,start,end,nodes\n1,2021-03-28 02:30:00,2021-03-28 04:00:00,2\n{good}", timezone="Europe/Berlin")
    assert skipped(record) == {"a time that the clock skips": 1}
    assert ZONE_WRONG in record.report.warnings


@pytest.mark.parametrize("end", ["", "None", "NaT", "Unknown", "0"])
def test_a_job_without_an_end_is_running(read, end):
    record = read(f"id,start,end,nodes\n1,1614556800,{end},2\n2,1614556800,1614556900,2\n")
    assert record.n_open == 1


def test_a_running_job_has_no_end_whatever_its_row_says(read):
    record = read("id,start,end,state,nodes\n1,1614556800,1614643200,RUNNING,2\n")
    assert intervals(record)[0][1] is None


def test_pending_jobs_and_those_that_never_started_are_left_out(read):
    record = read(
        "id,start,end,state,nodes\n1,1614556800,1614556860,COMPLETED,2\n2,1614556900,,PENDING,2\n"
        "3,None,1614556900,CANCELLED by 12,2\n4,0,1614556900,CANCELLED+,2\n5,1614556900,1614556900,FAILED,1\n"
    )
    assert skipped(record) == {"never started (pending)": 1, "never started": 2, "job of no length": 1}
    assert not record.report.warnings
    assert balances(record)


def test_elapsed_time_makes_the_end_where_there_is_none(read):
    assert intervals(read("id,start,elapsed,nodes\n1,100,01:00:05,2\n")) == [(100, 3705, 2, ())]
    assert intervals(read("id,start,elapsed,nodes\n1,100,1-00:00:00,2\n")) == [(100, 86_500, 2, ())]
    assert intervals(read("id,start,end,elapsed,state,nodes\n1,100,,60,FAILED,2\n")) == [(100, 160, 2, ())]
    assert intervals(read("id,start,end,elapsed,state,nodes\n1,100,,60,RUNNING,2\n")) == [(100, None, 2, ())]


def test_a_running_time_that_is_not_end_minus_start_is_a_warning(read):
    record = read("id,start,end,elapsed,nodes\n1,100,160,60,2\n2,100,160,90,2\n")
    assert record.report.warnings[ELAPSED_DIFFERS].count == 1


def test_a_job_that_is_over_and_has_no_end_is_a_warning(read):
    assert OVER_WITHOUT_END in read("id,start,end,state,nodes\n1,100,,COMPLETED,2\n").report.warnings


def test_the_time_limit_bounds_jobs_that_never_end(read):
    record = read("job_id,start_time,end_time,nodes_req,wallclock_req\n1,1614556800,,2,3600.0\n")
    rows, _ = next(record.jobs.slices())
    assert rows.limit_end_us[0] == (1_614_556_800 + 3600) * SECOND


def test_a_time_limit_of_unknown_unit_is_not_used_and_said(read):
    record = read("job_id,start_time,end_time,nodes,time_limit\n1,1614556800,,2,60\n")
    rows, _ = next(record.jobs.slices())
    assert rows.limit_end_us[0] == OPEN_END
    assert "--map limit=time_limit" in record.report.facts["columns"]["not used"]


# ---- nodes and identities ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        '"n[1-3]"',
        '"n1,n2,n3"',
        "n1 n2 n3",
        "n1+n2+n3",
        "n1/0*4+n2/0+n3/1",
        "\"['n1', 'n2', 'n3']\"",
        '"[""n1"", ""n2"", ""n3""]"',
        "['n1' 'n2' 'n3']",
        '"{n1,n2,n3}"',
    ],
)
def test_node_lists_come_in_many_forms(read, cell):
    assert intervals(read(f"id,start,end,nodelist\n1,100,160,{cell}\n")) == [(100, 160, 3, ("n1", "n2", "n3"))]


def test_nodes_asked_for_do_not_matter_where_those_held_are_listed(read):
    record = read("id,start,end,nodes_req,nodelist\n1,100,160,8,c[1-2]\n")
    assert intervals(record)[0][2:] == (2, ("c1", "c2"))
    assert not record.report.warnings
    mapped = read("id,start,end,nodes_req,nodelist\n1,100,160,8,c[1-2]\n", mapping={"node_count": "nodes_req"})
    assert intervals(mapped)[0][2] == 8


def test_a_list_that_was_cut_keeps_the_number_of_nodes(read):
    record = read('id,start,end,nnodes,nodelist\n1,100,160,4,"c505-[083,104"\n')
    assert intervals(record) == [(100, 160, 4, ())]
    assert LISTS_UNREADABLE in record.report.warnings


def test_a_list_that_was_cut_without_a_number_spoils_its_row(read):
    record = read('id,start,end,nodelist\n1,100,160,"c505-[083,104"\n2,100,160,c1\n')
    assert intervals(record) == [(100, 160, 1, ("c1",))]
    assert UNREADABLE in record.report.warnings


def test_what_means_no_nodes_is_no_node(read):
    record = read("id,start,end,nodelist\n1,100,160,None assigned\n2,100,160,c1\n")
    assert record.nodes == ("c1",)
    assert skipped(record) == {"a job without nodes": 1}


def test_rows_of_one_array_job_are_all_kept_and_warned_of(read):
    record = read("id,start,end,nodes\n5,100,160,1\n5,100,170,1\n5,100,170,1\n")
    assert sorted(interval[1] for interval in intervals(record)) == [160, 170, 170]
    assert record.report.warnings[SEVERAL_TASKS].count == 2


def test_a_row_that_is_left_out_is_no_task_of_an_array(read):
    record = read("id,start,end,nodes\n5,100,100,1\n5,100,160,1\n")
    assert len(intervals(record)) == 1
    assert not record.report.warnings


def test_a_row_for_each_node_of_a_job_is_the_whole_job(read):
    record = read("id,start,end,nodelist\n5,100,160,c1\n5,100,160,c2\n5,100,160,c1\n")
    assert sorted(interval[3] for interval in intervals(record)) == [("c1",), ("c2",)]
    assert not record.report.warnings


def test_overlapping_exports_are_one_log(read):
    header = "id,start,end,nodes\n"
    record = read(header + "1,1614556800,,2\n2,1614556800,1614556860,1\n", header + "1,1614556800,1614556900,2\n")
    assert intervals(record) == [(1_614_556_800, 1_614_556_900, 2, ()), (1_614_556_800, 1_614_556_860, 1, ())]
    assert not record.report.warnings


def test_steps_of_a_job_are_not_jobs(read):
    record = read("JobID,Start,End,NNodes\n7,100,160,2\n7.batch,100,160,1\n7.0,100,160,2\n")
    assert skipped(record) == {"job step": 2}


def test_numbers_of_jobs_that_became_floats_are_jobs(read):
    assert len(intervals(read("JobID,Start,End,NNodes\n7.0,100,160,2\n8.0,100,160,1\n"))) == 2


def test_rows_without_a_number_of_the_job_are_kept_with_a_warning(read):
    record = read("id,start,end,nodes\n,100,160,2\n,100,160,2\n")
    assert len(intervals(record)) == 2
    assert record.report.warnings[NO_JOB].count == 2


def test_nodes_in_a_table_of_their_own_must_be_joined_first(read):
    with pytest.raises(InputError, match="joined") as caught:
        read("allocation_id,node_name,shared\n1,lassen1,f\n")
    assert "duckdb" in caught.value.fix


# ---- rows that are broken ----------------------------------------------------------------------------------------


def test_rows_that_cannot_be_split_or_read_are_skipped_and_warned_of(read):
    record = read("id,start,end,nodes\n1,100,160,2\n2,100,160\n3,1_00,160,2\n4,100,160,-2\n5,nan,160,2\n6,１00,160,2\n")
    assert skipped(record) == {
        "a row with another number of columns": 1,
        "a time that cannot be read": 2,
        "a number of nodes that cannot be read": 1,
        "never started": 1,
    }
    assert record.report.warnings[UNREADABLE].count == 4
    assert record.report.skipped["a row with another number of columns"].examples[0].line == 3
    assert balances(record)


def test_quoted_fields_may_run_over_lines_and_line_numbers_stay_right(read):
    record = read('id,start,end,nodes,name\n1,100,160,2,"first\nsecond"\n2,100,x,2,ok\n')
    assert len(intervals(record)) == 1
    assert record.report.skipped["a time that cannot be read"].examples[0].line == 4


def test_a_quote_that_nobody_closed_spoils_its_own_line_only(read):
    rows = "".join(f"{i},100,160,2,ok\n" for i in range(2, 500))
    record = read(f'id,start,end,nodes,name\n1,100,160,2,"open\n{rows}')
    assert len(intervals(record)) == 498
    assert skipped(record) == {"a row with another number of columns": 1}


def test_a_quote_that_closes_in_another_row_spoils_no_row_but_its_own(read):
    record = read('id,start,end,nodes,name\n1,100,160,2,"open\n2,100,160,2,shut"\n3,100,160,2,ok\n')
    assert len(intervals(record)) == 2
    assert skipped(record) == {"a row with another number of columns": 1}


def test_lines_that_a_quote_would_join_into_no_row_are_each_looked_at():
    text = ['a,b,c,"open', "x,y,z", 'p,q",r', "1,2,3,4"]
    rows = list(rows_of(iter(enumerate(text, 1)), ",", 4))
    assert [(row.line, row.cells) for row in rows] == [(1, None), (2, None), (3, None), (4, ["1", "2", "3", "4"])]


def test_the_header_again_is_no_row(read):
    record = read("id,start,end,nodes\n1,100,160,2\nid,start,end,nodes\n2,100,160,2\n")
    assert skipped(record) == {"the header again": 1}
    assert balances(record)


def test_a_table_without_a_usable_row_is_refused_with_the_reasons(read):
    with pytest.raises(InputError, match="no row of the table can be used: never started") as caught:
        read("id,start,end,nodes\n1,None,None,2\n")
    assert caught.value.row == "line 2"
    with pytest.raises(InputError, match="only a header"):
        read("id,start,end,nodes\n")


def test_what_is_no_text_is_refused(read):
    with pytest.raises(InputError, match="UTF-16"):
        read("id,start,end,nodes\n".encode("utf-16"))
    with pytest.raises(InputError, match="not text"):
        read(b"id\x00\x01\x02\n")


# ---- outages -----------------------------------------------------------------------------------------------------


def test_a_table_of_outages_stands_beside_one_of_jobs(read):
    record = read(
        "id,start,end,nodelist\n1,100,160,c1\n",
        "start,end,nodelist,what\n200,260,c[1-2],drained\n300,360,all,maintenance\n400,460,c1,allocated\n1,2,c1,purple\n",
        mapping={"outage_state": "what"},
    )
    found = [
        (o.state, o.start_us / SECOND, o.end_us / SECOND, None if o.nodes is None else len(o.nodes))
        for o in record.outages
    ]
    assert found == [(NodeState.DRAIN, 200, 260, 2), (NodeState.DOWN, 300, 360, None)]
    assert skipped(record) == {"a state that is not an outage": 1, "an outage with a state that is not known": 1}
    assert balances(record)


def test_a_mapping_may_name_columns_that_only_one_of_the_tables_has(read):
    record = read(
        "id,begin,finish,nodelist\n1,100,160,c1\n",
        "start,end,nodelist,what\n200,260,c1,down\n",
        mapping={"outage_state": "what", "start": "begin", "end": "finish"},
    )
    assert len(intervals(record)) == len(record.outages) == 1


@pytest.mark.parametrize("word", ["stat", "idle"])
def test_a_word_that_is_no_state_of_an_outage_is_refused(read, word):
    with pytest.raises(InputError, match="neither a column nor a state"):
        read("id,start,end,nodelist\n1,100,160,c1\n", mapping={"outage_state": word})


def test_one_word_can_be_the_state_of_all_outages(read):
    record = read(
        "id,start,end,nodelist\n1,100,160,c1\n",
        "start,end\n200,260\n300,\n",
        mapping={"outage_state": "down", "nodes": "ALL"},
    )
    assert [(outage.state, outage.nodes) for outage in record.outages] == [(NodeState.DOWN, None)] * 2
    assert record.outages[1].end_us == OPEN_END


# ---- files -------------------------------------------------------------------------------------------------------


def test_compressed_tables_are_read(read):
    assert len(intervals(read(gzip.compress(b"id,start,end,nodes\n1,100,160,2\n"), name="jobs.csv.gz"))) == 1
