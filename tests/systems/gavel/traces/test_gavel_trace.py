import lzma
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay.campaigns.workloads import load_workload
from bfreplay.datasets import load_jobs
from bfreplay.errors import InputError, OutputExistsError
from bfreplay.systems.gavel.generated_workload import generated_jobs
from bfreplay.systems.gavel.throughputs import read_throughputs
from bfreplay.systems.gavel.trace import COLUMNS, OLD_COLUMNS, read_trace, write_trace
from bfreplay.workload import JobSet
from tests.examples import examples
from tests.systems.gavel.traces.small_table import published, small_table, table_file

GOOD = {
    "job type": "LM",
    "command": "python3 main.py --data %s",
    "working directory": "lm",
    "steps flag": "--steps",
    "needs data directory": "1",
    "total steps": "1000",
    "scale factor": "2",
    "priority weight": "1",
    "SLO": "-1.000000",
    "arrival": "0",
}
N_JOBS = {
    "physical_cluster/artifact_evaluation": 15, "physical_cluster/debug": 14, "physical_cluster/debug_v2": 14,
    "physical_cluster/highmem_test": 8, "physical_cluster/max_min_fairness": 96, "physical_cluster/medium_test": 20,
    "physical_cluster/minimize_makespan": 100, "physical_cluster/small_test": 20, "golden/cont10_prio": 10,
    "golden/cont12_single": 12, "golden/cont14_multi": 14, "golden/quirk_few_steps": 2, "golden/quirk_idle_gap": 3,
    "golden/quirk_stall": 4, "golden/static12_multi": 12, "golden/static8_single": 8,
}  # fmt: skip


def trace_file(folder, *rows, columns=COLUMNS, name="small.trace"):
    """A trace of ``GOOD`` lines with changes."""
    lines = ["\t".join((GOOD | row)[column] for column in columns) for row in rows]
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder / name


def test_a_line_becomes_a_rigid_job(tmp_path):
    rows = {"priority weight": "5"}, {"job type": "A3C", "scale factor": "1", "arrival": "1576.25", "SLO": "1.2"}
    jobs = read_trace(trace_file(tmp_path, *rows), small_table(tmp_path))
    assert jobs.submit_is_relative
    assert [name for name, _ in jobs.sources] == ["small.trace", "throughputs.json"]
    assert jobs.colocation.rates("A3C", "LM", 1, "v100") == (1.5, 8.0)
    first, second = jobs
    assert (first.name, first.submit_us, first.min_nodes, first.max_nodes) == ("job0000", 0, 2, 2)
    assert (first.work_samples, first.weight, first.deadline_us, first.model) == (1000, 5.0, None, "LM")
    assert (first.scale_up_cost_s, first.scale_down_cost_s) == (0, 0)
    assert first.node_types == ("v100",)
    assert first.throughput.table(2).tolist() == [0, 0, 16]
    assert (second.name, second.submit_us) == ("job0001", 1_576_250_000)
    assert second.deadline_us == 1_576_250_000 + 600_000_000  # 1.2 times 1000 steps at 2 steps/s


def test_a_job_that_cannot_run_on_v100_refers_to_another_type(tmp_path):
    row = {"job type": "CPU only", "scale factor": "1", "SLO": "2", "total steps": "50"}
    (job,) = read_trace(trace_file(tmp_path, row), small_table(tmp_path))
    assert job.node_types == ("k80",)
    assert (job.throughput.table(1).tolist(), job.deadline_us) == ([0, 0.5], 200_000_000)


def test_an_elastic_job_runs_on_every_number_of_nodes_up_to_the_largest_measured(tmp_path):
    rows = {"SLO": "2"}, {"job type": "A3C", "scale factor": "1"}
    first, second = read_trace(trace_file(tmp_path, *rows), small_table(tmp_path), elastic=True)
    assert (first.min_nodes, first.max_nodes) == (1, 4)
    assert first.throughput.table(4).tolist() == [0, 10, 16, 18, 20]
    assert first.throughput_by_type["k80"].table(4).tolist() == [0, 4, 0, 0, 8]
    assert first.deadline_us == 125_000_000  # still that of its scale factor: 2 times 1000 steps at 16 steps/s
    assert (second.min_nodes, second.max_nodes, second.node_types) == (1, 1, ("v100",))


def test_the_old_layout_is_read_too(tmp_path):
    rows = {"arrival": "0.000000"}, {"arrival": "6.000000", "scale factor": "1"}
    jobs = read_trace(trace_file(tmp_path, *rows, columns=OLD_COLUMNS), small_table(tmp_path))
    assert [(job.submit_us, job.max_nodes, job.weight, job.deadline_us) for job in jobs] == [
        (0, 2, 1.0, None),
        (6_000_000, 1, 1.0, None),
    ]


