"""Traces of jobs whose batch sizes change: what a line becomes, by which rules, and every way of writing it wrongly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from bfreplay.campaigns.workloads import load_workload
from bfreplay.datasets import load_jobs, write_jobs
from bfreplay.errors import InputError
from bfreplay.systems.gavel.made_up_throughputs import sample_throughputs
from bfreplay.systems.gavel.trace import write_trace
from bfreplay.systems.shockwave.adaptation_rules import (
    CONSISTENT,
    PUBLISHED_PROFILE,
    PUBLISHED_SIMULATOR,
    Mode,
    batch_sizes,
    is_critical,
    wants_to_change,
)
from bfreplay.systems.shockwave.generated_workload import generated_jobs
from bfreplay.systems.shockwave.profile import profile_of
from bfreplay.systems.shockwave.trace import COLUMNS, RESTORE_S, is_trace, read_trace

GOOD = {
    "job type": "ResNet-18 (batch size 64)",
    "command": "python3 main.py",
    "working directory": "cifar10",
    "steps flag": "--num_steps",
    "needs data directory": "1",
    "total steps": "31280",
    "scale factor": "1",
    "mode": "gns",
    "priority weight": "1",
    "SLO": "-1.000000",
    "duration": "3338",
    "arrival": "55",
}


def trace_file(folder, *rows, name="small.trace"):
    lines = ["\t".join((GOOD | row)[column] for column in COLUMNS) for row in rows]
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder / name


def test_a_line_becomes_a_job_that_changes_at_the_beginning_of_an_epoch(tmp_path):
    file = trace_file(tmp_path, {})
    (job,) = load_jobs(file, "sample")
    assert is_trace(file)
    assert (job.name, job.submit_us, job.min_nodes, job.max_nodes) == ("job0000", 55_000_000, 1, 1)
    # 31,280 steps of 64 samples; 782 steps make an epoch of 50,000 samples: 40 epochs, doubled at 11 and at 31
    assert job.work_samples == 31_280 * 64
    assert job.adaptation.changes == ((0.0, 64), (11 * 50_000.0, 128), (31 * 50_000.0, 256))
    assert (job.scale_up_cost_s, job.deadline_us, job.weight) == (0.0, None, 1.0)
    table = sample_throughputs()
    for size in (64, 128, 256):
        rate = table.rate(f"ResNet-18 (batch size {size})", 1, "v100")
        assert job.adaptation.throughput[size].table(1).tolist() == [0.0, rate * size]


def test_a_deadline_is_a_factor_of_the_time_alone(tmp_path):
    (job,) = load_jobs(trace_file(tmp_path, {"SLO": "2", "arrival": "0"}), "sample")
    assert job.deadline_us == round(2 * job.seconds_alone(1) * 1e6)
    ends = (11 * 50_000.0, 31 * 50_000.0, job.work_samples)
    rates = [job.adaptation.throughput[size].table(1)[1] for size in (64, 128, 256)]
    begins = (0.0, *ends)
    assert job.seconds_alone(1) == pytest.approx(
        sum((end - begin) / rate for begin, end, rate in zip(begins, ends, rates, strict=False))
    )


def test_an_elastic_job_runs_on_every_measured_number_of_nodes(tmp_path):
    file = trace_file(tmp_path, {"scale factor": "2"})
    (rigid,), (elastic,) = (read_trace(file, sample_throughputs(), elastic=each) for each in (False, True))
    assert (rigid.min_nodes, rigid.max_nodes) == (2, 2)
    assert (elastic.min_nodes, elastic.max_nodes, elastic.scale_up_cost_s) == (1, 8, RESTORE_S)
    assert elastic.work_samples == rigid.work_samples
    assert elastic.throughput.table(2)[2] == rigid.throughput.table(2)[2]


def test_an_elastic_job_runs_on_no_more_nodes_than_each_of_its_batch_sizes_was_measured_on(tmp_path):
    table = sample_throughputs()
    left_out = {("ResNet-18 (batch size 256)", n) for n in (4, 8)}
    table = replace(
        table, alone={each: {key: rates[key] for key in rates.keys() - left_out} for each, rates in table.alone.items()}
    )
    (job,) = read_trace(trace_file(tmp_path, {}), table, elastic=True)
    assert (job.min_nodes, job.max_nodes) == (1, 2)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"mode": "gnss"}, "mode"),
        ({"job type": "A3C"}, "job type"),
        ({"job type": "ResNet-18"}, "job type"),
        ({"job type": "ResNet-18 (batch size 48)"}, "job type"),
        ({"total steps": "0"}, "total steps"),
        ({"scale factor": "3"}, None),
        ({"needs data directory": "yes"}, "needs data directory"),
        ({"SLO": "0"}, "SLO"),
        ({"priority weight": "0"}, "priority weight"),
        ({"arrival": "-3"}, "arrival"),
        ({"arrival": "12"}, "arrival"),  # before that of line 1
    ],
)
def test_a_bad_cell_is_named_with_its_line(tmp_path, row, column):
    with pytest.raises(InputError) as error:
        load_jobs(trace_file(tmp_path, {}, row), "sample")
    assert error.value.file is not None
    if column is not None and row.get("job type") != "ResNet-18 (batch size 48)":
        assert (error.value.row, error.value.column) == ("line 2", column)


def test_jobs_that_change_are_written_nowhere_that_would_lose_the_change(tmp_path):
    jobs = load_jobs(trace_file(tmp_path, {}), "sample")
    with pytest.raises(InputError, match="several throughput curves"):
        write_jobs(jobs, tmp_path / "jobs.csv")
    with pytest.raises(InputError, match="its batch size changes"):
        write_trace(jobs, tmp_path / "other.trace")
    assert [path.name for path in tmp_path.iterdir()] == ["small.trace"]


def test_a_trace_needs_its_throughputs(tmp_path):
    with pytest.raises(InputError, match="needs measured throughputs"):
        load_jobs(trace_file(tmp_path, {}))


def test_rules_of_profiles_and_of_the_simulator():
    # Recommendation: critical again in epochs 60 to 69 and 80 to 89, which the simulator does not know
    critical = [epoch for epoch in range(100) if is_critical("Recommendation", 512, epoch, CONSISTENT)]
    assert critical == [*range(30), *range(60, 70), *range(80, 90)]
    assert not is_critical("Recommendation", 512, 65, PUBLISHED_SIMULATOR)
    assert is_critical("Recommendation", 512, 29, PUBLISHED_SIMULATOR)
    # 30 % of the epochs come first, which the simulator does not wait for
    sizes = batch_sizes("LM", 10, 1, Mode.ACCORDION, 100, CONSISTENT)
    assert sizes == [10] * 31 + [80] * 69
    assert batch_sizes("LM", 10, 1, Mode.ACCORDION, 100, PUBLISHED_SIMULATOR) == [10] * 10 + [80] * 90
    # the last epoch keeps the first size in published profiles, from the second doubling on
    for n_epochs, last in ((20, 20), (40, 10)):
        assert batch_sizes("LM", 10, 1, Mode.GNS, n_epochs, PUBLISHED_PROFILE)[-1] == last
    assert batch_sizes("LM", 10, 1, Mode.GNS, 40, CONSISTENT)[-1] == 40
    for mode in Mode:
        assert set(batch_sizes("Transformer", 16, 1, mode, 50, CONSISTENT)) == {16}
    # a job asks in the epoch before, as the pattern of the next one counts too
    assert [epoch for epoch in range(15) if wants_to_change("LM", 10, 10, 1, Mode.GNS, epoch)] == [10, 11, 12, 13, 14]
    assert wants_to_change("ResNet-50", 64, 128, 1, Mode.ACCORDION, 31)  # critical again: back to the first size
    assert not wants_to_change("ResNet-18", 256, 256, 1, Mode.ACCORDION, 100)


def test_the_profile_of_a_job_is_its_batch_sizes_epoch_by_epoch(tmp_path):
    (job,) = load_jobs(trace_file(tmp_path, {}), "sample")
    profile = profile_of(job, 1)
    assert profile.batch_size.tolist() == [64] * 11 + [128] * 20 + [256] * 9
    assert profile_of(job, 1, published=True).batch_size.tolist() == [64] * 11 + [128] * 20 + [256] * 8 + [64]
    assert profile.exclusive_s == pytest.approx(job.seconds_alone(1), rel=1e-2)  # whole epochs


def test_generated_jobs_are_the_same_for_a_seed_and_name_their_parameters():
    text = "shockwave(n=6, seed=3, gap_s=10, max_hours=0.5)"
    jobs = load_workload(text, "sample")
    assert jobs == generated_jobs(sample_throughputs(), 6, 3, gap_s=10, max_hours=0.5)
    assert jobs != generated_jobs(sample_throughputs(), 6, 4, gap_s=10, max_hours=0.5)
    assert jobs.sources[1][0].startswith("shockwave(n=6, gap_s=10, min_hours=0.2, max_hours=0.5")
    assert {job.adaptation.rule for job in jobs} <= {"static", "accordion", "gns"}
    static = generated_jobs(sample_throughputs(), 40, dynamic=0.0, multi_gpu=False)
    assert {(job.adaptation.rule, job.max_nodes) for job in static} == {("static", 1)}


def test_half_of_the_generated_jobs_that_change_do_so_by_each_rule_and_short_ones_not_by_accordion():
    def rules(**given):
        return Counter(job.adaptation.rule for job in generated_jobs(sample_throughputs(), 400, **given))

    long = rules(min_hours=1.0, dynamic=0.5)
    assert (long["static"], long["accordion"], long["gns"]) == pytest.approx((200, 100, 100), abs=30)
    short = rules(max_hours=0.25)
    assert (short["static"], short["accordion"], short["gns"]) == pytest.approx((200, 0, 200), abs=30)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("shockwave(seed=1)", "n"),
        ("shockwave(n=0)", "n"),
        ("shockwave(n=3, dynamic=2)", "dynamic"),
        ("shockwave(n=3, min_hours=2, max_hours=1)", "max_hours"),
        ("shockwave(n=3, gap=1)", None),
        ("shockwave(n=3, elastic=1)", "elastic"),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(text, column):
    with pytest.raises(InputError) as error:
        load_workload(text, "sample")
    assert column is None or error.value.column == column


def test_a_generated_workload_needs_throughputs():
    with pytest.raises(InputError, match="needs measured throughputs"):
        load_workload("shockwave(n=3)")
