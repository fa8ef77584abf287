import hashlib
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from bfreplay import load_jobs, sample_jobs_path
from bfreplay.campaigns.workloads import load_workload
from bfreplay.cli import main
from bfreplay.errors import InputError, OutputExistsError
from bfreplay.systems.gavel.generated_workload import generated_jobs
from bfreplay.systems.gavel.job_types import JOB_TYPES
from bfreplay.systems.gavel.made_up_throughputs import NODE_MODELS, SHARING_TOLL, sample_throughputs
from bfreplay.systems.gavel.throughputs import ThroughputTable, read_throughputs, write_throughputs
from bfreplay.systems.gavel.trace import read_trace, write_trace
from tests.systems.gavel.traces.small_table import SMALL, published, small_table

NODE_TYPES = ("v100", "p100", "k80")
SCRIPT = "from bfreplay.systems.gavel.made_up_throughputs import *; print(sample_throughputs().source.sha256)"


def pairs(table):
    for node_type in table.tables:
        for (one, other, gang), both in table.shared[node_type].items():
            yield node_type, one, other, gang, both


def test_the_made_up_table_has_what_the_published_one_has(shared):
    table, other = sample_throughputs(), read_throughputs(published(shared))
    assert table.node_types == other.node_types
    assert set(table.job_types) == set(other.job_types) == {job.name for job in JOB_TYPES}
    for node_type in NODE_TYPES:
        assert set(table.alone[node_type]) == set(other.alone[node_type])
        assert set(table.shared[node_type]) == set(other.shared[node_type])


def test_no_made_up_rate_is_a_published_one(shared):
    table, other = sample_throughputs(), read_throughputs(published(shared))
    for node_type in NODE_TYPES:
        same = [key for key, rate in table.alone[node_type].items() if rate and rate == other.alone[node_type][key]]
        assert same == []


def test_every_job_type_runs_on_v100_and_at_most_one_does_not_fit_elsewhere():
    table = sample_throughputs()
    assert table.tables == NODE_TYPES
    cannot = [(node_type, *key) for node_type in NODE_TYPES for key, rate in table.alone[node_type].items() if not rate]
    assert cannot == [("k80", "ResNet-50 (batch size 128)", gang) for gang in (1, 2, 4, 8)]


def test_node_types_differ_by_job_type():
    table = sample_throughputs()
    gains = [table.rate(job.name, 1, "v100") / rate for job in JOB_TYPES if (rate := table.rate(job.name, 1, "k80"))]
    assert 1.5 < min(gains) < 2 < 9 < max(gains) < 10
    for job in JOB_TYPES:
        rates = [table.rate(job.name, 1, node_type) for node_type in NODE_TYPES]
        assert rates == sorted(rates, reverse=True)


def test_rates_grow_with_the_gang_but_less_than_it():
    table = sample_throughputs()
    for job in JOB_TYPES:
        assert table.gangs(job.name) == ((1, 2, 4, 8) if job.is_distributed else (1,))
        for node_type in table.runs_on(job.name, 1):
            rates = [table.rate(job.name, gang, node_type) for gang in table.gangs(job.name)]
            for half, whole in pairwise(rates):
                assert half < whole < 2 * half


def test_pairs_are_symmetric_and_each_job_is_slower_than_alone():
    table = sample_throughputs()
    for node_type, one, other, gang, both in pairs(table):
        assert table.shared[node_type][other, one, gang] == both[::-1]
        if both != (0, 0):
            assert 0 < both[0] < table.rate(one, gang, node_type) / (1 + SHARING_TOLL / 2)
            assert both[0] / table.rate(one, gang, node_type) == pytest.approx(
                both[1] / table.rate(other, gang, node_type), rel=1e-4
            )


def test_some_pairs_do_not_fit_some_do_not_pay_and_some_do():
    table = sample_throughputs()
    gains = [
        both[0] / table.rate(one, gang, node_type) + both[1] / table.rate(other, gang, node_type)
        for node_type, one, other, gang, both in pairs(table)
        if both != (0, 0)
    ]
    n_pairs = sum(1 for _ in pairs(table))
    assert 0.05 < 1 - len(gains) / n_pairs < 0.3
    assert min(gains) < 1 < 1.7 < max(gains) < 2
    assert table.shared["v100"]["CycleGAN", "ResNet-50 (batch size 128)", 1] == (0, 0)


def test_a_rate_can_be_checked_by_hand():
    """A3C: 0.11 s on the host and 0.012 s on a v100, ten times that on a k80; two of them share either."""
    table = sample_throughputs()
    assert NODE_MODELS["k80"].speed == 0.1
    assert table.rate("A3C", 1, "v100") == 8.19672  # 1 / 0.122
    assert table.rate("A3C", 1, "k80") == 4.34783  # 1 / 0.23
    of_device = 0.12 / 0.23
    assert table.shared["k80"]["A3C", "A3C", 1][0] == pytest.approx(4.34783 / (1 + of_device**2) / 1.05, rel=1e-5)


