import hashlib
import json
import math

import pytest

from bfreplay.campaigns.workloads import is_source_name, load_workload
from bfreplay.errors import InputError
from bfreplay.systems.gavel.generated_workload import generated_jobs
from bfreplay.systems.gavel.job_types import JOB_TYPES
from bfreplay.systems.gavel.throughputs import read_throughputs
from tests.parity.gavel_records import job_columns
from tests.systems.gavel.traces.small_table import published, table_file


@pytest.fixture(scope="module")
def table(shared):
    return read_throughputs(published(shared))


def test_the_job_types_are_those_of_the_published_table_in_its_order(shared):
    published_types = json.loads((shared / "data/gavel/job_table.json").read_text())
    assert [(each.name, each.is_distributed) for each in JOB_TYPES] == [
        (each["model"], each["distributed"]) for each in published_types
    ]


def test_a_static_workload_has_the_same_jobs_all_at_the_start(table):
    static = generated_jobs(table, 100, 4, multi_gpu=True)
    arriving = generated_jobs(table, 100, 4, jobs_per_hour=0.5, multi_gpu=True)
    assert {job.submit_us for job in static} == {0}
    assert [row[:4] for row in job_columns(static)] == [row[:4] for row in job_columns(arriving)]
    assert arriving[0].submit_us == 0 < arriving[1].submit_us
    assert arriving[-1].submit_us == pytest.approx(99 * 7.2e9, rel=0.5)


def test_fewer_jobs_are_the_first_of_more(table):
    few, more = (generated_jobs(table, n, 2, jobs_per_hour=1, priorities=True, slos=True) for n in (10, 50))
    assert few.jobs == more.jobs[:10]


def test_a_third_of_the_deadlines_each_is_1_2_and_2_and_10_durations_away(table):
    jobs = generated_jobs(table, 600, 0, jobs_per_hour=2, slos=True)
    assert job_columns(jobs) == job_columns(generated_jobs(table, 600, 0, jobs_per_hour=2))
    factors = [
        round((job.deadline_us - job.submit_us) / 1e6 / (job.work_samples / job.throughput.table(1)[1]), 4)
        for job in jobs
    ]
    assert sorted(set(factors)) == [1.2, 2.0, 10.0]
    assert all(150 < factors.count(factor) < 250 for factor in (1.2, 2.0, 10.0))


def test_jobs_of_one_type_share_their_curves(table):
    jobs = generated_jobs(table, 5000, 0, jobs_per_hour=1, multi_gpu=True)
    assert len(jobs) == 5000
    assert len({id(job.throughput) for job in jobs}) == len({(job.model, job.min_nodes) for job in jobs}) <= 83
    assert [job.name for job in jobs[:2]] == ["job0000", "job0001"]


def test_elastic_jobs_do_the_same_work_on_any_number_of_nodes(table):
    rigid, elastic = (generated_jobs(table, 50, 0, multi_gpu=True, elastic=each) for each in (False, True))
    assert [job.work_samples for job in rigid] == [job.work_samples for job in elastic]
    assert {(job.min_nodes, job.max_nodes) for job in elastic} == {(1, 1), (1, 8)}


def test_a_steady_state_fills_type_after_type_and_what_is_over_on_one_is_not_taken_off_the_next(table):
    """Gangs of 1, 1 and 4 fill the first four nodes, 1 and 1 the other two."""
    plain = generated_jobs(table, 12, 3, jobs_per_hour=2, multi_gpu=True)
    assert [job.min_nodes for job in plain] == [1, 1, 4, 1, 1, 1, 2, 1, 1, 1, 1, 1]
    steady = generated_jobs(table, 12, 3, jobs_per_hour=2, multi_gpu=True, steady_state="k80=4,v100=2")
    assert [row[:4] for row in job_columns(steady)] == [row[:4] for row in job_columns(plain)]
    # then arrivals as they are without it, the first at 0
    arrivals = [job.submit_us for job in plain]
    assert [job.submit_us for job in steady] == [0] * 5 + arrivals[:7]
    assert [job.name for job in steady] == [job.name for job in plain]


def test_jobs_on_one_node_fill_a_cluster_by_as_many_as_it_has_nodes(table):
    steady = generated_jobs(table, 9, 0, jobs_per_hour=2, steady_state="v100=2,k80=4")
    assert [job.submit_us > 0 for job in steady] == [False] * 7 + [True] * 2


def test_a_fixed_duration_leaves_all_other_draws_as_they_are(table):
    plain, fixed = (
        generated_jobs(table, 50, 1, jobs_per_hour=2, multi_gpu=True, priorities=True, slos=True, duration_s=each)
        for each in (None, 7_200)
    )
    assert [(each.model, each.min_nodes, each.weight, each.submit_us) for each in fixed] == [
        (each.model, each.min_nodes, each.weight, each.submit_us) for each in plain
    ]
    seconds = {
        round(job.work_samples / table.rate(job.model, job.min_nodes, table.reference(job.model, job.min_nodes)), 6)
        for job in fixed
    }
    assert seconds == {7_200.0}
    assert {round((job.deadline_us - job.submit_us) / 7_200e6, 6) for job in fixed} == {1.2, 2.0, 10.0}


