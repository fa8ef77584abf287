"""Tables of jobs as Parquet files, and which files are tables of jobs."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.table.reader import TableReader
from bfreplay.datasets.ingest.table.table_jobs import SEVERAL_TASKS
from bfreplay.errors import InputError
from tests.datasets.ingest import what_was_read
from tests.datasets.ingest.what_was_read import record_of

SECOND = 1_000_000


def read_files(*paths, **options):
    return record_of(TableReader(), *paths, **options)


def intervals(record):
    return what_was_read.intervals(record, SECOND)


def parquet_of(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_timestamps_with_and_without_a_zone_and_list_columns(tmp_path):
    stamps = np.array(["2021-03-01T00:00:00", "2021-03-01T01:00:00"], dtype="datetime64[ns]")
    nodes = pa.array([["c1", "c2"], ["c3"]])
    starts = pa.array(stamps, pa.timestamp("ns")).cast(pa.timestamp("us", "UTC"))
    ends = pa.array([1_614_560_400_000_000 + 1, None], pa.timestamp("us", "UTC"))
    path = parquet_of(tmp_path / "a.parquet", job_id=[1, 2], start_time=starts, end_time=ends, nodes=nodes)
    record = read_files(path)
    assert intervals(record) == [
        (1_614_556_800, 1_614_560_400.000001, 2, ("c1", "c2")),
        (1_614_560_400, None, 1, ("c3",)),
    ]
    naive = parquet_of(
        tmp_path / "b.parquet", job_id=[1.0], start_time=stamps[:1], end_time=stamps[1:], num_nodes=[3.0]
    )
    with pytest.raises(InputError, match="no zone"):
        read_files(naive)
    assert intervals(read_files(naive, timezone="UTC")) == [(1_614_556_800, 1_614_560_400, 3, ())]


def test_parquet_durations_decimals_and_dictionaries(tmp_path):
    path = parquet_of(
        tmp_path / "a.parquet",
        job_id=["a", "b"],
        start_time=[1_614_556_800, 1_614_556_800],
        elapsed=pa.array([60_000_000_000, 90_000_000_000], pa.duration("ns")),
        nnodes=pa.array(["2.0", "3.0"]).cast(pa.decimal128(10, 2)),
        state=pa.array(["DONE", "DONE"]).dictionary_encode(),
    )
    assert [(end - start, held) for start, end, held, _ in intervals(read_files(path))] == [(60, 2), (90, 3)]


def test_parquet_in_several_batches_keeps_its_row_numbers(tmp_path):
    n = 40_000
    path = tmp_path / "a.parquet"
    starts = np.arange(n) + 1_614_556_800
    counts = np.ones(n, np.int64)
    counts[39_998] = -1
    table = pa.table({"job_id": np.arange(n), "start_time": starts, "end_time": starts + 60, "num_nodes": counts})
    pq.write_table(table, path, row_group_size=7_000)
    record = read_files(path)
    assert record.jobs.n_rows == n - 1
    assert record.report.skipped["a number of nodes that cannot be read"].examples[0].line == 39_999


def test_a_damaged_or_wrapped_parquet_file_is_refused(tmp_path):
    path = parquet_of(tmp_path / "a.parquet", job_id=[1], start_time=[100], end_time=[160], num_nodes=[1])
    content = path.read_bytes()
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        read_files(cut)
    wrapped = tmp_path / "a.parquet.gz"
    wrapped.write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match="compressed as a whole"):
        read_files(wrapped)


# ---- recognition and real files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("job_id,start_time,end_time,num_nodes\n1,100,160,2\n", True),
        ("job_id\tstart_time\tend_time\tnodelist\n1\t100\t160\tc1\n", True),
        ("JobIDRaw|Start|End|NodeList\n1|x|y|c1\n", False),
        ("time,node,state\n1,c1,idle\n", False),
        ("job_id,starting_time,finish_time,allocated_resources\n1,0,5,0-3\n", False),
        ("START_TIMESTAMP,END_TIMESTAMP,NODES_USED,COBALT_JOBID\nx,y,1,2\n", False),
        ("; SWF\n1 0 0 10 4 -1\n", False),
        ("", False),
        ("\x00\x01", False),
    ],
)
def test_tables_of_jobs_are_recognised_and_nothing_else(tmp_path, text, is_one):
    path = tmp_path / "x"
    path.write_bytes(text.encode())
    reason = TableReader().recognise(LogFile(path))
    assert (reason is not None) == is_one
    if reason is not None:
        assert "start_time (start)" in reason


def test_parquet_tables_are_recognised(tmp_path):
    jobs = parquet_of(tmp_path / "a.parquet", job_id=[1], start_time=[100], end_time=[160], num_nodes=[1])
    other = parquet_of(tmp_path / "b.parquet", time=[1], node=["a"], state=["idle"])
    assert "num_nodes (node_count)" in (TableReader().recognise(LogFile(jobs)) or "")
    assert TableReader().recognise(LogFile(other)) is None


def test_only_the_table_among_the_public_logs_is_recognised(shared: Path):
    found = [path.name for path in sorted((shared / "data/logs").iterdir()) if TableReader().recognise(LogFile(path))]
    assert found == ["nrel-eagle-sample1000.csv.gz"]


def test_the_thousand_jobs_of_eagle_all_come_in(shared: Path):
    path = shared / "data/logs/nrel-eagle-sample1000.csv.gz"
    with pytest.raises(InputError, match="no zone"):
        read_files(path)
    record = read_files(path, timezone="America/Denver")
    jobs = intervals(record)
    assert len(jobs) == record.report.rows_read == 1_000
    # 452 rows are tasks of one array, with four starts; 448 of them follow another of the same start
    assert {sentence: tally.count for sentence, tally in record.report.warnings.items()} == {SEVERAL_TASKS: 448}
    assert sum((end - start) * held for start, end, held, _ in jobs) / 3600 == pytest.approx(23_158.1433, abs=1e-3)
    assert min(start for start, *_ in jobs) == 1_546_358_156  # 2019-01-01 08:55:56 in Denver