BAD_CELLS = {
    "job type": ["", "BERT"], "needs data directory": ["2", "lm"], "total steps": ["0", "-5", "1.5", "many", "9" * 20],
    "scale factor": ["0", "8", "two"], "priority weight": ["0", "-1", "high", "nan"], "SLO": ["0", "-2", "none", "inf"],
    "arrival": ["-1", "soon", "nan"],
}  # fmt: skip


@pytest.mark.parametrize(("column", "cell"), [(column, cell) for column in BAD_CELLS for cell in BAD_CELLS[column]])
def test_a_cell_that_makes_no_sense_is_refused_with_its_place(tmp_path, column, cell):
    file = trace_file(tmp_path, {}, {}, {column: cell})
    with pytest.raises(InputError) as caught:
        read_trace(file, small_table(tmp_path))
    error = caught.value
    assert (error.file, error.row) == (str(file), "line 3")
    assert column in error.column
    assert error.expected
    assert error.fix


def test_a_line_with_other_columns_is_refused(tmp_path):
    file = tmp_path / "bad.trace"
    for content, problem in {
        "LM 1 2 3\n": "line of the trace has 1 column$",
        "a\tb\tc\n": "has 3 columns",
        trace_file(tmp_path, {}).read_text() + "\n" + trace_file(tmp_path, {}).read_text(): "has 1 column$",
        trace_file(tmp_path, {}).read_text() + "LM\t1\n": "has 2 columns",
        "\n \n": "the trace is empty",
    }.items():
        file.write_text(content)
        with pytest.raises(InputError, match=problem.replace("$", r"(\n|$)")) as caught:
            read_trace(file, small_table(tmp_path))
        assert caught.value.file == str(file)
    file.write_bytes(b"caf\xe9\t1\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_trace(file, small_table(tmp_path))


def test_arrivals_out_of_order_are_refused(tmp_path):
    file = trace_file(tmp_path, {"arrival": "10"}, {"arrival": "9.5"})
    with pytest.raises(InputError, match="not in order of arrival") as caught:
        read_trace(file, small_table(tmp_path))
    assert (caught.value.row, caught.value.column, caught.value.value) == ("line 2", "arrival", 9.5)


def test_jobs_that_were_not_measured_may_be_left_out_and_numbers_stay(tmp_path):
    file = trace_file(tmp_path, {}, {"scale factor": "16"}, {"job type": "A3C", "scale factor": "1"})
    jobs = read_trace(file, small_table(tmp_path), skip_unmeasured=True)
    assert [job.name for job in jobs] == ["job0000", "job0002"]
    with pytest.raises(InputError, match="no job of the trace was measured"):
        read_trace(trace_file(tmp_path, {"scale factor": "16"}), small_table(tmp_path), skip_unmeasured=True)


def test_load_jobs_knows_a_trace_by_its_name_or_its_columns(tmp_path):
    curves = table_file(tmp_path)
    for name, columns in (("a.trace", COLUMNS), ("b.txt", COLUMNS), ("msr", OLD_COLUMNS)):
        file = trace_file(tmp_path, {}, {}, columns=columns, name=name)
        assert len(load_jobs(file, curves)) == 2
        assert len(load_workload(file, curves)) == 2


def test_a_trace_and_its_throughputs_belong_together(tmp_path):
    trace, curves = trace_file(tmp_path, {}), table_file(tmp_path)
    with pytest.raises(InputError, match="needs measured throughputs") as caught:
        load_jobs(trace)
    assert "--curves" in caught.value.fix
    (tmp_path / "jobs.csv").write_text("name\nx\n")
    with pytest.raises(InputError, match="can be used with a trace or workload of a published system only") as caught:
        load_jobs(tmp_path / "jobs.csv", curves)
    assert caught.value.file == str(curves)
    with pytest.raises(InputError, match="throughput file is not JSON"):
        load_jobs(trace, tmp_path / "jobs.csv")


@pytest.mark.parametrize("name", N_JOBS)
def test_a_published_trace_is_read_whole(shared, table, name):
    file = shared / f"data/gavel/traces/{name}.trace"
    jobs = read_trace(file, table)
    cells = [line.split("\t") for line in file.read_text().splitlines()]
    assert len(jobs) == N_JOBS[name]
    assert [
        (job.model, job.work_samples, job.max_nodes, job.weight, job.deadline_us, job.submit_us) for job in jobs
    ] == [(row[0], int(row[5]), int(row[6]), float(row[7]), None, int(float(row[9]) * 1e6)) for row in cells]
    assert all(job.min_nodes == job.max_nodes for job in jobs)


@pytest.mark.slow
def test_the_columns_of_the_old_published_traces_are_read(shared, table, tmp_path):
    with lzma.open(shared / "data/gavel/traces/msr_seed0_columns.tsv.xz", "rt") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream][1:]
    by_trace = {}
    for trace, *row in rows:
        by_trace.setdefault(trace, []).append(row)
    assert (len(by_trace), len(rows)) == (15, 15_264)
    n_read = 0
    for trace, lines in by_trace.items():
        file = tmp_path / f"{trace}.trace"
        file.write_text(
            "".join(f"{kind}\tcmd\t-n\t1\t{steps}\t{arrival}\t{gang}\n" for kind, steps, arrival, gang in lines)
        )
        jobs = read_trace(file, table, skip_unmeasured=True)
        n_read += len(jobs)
        kept = {int(job.name[3:]) for job in jobs}
        assert all(
            int(gang) not in (1, 2, 4, 8) or (int(gang) > 1 and kind.startswith(("A3C", "Cycle", "Recommendation")))
            for index, (kind, _, _, gang) in enumerate(lines)
            if index not in kept
        )
    assert n_read == 13_716