def test_a_text_names_steady_states_and_durations_and_its_source_reads_back(shared, table):
    text = "gavel(n=20, jobs_per_hour=2, duration_s=600.5, steady_state='v100=2,k80=1')"
    jobs = load_workload(text, published(shared))
    made = generated_jobs(table, 20, jobs_per_hour=2, duration_s=600.5, steady_state="v100=2,k80=1")
    assert jobs.jobs == made.jobs
    said = jobs.sources[1][0]
    assert said.endswith("elastic=false, duration_s=600.5, steady_state='v100=2,k80=1')")
    assert load_workload(said, published(shared)).sources == jobs.sources


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": 2.5}, "n_jobs"),
        ({"seed": -1}, "seed"),
        ({"jobs_per_hour": 0}, "jobs_per_hour"),
        ({"jobs_per_hour": math.inf}, "jobs_per_hour"),
        ({"duration_s": 0}, "duration_s"),
        ({"duration_s": "1h"}, "duration_s"),
        ({"steady_state": "v100=1"}, "steady_state"),
        ({"steady_state": "v100", "jobs_per_hour": 1}, "steady_state"),
        ({"steady_state": 3, "jobs_per_hour": 1}, "steady_state"),
        ({"steady_state": "v100=4", "jobs_per_hour": 1}, "n"),
    ],
)
def test_parameters_out_of_range_are_refused(table, given, column):
    with pytest.raises(InputError) as caught:
        generated_jobs(table, **{"n_jobs": 3, **given})
    assert caught.value.column == column


def test_a_job_type_that_was_not_measured_is_named(tmp_path):
    with pytest.raises(InputError, match="no rate of") as caught:
        generated_jobs(read_throughputs(table_file(tmp_path)), 3)
    assert caught.value.file == str(tmp_path / "throughputs.json")


def test_a_workload_is_named_by_a_text(shared, table):
    text = "gavel(n=20, jobs_per_hour=0.4, seed=3, multi_gpu=true, priorities=True)"
    assert is_source_name(text)
    jobs = load_workload(text, published(shared))
    assert jobs.jobs == generated_jobs(table, 20, 3, jobs_per_hour=0.4, multi_gpu=True, priorities=True).jobs
    said = "gavel(n=20, jobs_per_hour=0.4, seed=3, multi_gpu=true, priorities=true, slos=false, elastic=false)"
    assert jobs.sources == (
        ("simulation_throughputs.json.gz", hashlib.sha256(published(shared).read_bytes()).hexdigest()),
        (said, hashlib.sha256(said.encode()).hexdigest()),
    )
    again = load_workload(said, published(shared))
    assert (again.jobs, again.sources) == (jobs.jobs, jobs.sources)
    assert {job.submit_us for job in load_workload("gavel( n=5 )", published(shared))} == {0}


def test_large_numbers_are_written_in_full(shared):
    jobs = load_workload("gavel(n=1, seed=123456789, jobs_per_hour=1e6)", published(shared))
    assert jobs.sources[1][0].startswith("gavel(n=1, jobs_per_hour=1000000, seed=123456789,")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gavel", "number of jobs is missing"),
        ("gavel()", "workload cannot be read: a parameter is missing in the brackets"),
        ("gavel(n=5", "cannot be read"),
        ("gavel(5)", "a parameter is missing"),
        ("gavel(n=5, n=6)", "'n' is set twice"),
        ("gavel(n=five)", "n is no whole number"),
        ("gavel(n='5')", "n is no whole number"),
        ("gavel(n=5, multi_gpu=1)", "multi_gpu is neither true nor false"),
        ("gavel(n=5, multi_gup=true)", "has no key 'multi_gup'"),
        ("gavel(n=true)", "n is no whole number"),
        ("gavel(n=5, seed=0.5)", "seed is no whole number"),
        ("gavel(n=5, jobs_per_hour=-1)", "out of range"),
        ("gavel(n=5, jobs_per_hour=true)", "is no number"),
        ("gavl(n=5)", "unknown generated job set 'gavl'"),
    ],
)
def test_a_text_that_names_no_workload_is_refused(shared, text, problem):
    assert is_source_name(text)
    with pytest.raises(InputError, match=problem) as caught:
        load_workload(text, published(shared))
    assert caught.value.expected


def test_a_workload_needs_throughputs(tmp_path):
    with pytest.raises(InputError, match="needs measured throughputs") as caught:
        load_workload("gavel(n=5)")
    assert "--curves" in caught.value.fix


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gavel").write_text("no jobs")
    assert not is_source_name("gavel")
    with pytest.raises(InputError, match="no reader for this kind of file"):
        load_workload("gavel")
    with pytest.raises(InputError, match="no such file"):
        load_workload("jobs(1).csv")
