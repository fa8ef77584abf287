"""Traces and throughput tables of ElasticFlow, read and generated."""

import pytest

from bfreplay import load_jobs
from bfreplay.campaigns.workloads import load_workload
from bfreplay.errors import InputError
from bfreplay.systems.elasticflow.generated_workload import draw_jobs, generated_jobs
from bfreplay.systems.elasticflow.throughputs import WORKLOAD, made_up_throughputs, read_throughputs
from bfreplay.systems.elasticflow.trace import COLUMNS, is_trace, model_and_batch_size, read_trace
from tests.replay.tiny import job as plain_job

HEADER = ",".join(COLUMNS)
ROW = "a,7205,1000,bert,7905,64,2,400"


@pytest.fixture
def tables(tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "bert.csv").write_text("global_batch_size,1,2,4,8\n64,1.5,2.5,4,0\n128,1,,3,nan\n")
    return folder


def trace(tmp_path, *rows, header=HEADER):
    file = tmp_path / "jobs.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def key(jobs):
    return [(j.submit_us, j.work_samples, j.model, j.deadline_us, j.requested_nodes, j.expected_s) for j in jobs]


def test_a_row_becomes_a_job_whose_times_count_from_the_last_whole_hour(tmp_path, tables):
    jobs = load_jobs(trace(tmp_path, ROW), tables)
    (job,) = jobs
    assert jobs.submit_is_relative
    assert (job.name, job.submit_us, job.deadline_us) == ("a", 5_000_000, 705_000_000)
    assert (job.min_nodes, job.max_nodes, job.requested_nodes, job.expected_s) == (1, 4, 2, 400.0)
    assert (job.work_samples, job.model) == (1000.0, "bert (batch size 64)")
    assert job.throughput.table(4).tolist() == [0.0, 1.5, 2.5, 0.0, 4.0]
    assert (job.scale_up_cost_s, job.scale_down_cost_s) == (6.0, 6.0)  # 2 s, and 2 s for each doubling from one on
    assert len(jobs.sources) == 2


def test_idle_intervals_of_a_table_are_counts_that_a_job_cannot_use(tmp_path, tables):
    (job,) = load_jobs(trace(tmp_path, "a,0,1000,bert,400,128,4,400"), tables)
    assert job.throughput.table(4).tolist() == [0.0, 1.0, 0.0, 0.0, 3.0]


def test_the_other_names_of_columns_and_best_effort_jobs_are_read(tmp_path, tables):
    header = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration,best_effort"
    jobs = load_jobs(trace(tmp_path, f"{ROW},0", "b,7206,10,bert,7300,64,1,10,1", header=header), tables)
    assert [job.deadline_us for job in jobs] == [705_000_000, None]


@pytest.mark.parametrize(
    ("row", "column", "says"),
    [
        ("a,7205,1000,bert,7905,64,2,", "duration", "the duration is missing"),
        ("a,-1,1000,bert,7905,64,2,400", "submit_time", "the submit_time is not a whole number"),
        ("a,7205,0,bert,7905,64,2,400", "iteration", "the iteration is not a whole number"),
        ("a,7205,1.5,bert,7905,64,2,400", "iteration", "the iteration is not a whole number"),
        ("a,7205,1000,gpt5,7905,64,2,400", "model_name, batch_size", "no rate of 'gpt5'"),
        ("a,7205,1000,bert,7905,32,2,400", "model_name, batch_size", "global batch of 32"),
        ("a,7205,1000,bert,7905,64,8,400", "num_gpu", "was not measured on 8 GPUs"),
    ],
)
def test_a_row_that_is_no_job_is_refused_with_its_place(tmp_path, tables, row, column, says):
    file = trace(tmp_path, "ok,7200,10,bert,7300,64,1,10", row)
    with pytest.raises(InputError, match=says) as error:
        load_jobs(file, tables)
    assert (error.value.column, error.value.row) == (column, 2)
    assert error.value.file == str(file)


def test_best_effort_is_0_or_1(tmp_path, tables):
    with pytest.raises(InputError, match="best_effort is neither 0 nor 1"):
        load_jobs(trace(tmp_path, f"{ROW},yes", header=f"{HEADER},best_effort"), tables)


