"""Units of measured rates: each by hand, by other words for it, and with the numbers that it needs."""

from __future__ import annotations

import pytest

from bfreplay.datasets import load_jobs
from bfreplay.datasets.jobs.measurements import load_measurements
from bfreplay.datasets.jobs.rate_units import NEEDS, UNITS, count_and_rate_columns
from bfreplay.errors import InputError
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "curves.md").read_text()


def measured(folder, text, **numbers):
    (folder / "m.csv").write_text(text)
    (found,) = load_measurements(folder / "m.csv", numbers).values()
    return found


@pytest.mark.parametrize(
    ("header", "rows", "numbers", "rates"),
    [
        ("nodes,images_per_s", "1,40 2,70", {}, (40, 70)),
        ("nodes,tokens_per_min", "1,600 2,1200", {}, (10, 20)),
        ("nodes,samples/s/GPU", "1,10 2,9", {"gpus_per_node": 8}, (80, 144)),
        ("gpus,samples_per_s_per_gpu", "8,10 16,9", {"gpus_per_node": 8}, (80, 144)),
        ("gpus,samples_per_s", "8,10 16,19", {"gpus_per_node": 8}, (10, 19)),
        ("nodes,samples_per_s_per_node", "1,10 2,9", {}, (10, 18)),
        ("nodes,seconds_per_step", "1,0.5 2,0.25", {"global_batch": 100}, (200, 400)),
        ("nodes,step_ms", "1,500 2,500", {"batch_per_gpu": 25, "gpus_per_node": 4}, (200, 400)),
        ("nodes,step_s,global_batch", "1,0.5,100 2,0.5,200", {}, (200, 400)),
        ("nodes,it/s", "1,2 2,4", {"global_batch": 100}, (200, 400)),
        ("nodes,minutes", "1,10 2,5", {"samples": 6000}, (10, 20)),
        ("nodes,Time to train (h)", "1,1 2,0.5", {"samples": 7200}, (2, 4)),
        ("nodes,epochs_per_day", "1,12 2,24", {"samples": 7200}, (1, 2)),
        ("nodes,epoch_time_min", "1,1 2,0.5", {"samples": 120}, (2, 4)),
    ],
)
def test_a_rate_in_any_unit_becomes_samples_per_second_of_all_nodes(tmp_path, header, rows, numbers, rates):
    found = measured(tmp_path, "\n".join([header, *rows.split(" "), ""]), **numbers)
    assert found.nodes == (1, 2)
    assert found.rates == pytest.approx(rates, rel=1e-12)


@pytest.mark.parametrize("unit", UNITS.values(), ids=lambda unit: unit.title)
def test_the_examples_of_a_unit_are_read_and_stand_in_the_docs(unit):
    examples = unit.examples.split(", ")
    assert count_and_rate_columns(examples) == ([], examples)
    needs = " or ".join(" and ".join(name for name in factors if name in NEEDS) for factors in unit.factors)
    assert f"| `{'`, `'.join(examples)}` | {unit.title} | {needs} |".replace("  ", " ") in PAGE


@pytest.mark.parametrize("name", NEEDS)
def test_the_numbers_that_units_need_stand_in_the_docs(name):
    assert f"| `{name}` | {NEEDS[name]} |" in PAGE


@pytest.mark.parametrize("words", ["time", "step_time", "t", "samples", "min_step_s", "batch_size", "gpus_per_node"])
def test_what_has_no_unit_or_two_is_no_rate(words):
    assert count_and_rate_columns([words]) == ([], [])


@pytest.mark.parametrize(
    ("header", "numbers", "column", "says"),
    [
        ("nodes,step_s", {}, "step_s", "global_batch, or batch_per_gpu and gpus_per_node"),
        ("nodes,step_s", {"batch_per_gpu": 8}, "step_s", "--global-batch N, --gpus-per-node N"),
        ("gpus,samples_per_s", {}, "samples_per_s", "GPUs in a node"),
        ("nodes,minutes", {}, "minutes", "--samples N"),
        ("nodes,samples_per_s", {"samples": 9}, "samples", "has no effect"),
        ("nodes,step_s", {"global_batch": 9, "batch_per_gpu": 1}, "batch_per_gpu", "has no effect"),
        ("nodes,step_s,global_batch", {"global_batch": 9}, "global_batch", "given twice"),
    ],
)
def test_a_number_that_is_missing_or_has_no_effect_is_named(tmp_path, header, numbers, column, says):
    with pytest.raises(InputError, match=says) as caught:
        measured(tmp_path, f"{header}\n", **numbers)
    assert (caught.value.column, caught.value.file) == (column, str(tmp_path / "m.csv"))


@pytest.mark.parametrize(
    ("text", "numbers", "says", "column", "value"),
    [
        (
            "gpus,samples_per_s\n8,1\n12,2\n",
            {"gpus_per_node": 8},
            "gpus is no whole number of nodes of 8",
            "gpus",
            12.0,
        ),
        ("nodes,step_ms\n1,5\n2,0\n", {"global_batch": 8}, "no rate", "step_ms", 0.0),
        ("nodes,step_ms\n1,5\n2,inf\n", {"global_batch": 8}, "no rate", "step_ms", float("inf")),
        ("n_nodes,step_ms\n1,5\n1.5,3\n", {"global_batch": 8}, "no node count", "n_nodes", 1.5),
        ("nodes,step_s,global_batch\n1,5,8\n2,3,0\n", {}, "out of range", "global_batch", 0.0),
    ],
)
def test_a_faulty_cell_is_named_as_it_stands_in_the_file(tmp_path, text, numbers, says, column, value):
    with pytest.raises(InputError, match=says) as caught:
        measured(tmp_path, text, **numbers)
    assert (caught.value.row, caught.value.column, caught.value.value) == (2, column, value)


def test_comments_above_the_header_are_skipped(tmp_path):
    assert measured(tmp_path, "# BERT, 2 runs\n# minutes\nnodes,samples_per_s\n1,3\n2,5\n").rates == (3, 5)


@pytest.mark.parametrize(
    ("cells", "fix"),
    [
        (("2,803", "10,690"), "write 2803 if it separates thousands or 2.803 if it is a decimal comma"),
        (("2,803", "19,44"), "write 2.803 if it is a decimal comma or 2803 if it separates thousands"),
        (("0,912", "0,950"), "write 0.912 if it is a decimal comma"),
        (("1.234,5", "2"), "write 1234.5 if it is a decimal comma"),
        (("1,234,567", "2"), "write 1234567 if it separates thousands"),
        (("2 803.5", "2"), "write 2803.5 if it separates thousands"),
    ],
)
def test_a_number_with_commas_is_refused_with_its_readings_the_likelier_one_first(tmp_path, cells, fix):
    with pytest.raises(InputError) as caught:
        measured(tmp_path, f'nodes,samples_per_s\n1,"{cells[0]}"\n2,"{cells[1]}"\n')
    assert caught.value.fix.startswith(fix)


JOB = "name,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve\na,2,1,1,10,m\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv", "nodes,images_per_s\n1,40\n2,70\n"),
        ("m.csv", "curve,gpus,ms_per_step,gpus_per_node,global_batch\nm,8,1000,8,40\nm,16,500,8,35\n"),
    ],
)
def test_a_file_of_curves_may_hold_measured_rates(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (tmp_path / "jobs.csv").write_text(JOB)
    (job,) = load_jobs(tmp_path / "jobs.csv", tmp_path / name)
    assert (job.throughput.nodes, job.throughput.values) == ((0, 1, 2), (0, 40, 70))
    assert job.min_nodes == 1
