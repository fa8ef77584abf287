"""Published logs of Slurm sites, and others that are not Slurm's."""

import pytest

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm.reader import SlurmReader
from bfreplay.errors import InputError
from tests.datasets.ingest.slurm_logs import at, jobs, rows_balance, skipped, warnings


def read(path) -> ScheduleRecord:
    record = ScheduleRecord()
    SlurmReader().read([LogFile(path)], record, ReadOptions())
    return record


def test_pozidriv_goes_in_whole(shared):
    record = read(shared / "data/logs/xdmod-pozidriv-sacct.psv.gz")
    assert record.report.rows_read == 11_704
    assert record.report.kept == {"job intervals": 10_673}
    assert skipped(record) == {"never started": 419, "job of no length": 612}
    assert warnings(record) == {}
    assert rows_balance(record)
    assert len(record.nodes) == 105
    assert record.cluster == "pozidriv"
    assert record.timezone == "UTC"
    assert record.first_start_us == at("2016-12-22 07:03:30") * 1_000_000
    assert record.n_counted == record.n_open == 0


def test_phillips_goes_in_whole(shared):
    record = read(shared / "data/logs/xdmod-phillips-sacct.psv.gz")
    assert record.report.rows_read == 4_285
    assert record.report.kept == {"job intervals": 4_024}
    assert skipped(record) == {"never started": 239, "job of no length": 22}
    assert warnings(record) == {}
    assert rows_balance(record)
    assert len(record.nodes) == 46
    assert record.cluster == "phillips"
    assert record.last_end_us == at("2017-01-01 23:55:05") * 1_000_000


@pytest.mark.parametrize("name", ["pozidriv", "phillips"])
def test_every_job_lists_as_many_nodes_as_it_holds(shared, name):
    record = read(shared / f"data/logs/xdmod-{name}-sacct.psv.gz")
    assert all(count == len(names) for _, _, count, names in jobs(record))


def test_eagle_is_a_table_of_its_own_and_the_message_says_so(shared):
    path = shared / "data/logs/nrel-eagle-sample1000.csv.gz"
    assert SlurmReader().recognise(LogFile(path)) is None
    with pytest.raises(InputError, match=r"not columns of sacct: job_id[\s\S]*bfreplay ingest table"):
        read(path)


def test_no_other_published_log_is_taken_for_one_of_slurm(shared):
    reader = SlurmReader()
    for path in sorted((shared / "data/logs").iterdir()):
        assert (reader.recognise(LogFile(path)) is not None) == ("xdmod" in path.name), path.name