@pytest.fixture(scope="module")
def table(shared):
    return read_throughputs(published(shared))


def test_jobs_that_are_written_are_read_back(table, tmp_path):
    jobs = generated_jobs(table, 200, 1, jobs_per_hour=0.3, multi_gpu=True, priorities=True, slos=True)
    file = tmp_path / "out.trace"
    write_trace(jobs, file)
    again = read_trace(file, table)
    for job, other in zip(jobs, again, strict=True):
        assert other.work_samples == int(job.work_samples)
        assert (other.name, other.model, other.submit_us, other.weight) == (
            job.name,
            job.model,
            job.submit_us,
            job.weight,
        )
        assert (other.min_nodes, other.throughput_by_type) == (job.min_nodes, job.throughput_by_type)
        lost_s = (job.work_samples - other.work_samples) / job.throughput.table(job.max_nodes)[-1]
        assert job.deadline_us - other.deadline_us == pytest.approx(lost_s * 10 * 1e6, abs=lost_s * 8.8e6 + 2)
    write_trace(again, tmp_path / "again.trace")
    assert (tmp_path / "again.trace").read_bytes() == file.read_bytes()
    with pytest.raises(OutputExistsError):
        write_trace(jobs, file)
    write_trace(again, file, overwrite=True)


@pytest.mark.parametrize("name", N_JOBS)
def test_a_published_trace_is_written_as_it_was_but_for_its_commands(shared, table, tmp_path, name):
    file = shared / f"data/gavel/traces/{name}.trace"
    write_trace(read_trace(file, table), tmp_path / "out.trace")

    def kept(path):
        cells = [line.split("\t") for line in path.read_text().splitlines()]
        return [[row[0], *row[5:9], float(row[9])] for row in cells]

    assert kept(tmp_path / "out.trace") == kept(file)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([("LM", 1), ("LM", 2), ("LM", 4), ("A3C", 1), ("CPU only", 1)]),
            st.integers(1, 2**32),
            st.one_of(st.integers(1, 9), st.floats(1e-3, 1e3)),
            st.sampled_from(["-1.000000", "1.200000", "10.000000"]),
            st.integers(0, 10**13),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_read_is_written_and_read_again_the_same(tmp_path, rows):
    rows = sorted(rows, key=lambda row: row[4])
    table = small_table(tmp_path)
    cells = [
        {
            "job type": kind,
            "scale factor": str(gang),
            "total steps": str(steps),
            "priority weight": repr(weight),
            "SLO": slo,
            "arrival": f"{arrival_us // 10**6}.{arrival_us % 10**6:06}",
        }
        for (kind, gang), steps, weight, slo, arrival_us in rows
    ]
    first = read_trace(trace_file(tmp_path, *cells), table)
    write_trace(first, tmp_path / "again.trace", overwrite=True)
    assert read_trace(tmp_path / "again.trace", table).jobs == first.jobs


def test_jobs_that_the_format_cannot_express_are_refused_and_leave_no_file(tmp_path):
    table, target = small_table(tmp_path), tmp_path / "out.trace"
    (job,) = read_trace(trace_file(tmp_path, {}), table)
    (elastic,) = read_trace(trace_file(tmp_path, {}), table, elastic=True)
    for bad, column in (
        (elastic, "min_nodes"),
        (replace(job, model=None), "model"),
        (replace(job, work_samples=0.5), "work_samples"),
        (replace(job, work_samples=float("inf")), "work_samples"),
        (replace(job, deadline_us=0), "deadline_us"),
        (replace(job, submit_us=-1), "submit_us"),
    ):
        with pytest.raises(InputError, match="cannot be written to a trace") as caught:
            write_trace(JobSet([bad], submit_is_relative=True), target)
        assert caught.value.column == column
    with pytest.raises(InputError, match="calendar submit times"):
        write_trace(JobSet([job]), target)
    assert not target.exists()