def test_a_trace_without_jobs_and_one_without_tables_are_refused(tmp_path, tables):
    with pytest.raises(InputError, match="the trace has no jobs"):
        load_jobs(trace(tmp_path), tables)
    with pytest.raises(InputError, match="needs throughput tables"):
        load_jobs(trace(tmp_path, ROW))


def test_a_plain_job_set_is_no_trace(tmp_path):
    file = tmp_path / "plain.csv"
    file.write_text("name,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve,model\nx,1,0,0,5,0:0 1:1,m\n")
    assert not is_trace(file)
    assert load_jobs(file)[0].name == "x"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("bert.csv", "batch,1,2\n64,1,2\n", "this is not a throughput table"),
        ("bert.csv", "global_batch_size,one\n64,1\n", "not a whole number"),
        ("bert.csv", "global_batch_size,1\n64,fast\n", "this is not a rate"),
        ("bert.csv", "global_batch_size,1,2\n64,0,\n", "a batch size has no rate"),
        ("notes.txt", "nothing", "the folder has no throughput tables"),
    ],
)
def test_a_folder_that_has_no_usable_tables_is_refused(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=says):
        read_throughputs(tmp_path)


def test_a_job_of_no_trace_is_refused():
    with pytest.raises(InputError, match="is not of a trace of ElasticFlow"):
        model_and_batch_size(plain_job(work=5))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("fig10_100jobs_1500lam_seed1", {"n_jobs": 100, "seed": 1, "min_deadline": 1.5, "max_deadline": 1.5}),
        ("fig9_1000job_1500lam_seed0_ddlseed12345", {"n_jobs": 1000, "deadline_seed": 12345}),
        *(
            (
                f"fig11_200jobs_900lam_be{part}_seed0_ddlseed12345",
                {"n_jobs": 200, "gap_s": 900, "best_effort": part, "deadline_seed": 12345},
            )
            for part in (0.1, 0.3, 0.5, 0.7, 0.9)
        ),
        ("syn10_600lam_max8_seed0_ddlseed12345", {"n_jobs": 10, "gap_s": 600, "most_gpus": 8, "deadline_seed": 12345}),
        (
            "syn10tight_100lam_max8_seed5_ddlseed777",
            {"n_jobs": 10, "gap_s": 100, "most_gpus": 8, "seed": 5, "deadline_seed": 777},
        ),
    ],
)
def test_generated_jobs_are_those_of_the_published_generator(shared, name, parameters):
    tables = read_throughputs(shared / "data/elasticflow/throughputs_A100")
    recorded = read_trace(shared / f"data/elasticflow/traces/{name}.csv", tables)
    assert key(generated_jobs(tables, **parameters)) == key(recorded)


@pytest.mark.slow
def test_every_published_trace_is_read(shared):
    folder = shared / "data/elasticflow"
    for file in sorted((folder / "traces").glob("*.csv")):
        gpu_type = "T4" if "Vpollux" in file.name else "A100"
        assert len(read_trace(file, read_throughputs(folder / f"throughputs_{gpu_type}"))) >= 5


def test_a_workload_is_named_in_a_text():
    jobs = load_workload("elasticflow(n=20, gap_s=60, best_effort=1)", "sample")
    assert len(jobs) == 20
    assert all(job.deadline_us is None for job in jobs)
    with pytest.raises(InputError, match="number of jobs is missing"):
        draw_jobs("elasticflow(seed=1)", None)
    with pytest.raises(InputError, match="needs throughput tables"):
        draw_jobs("elasticflow(n=3)", None)


def test_made_up_throughputs_grow_with_gpus_and_then_fall_like_measured_ones():
    made_up = made_up_throughputs()
    assert set(made_up.rates) == set(WORKLOAD)
    for (_, size), rates in made_up.rates.items():
        values = list(rates.values())
        assert max(rates) <= size
        assert max(values) > 1.5 * values[0]
    assert any(list(rates.values())[-1] < max(rates.values()) for rates in made_up.rates.values())