def test_the_table_is_the_same_in_every_process_and_its_digest_is_that_of_its_file(tmp_path):
    table = sample_throughputs()
    write_throughputs(table, tmp_path / "t.json")
    digest = hashlib.sha256((tmp_path / "t.json").read_bytes()).hexdigest()
    assert (table.source.name, table.source.sha256) == ("made-up throughputs", digest)
    made = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout.strip() == digest


def test_what_is_written_is_read_back_exactly(tmp_path):
    for number, table in enumerate((sample_throughputs(), small_table(tmp_path))):
        write_throughputs(table, tmp_path / f"{number}.json")
        again = read_throughputs(tmp_path / f"{number}.json")
        assert (again.tables, again.alone, again.shared) == (table.tables, table.alone, table.shared)
    assert json.loads((tmp_path / "1.json").read_text()) == SMALL


def test_a_job_type_with_an_apostrophe_is_written_in_double_quotes(tmp_path):
    table = ThroughputTable({"v100": {("Kim's", 1): 2.0}}, {"v100": {("Kim's", "Kim's", 1): (1.0, 1.0)}})
    write_throughputs(table, tmp_path / "t.json")
    assert read_throughputs(tmp_path / "t.json").shared == table.shared


def test_a_table_is_written_as_json_once_and_with_the_rates_of_pairs_alone(tmp_path):
    table = sample_throughputs()
    with pytest.raises(InputError, match="written as JSON"):
        write_throughputs(table, tmp_path / "t.csv")
    write_throughputs(table, tmp_path / "t.json")
    with pytest.raises(OutputExistsError):
        write_throughputs(table, tmp_path / "t.json")
    pair_only = ThroughputTable({"v100": {}}, {"v100": {("LM", "LM", 1): (1.0, 1.0)}})
    with pytest.raises(InputError, match="no rate alone") as caught:
        write_throughputs(pair_only, tmp_path / "pair.json")
    assert (caught.value.row, caught.value.value) == ("v100", "('LM', 1)")
    assert not (tmp_path / "pair.json").exists()


def test_the_word_sample_stands_for_the_table_with_a_generated_workload():
    jobs = load_workload("gavel(n=20, jobs_per_hour=8, multi_gpu=true)", "sample")
    made = generated_jobs(sample_throughputs(), 20, jobs_per_hour=8, multi_gpu=True)
    assert list(jobs) == list(made)
    assert jobs.sources[0] == ("made-up throughputs", sample_throughputs().source.sha256)


def test_the_word_sample_stands_for_the_table_with_a_trace(tmp_path):
    write_trace(generated_jobs(sample_throughputs(), 5, multi_gpu=True), tmp_path / "five.trace")
    jobs = load_jobs(tmp_path / "five.trace", "sample")
    assert list(jobs) == list(read_trace(tmp_path / "five.trace", sample_throughputs()))
    assert [name for name, _ in jobs.sources] == ["five.trace", "made-up throughputs"]


def test_a_file_called_sample_is_taken_for_what_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").write_text(json.dumps(SMALL))
    with pytest.raises(InputError, match="has no rate of"):  # the small table has four job types
        load_workload("gavel(n=20)", "sample")


def test_other_jobs_do_not_take_the_made_up_throughputs():
    with pytest.raises(InputError, match=r"made-up throughputs \(sample\) can be used with a trace or workload"):
        load_workload(sample_jobs_path(), "sample")


def test_who_has_no_throughputs_is_told_of_the_made_up_ones():
    with pytest.raises(InputError, match="needs measured throughputs") as caught:
        load_workload("gavel(n=4)")
    assert "--curves sample" in caught.value.fix


def test_the_command_writes_the_table_and_says_what_to_do_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["jobs", "make", "throughputs", "-o", "t.json"])
    assert done.exit_code == 0, done.output
    assert "made-up rates of 26 job types on k80, p100, v100" in done.output
    assert '--jobs "gavel(n=20, jobs_per_hour=8)" --curves t.json --policy gavel.max_min_fairness_perf' in done.output
    assert read_throughputs("t.json").alone == sample_throughputs().alone
    again = CliRunner().invoke(main, ["jobs", "make", "throughputs", "-o", "t.json"])
    assert again.exit_code == 2
    other = CliRunner().invoke(main, ["jobs", "make", "throughputs", "-o", "t.toml"])
    assert other.exit_code == 2
    assert "-o t.json" in other.output
