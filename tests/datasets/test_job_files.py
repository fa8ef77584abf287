import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay.datasets import load_jobs, write_jobs
from bfreplay.errors import InputError, OutputExistsError
from bfreplay.scalability import Amdahl, TabulatedCurve
from bfreplay.workload import CostByCount, ElasticJob, JobSet
from tests.examples import examples
from tests.refusals import refusal_of

HEAD = "name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve"
GOOD = {
    "name": "j1",
    "min_nodes": "1",
    "max_nodes": "2",
    "scale_up_cost_s": "18.5",
    "scale_down_cost_s": "12",
    "work_samples": "1000",
    "curve": "0:0 1:10.5 2:20.25",
}


def jobs_csv(folder, *rows, name="jobs.csv"):
    """A CSV of ``GOOD`` rows with changes; a value of None drops the column."""
    cells = [{key: value for key, value in (GOOD | row).items() if value is not None} for row in rows]
    columns = list(dict.fromkeys(key for row in cells for key in row))
    lines = [",".join(columns), *(",".join(row.get(key, "") for key in columns) for row in cells)]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def text_file(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_a_plain_csv_becomes_jobs_relative_to_the_window(tmp_path):
    jobs = load_jobs(jobs_csv(tmp_path, {}, {"name": "j2", "work_samples": "inf"}))
    assert jobs.submit_is_relative
    assert [name for name, _ in jobs.sources] == ["jobs.csv"]
    first, second = jobs
    assert (first.submit_us, first.min_nodes, first.max_nodes) == (0, 1, 2)
    assert (first.scale_up_cost_s, first.scale_down_cost_s, first.work_samples) == (18.5, 12.0, 1000.0)
    assert first.throughput == TabulatedCurve((0, 1, 2), (0.0, 10.5, 20.25))
    assert (first.objective, first.weight, first.deadline_us, first.node_types, first.model) == (
        None,
        1.0,
        None,
        (),
        None,
    )
    assert second.work_samples == math.inf
    assert second.throughput is first.throughput


def test_every_optional_column_is_read(tmp_path):
    row = {
        "submit_time": "2021-02-10T00:00:01.5Z",
        "objective_curve": "0:0 2:1",
        "weight": "2.5",
        "deadline": "2021-02-10 01:00:00",
        "node_types": "gpu; fat",
        "model": "AlexNet",
    }
    job = load_jobs(jobs_csv(tmp_path, row))[0]
    start = 1_612_915_200_000_000
    assert (job.submit_us, job.deadline_us) == (start + 1_500_000, start + 3_600_000_000)
    assert job.objective == TabulatedCurve((0, 2), (0.0, 1.0))
    assert (job.weight, job.node_types, job.model) == (2.5, ("gpu", "fat"), "AlexNet")


def test_a_deadline_after_counts_from_the_submit_time(tmp_path):
    job = load_jobs(jobs_csv(tmp_path, {"submit_after_s": "10", "deadline_after_s": "60"}))[0]
    assert (job.submit_us, job.deadline_us) == (10_000_000, 70_000_000)


def test_curves_may_be_named_in_a_file_beside(tmp_path):
    table = text_file(tmp_path, "curves.csv", "curve,nodes,value\nslow,0,0\nslow,2,3.5\nfast,0,0\nfast,2,9\n")
    columns = {"curve": ["slow", "slow"], "nodes": [0, 2], "value": [0.0, 3.5]}
    pq.write_table(pa.table(columns), tmp_path / "curves.parquet")
    toml = text_file(tmp_path, "curves.toml", "[curves.slow]\nnodes = [0, 2]\nvalues = [0, 3.5]\n")
    for curves in (table, tmp_path / "curves.parquet", toml):
        jobs = load_jobs(jobs_csv(tmp_path, {"curve": "slow"}, {"name": "j2", "curve": "slow"}), curves)
        assert jobs[0].throughput == TabulatedCurve((0, 2), (0.0, 3.5), "slow")
        assert jobs[1].throughput is jobs[0].throughput
        assert [name for name, _ in jobs.sources] == ["jobs.csv", curves.name]


def test_parquet_may_hold_typed_times_and_lists(tmp_path):
    cells = {
        "name": ["j"],
        "submit_time": pa.array([1_500_000_000], pa.timestamp("ns")),
        "min_nodes": [1],
        "max_nodes": [2],
        "scale_up_cost_s": [1.0],
        "scale_down_cost_s": [0],
        "work_samples": [math.inf],
        "curve": pa.array([[[0.0, 0.0], [2.0, 5.0]]]),
        "node_types": [["gpu"]],
        "model": pa.array([None], pa.string()),
    }
    pq.write_table(pa.table(cells), tmp_path / "jobs.parquet")
    job = load_jobs(tmp_path / "jobs.parquet")[0]
    assert (job.submit_us, job.throughput.values, job.node_types, job.model) == (1_500_000, (0.0, 5.0), ("gpu",), None)


TOML = """
[curves.resnet]
nodes = [0, 1, 4]
values = [0, 10, 30.5]

[[job]]
name = "trial"
count = 3
submit_after_s = 10
submit_every_s = 0.5
deadline_after_s = 100
min_nodes = 1
max_nodes = 4
scale_up_cost_s = 18
scale_down_cost_s = 12.5
work_samples = inf
curve = "resnet"

[[job]]
name = "last"
min_nodes = 1
max_nodes = 1
scale_up_cost_s = 0
scale_down_cost_s = 0
work_samples = 1e6
curve = [[0, 0], [1, 2]]
node_types = ["gpu"]
"""


def test_toml_holds_jobs_curves_and_repetitions(tmp_path):
    jobs = load_jobs(text_file(tmp_path, "jobs.toml", TOML))
    assert [job.name for job in jobs] == ["last", "trial-0000", "trial-0001", "trial-0002"]
    assert [job.submit_us for job in jobs] == [0, 10_000_000, 10_500_000, 11_000_000]
    assert jobs[3].deadline_us == 111_000_000
    assert jobs[1].throughput is jobs[3].throughput
    assert jobs[1].throughput == TabulatedCurve((0, 1, 4), (0.0, 10.0, 30.5), "resnet")


def test_toml_times_may_be_dates_of_its_own(tmp_path):
    text = TOML.replace("submit_after_s = 10", "submit_time = 2021-02-10T00:00:00Z").replace(
        'name = "last"', 'name = "last"\nsubmit_time = 2021-02-10T00:00:01'
    )
    jobs = load_jobs(text_file(tmp_path, "jobs.toml", text))
    start = int(datetime(2021, 2, 10, tzinfo=UTC).timestamp()) * 1_000_000
    assert [job.submit_us - start for job in jobs] == [0, 500_000, 1_000_000, 1_000_000]


@pytest.mark.parametrize(
    ("change", "problem", "column", "value"),
    [
        ({"min_nodes": "3"}, "above max_nodes", "min_nodes", 3),
        ({"min_nodes": "0"}, "below 1", "min_nodes", 0),
        ({"min_nodes": "1.5"}, "not a whole number", "min_nodes", "1.5"),
        ({"max_nodes": "many"}, "not a number", "max_nodes", "many"),
        ({"max_nodes": ""}, "'max_nodes' is empty here", "max_nodes", None),
        ({"name": ""}, "'name' is empty here", "name", None),
        ({"name": "j1"}, "two jobs", "name", "j1"),
        ({"scale_up_cost_s": "-1"}, "negative", "scale_up_cost_s", -1.0),
        ({"work_samples": "0"}, "not positive", "work_samples", 0.0),
        ({"work_samples": "nan"}, "not positive", "work_samples", None),
        ({"weight": "0"}, "not positive", "weight", 0.0),
        ({"curve": "1:10 2:20"}, "start at zero", "curve", (1.0, 10.0)),
        ({"curve": "0:0 2:20 1:10"}, "not sorted", "curve", [0, 2, 1]),
        ({"curve": "0:0 1:10"}, "ends at 1 nodes", "curve", 1),
        ({"curve": "0:0 2"}, "not a pair", "curve", ["2"]),
        ({"curve": "0:0 2:x"}, "not a number", "curve", "x"),
        ({"curve": "resnet"}, "no curve is called", "curve", "resnet"),
        ({"objective_curve": "0:0 1:1"}, "ends at 1 nodes", "objective_curve", 1),
        ({"submit_after_s": "soon"}, "not a number", "submit_after_s", "soon"),
        ({"submit_after_s": "-1"}, "before the window", "submit_after_s", "-1"),
        ({"submit_after_s": "inf"}, "not a number of seconds", "submit_after_s", "inf"),
        ({"deadline": "2021-02-10"}, "calendar time", "deadline", "2021-02-10"),
        ({"deadline_after_s": "-5"}, "before the submit time", "deadline_after_s", "-5"),
        ({"deadline_after_s": "5", "deadline": "2021-02-10"}, "two deadlines", "deadline_after_s", "5"),
    ],
)
def test_a_faulty_row_names_file_row_column_and_value(tmp_path, change, problem, column, value):
    file = jobs_csv(tmp_path, {}, {"name": "j2"} | change)
    with pytest.raises(InputError, match=problem) as caught:
        load_jobs(file)
    error = caught.value
    assert (error.file, error.row, error.column) == (str(file), 2, column)
    assert value is None or error.value == value


@pytest.mark.parametrize(
    ("row", "problem", "column", "value"),
    [
        ({"submit_time": "noon"}, "cannot be read", "submit_time", "noon"),
        ({"submit_time": "2021-02-10", "deadline": "2021-02-09"}, "before the submit time", "deadline", "2021-02-09"),
        ({"submit_time": "2021-02-10T00:00:00.0000001Z"}, "finer", "submit_time", None),
    ],
)
def test_calendar_times_are_checked(tmp_path, row, problem, column, value):
    with pytest.raises(InputError, match=problem) as caught:
        load_jobs(jobs_csv(tmp_path, row))
    assert (caught.value.row, caught.value.column) == (1, column)
    assert value is None or caught.value.value == value


def test_an_unknown_column_gets_a_suggestion(tmp_path):
    with pytest.raises(InputError) as caught:
        load_jobs(jobs_csv(tmp_path, {"min_node": "1", "min_nodes": None}))
    assert (caught.value.column, caught.value.fix) == ("min_node", "did you mean 'min_nodes'?")


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(InputError, match="'work_samples' is missing") as caught:
        load_jobs(jobs_csv(tmp_path, {"work_samples": None}))
    assert caught.value.column == "work_samples"


def test_all_missing_columns_are_named_at_once(tmp_path):
    with pytest.raises(InputError, match="the columns 'scale_down_cost_s', 'work_samples' are missing") as caught:
        load_jobs(jobs_csv(tmp_path, {"work_samples": None, "scale_down_cost_s": None}))
    assert caught.value.fix == "add the columns"


def test_a_log_of_jobs_is_no_job_set_and_the_message_says_which_jobs_are_meant(tmp_path):
    with pytest.raises(InputError) as caught:
        load_jobs(text_file(tmp_path, "jobs.psv", "JobIDRaw|State\n"))
    assert caught.value.fix == "give the training jobs to replay (docs/files.md#jobs), not the scheduler's jobs"


def test_two_ways_to_submit_contradict_each_other(tmp_path):
    with pytest.raises(InputError, match="both submit_time and submit_after_s"):
        load_jobs(jobs_csv(tmp_path, {"submit_time": "2021-02-10", "submit_after_s": "1"}))


def test_an_unknown_curve_gets_a_suggestion(tmp_path):
    curves = text_file(tmp_path, "curves.csv", "curve,nodes,value\nresnet50,0,0\nresnet50,2,9\n")
    with pytest.raises(InputError) as caught:
        load_jobs(jobs_csv(tmp_path, {"curve": "resnet5"}), curves)
    assert caught.value.fix == "did you mean 'resnet50'?"
    assert "resnet50" in caught.value.expected


@pytest.mark.parametrize(
    ("name", "text", "problem", "row", "column"),
    [
        ("curves.csv", "curve,nodes\na,0\n", "not the columns of a table of curves", None, "value"),
        ("curves.csv", "curve,nodes,value\n", "no curves", None, None),
        ("curves.csv", "curve,nodes,value\na,0,0\na,two,1\n", "not a number", 2, "nodes"),
        ("curves.csv", "curve,nodes,value\na,0,0\na,2,\n", "'value' is empty here", 2, "value"),
        ("curves.csv", "curve,nodes,value\na,0,0\nb,1,1\n", "start at zero", 2, "curve"),
        ("curves.csv", "curve,nodes,value\na:b,0,0\n", "colon", 1, "curve"),
        ("curves.toml", "[curves.a]\nnodes = [0]\n", "nodes and values", "[curves.a]", None),
        ("curves.toml", "[curves.a]\nnodes = [0, 1]\nvalues = [0]\n", "2 node counts but 1 values", "[curves.a]", None),
        ("curves.txt", "", "no reader", None, None),
    ],
)
def test_a_faulty_table_of_curves_is_refused(tmp_path, name, text, problem, row, column):
    curves = text_file(tmp_path, name, text)
    with pytest.raises(InputError, match=problem) as caught:
        load_jobs(jobs_csv(tmp_path, {}), curves)
    assert (caught.value.file, caught.value.row, caught.value.column) == (str(curves), row, column)


@pytest.mark.parametrize(
    ("name", "text", "problem", "row"),
    [
        ("jobs.csv", "", "empty", None),
        ("jobs.csv", HEAD + "\n", "no jobs", None),
        ("jobs.csv", HEAD + "\nj,1\n", "another number of cells", 1),
        ("jobs.csv", HEAD + ",name\n", "twice", None),
        ("jobs.toml", "", "no jobs", None),
        ("jobs.toml", "[[job]\n", "cannot be read as TOML", None),
        ("jobs.toml", "[jobs]\nname = 'a'\n", "unknown key", None),
        ("jobs.toml", "[job]\nname = 'a'\n", "array of tables", None),
        ("jobs.toml", TOML.replace("count = 3", "count = 0"), "below 1", "[[job]] 1"),
        ("jobs.toml", TOML.replace("count = 3\n", ""), "without count", "[[job]] 1"),
        ("jobs.toml", TOML.replace("weight", "w").replace("node_types", "node_typs"), "unknown", "[[job]] 2"),
        ("jobs.toml", TOML.replace('name = "last"', "name = 7"), "not text", "[[job]] 2"),
        (
            "jobs.toml",
            TOML.replace("values = [0, 10, 30.5]", "values = [0, true, 1]"),
            "not a number",
            "[curves.resnet]",
        ),
        ("jobs.parquet", "text", "cannot be read as Parquet", None),
        ("jobs.json", "{}", "no reader", None),
    ],
)
def test_a_faulty_file_is_refused(tmp_path, name, text, problem, row):
    file = text_file(tmp_path, name, text)
    with pytest.raises(InputError, match=problem) as caught:
        load_jobs(file)
    assert (caught.value.file, caught.value.row) == (str(file), row)


def test_a_curve_named_in_two_places_is_refused(tmp_path):
    curves = text_file(tmp_path, "curves.toml", "[curves.resnet]\nnodes = [0, 2]\nvalues = [0, 3.5]\n")
    with pytest.raises(InputError, match="jobs file and in the curves file"):
        load_jobs(text_file(tmp_path, "jobs.toml", TOML), curves)


positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
text = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=";"), min_size=1).filter(
    lambda name: name == name.strip() and name.isprintable() and name[0] not in "=+-@"  # no formulas of spreadsheets
)


def costs_up_to(most):
    by_count = st.dictionaries(st.integers(1, 50), st.floats(0, most), max_size=3)
    return st.floats(0, most) | by_count.map({0: 0.1 + 0.2}.__or__)


@st.composite
def job_sets(draw):
    relative = draw(st.booleans())
    names = draw(st.lists(text, min_size=1, max_size=4, unique=True))
    jobs = []
    for name in names:
        top = draw(st.integers(1, 50))
        curve = draw(st.just(TabulatedCurve((0, top), (0.0, draw(st.floats(0, 1e20))))) | st.just(Amdahl(9.5, 0.25)))
        least = draw(st.integers(1, top))
        between = st.lists(st.integers(least, top), max_size=4)
        every_s = draw(st.just(0.0) | st.floats(0.001, 1e9))
        restart = draw(st.sampled_from(["charge", "pause"]))
        costs = costs_up_to(1e300 if restart == "charge" else 1e9)
        submit_us = draw(st.integers(0 if relative else -(10**15), 10**16))
        jobs.append(
            ElasticJob(
                name,
                submit_us,
                least,
                top,
                draw(costs),
                draw(costs),
                draw(positive | st.just(math.inf)),
                curve,
                draw(st.none() | st.just(curve)),
                draw(st.floats(min_value=0, exclude_min=True, max_value=1e9)),
                draw(st.none() | st.integers(0, 10**12).map(lambda after, start=submit_us: start + after)),
                tuple(draw(st.lists(text, max_size=2))),
                draw(st.none() | text),
                start_cost_s=draw(st.just(0.0) | costs),
                restart=restart,
                work_saved_every_s=every_s,
                saves=draw(st.sampled_from(["never", "on-notice", "on-resize"] if every_s else ["never"])),
                counts=draw(st.just(()) | between.map(lambda few, ends=(least, top): sorted({*few, *ends}))),
            )
        )
    return JobSet(jobs, relative)


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs=job_sets())
def test_any_job_set_survives_csv_exactly(tmp_path, jobs):
    write_jobs(jobs, tmp_path / "jobs.csv", overwrite=True)
    again = load_jobs(tmp_path / "jobs.csv")
    assert again.jobs == jobs.jobs
    assert again.submit_is_relative == jobs.submit_is_relative


def test_an_existing_job_file_is_kept_unless_asked(tmp_path):
    file = jobs_csv(tmp_path, {})
    jobs, before = load_jobs(file), file.read_text()
    with pytest.raises(OutputExistsError):
        write_jobs(jobs, file)
    assert file.read_text() == before
    with pytest.raises(InputError, match="written as CSV"):
        write_jobs(jobs, tmp_path / "jobs.parquet")
    with pytest.raises(InputError, match="folder"):
        write_jobs(jobs, tmp_path / "none" / "jobs.csv")


def test_a_node_type_with_a_semicolon_cannot_be_written(tmp_path):
    job = ElasticJob("j", 0, 1, 1, 0, 0, 1, TabulatedCurve((0, 1), (0, 1)), node_types=("a;b",))
    with pytest.raises(InputError, match="node type"):
        write_jobs(JobSet([job]), tmp_path / "jobs.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("curve", "least"),
    [("0:0 64:20.8 128:41", 64), ("0:0 1:3 128:41", 1), ("amdahl(rate_1=1 serial=0 measured=32:1024)", 32)],
)
def test_a_job_without_min_nodes_begins_at_the_smallest_measured_count(tmp_path, curve, least):
    row = {"max_nodes": "128", "curve": curve}
    assert load_jobs(jobs_csv(tmp_path, row | {"min_nodes": None}))[0].min_nodes == least
    assert load_jobs(jobs_csv(tmp_path, row | {"min_nodes": ""}))[0].min_nodes == least
    assert load_jobs(jobs_csv(tmp_path, row | {"min_nodes": "2"}))[0].min_nodes == 2


def test_a_job_without_min_nodes_and_fewer_nodes_than_were_measured_is_told_where_the_bound_is_from(tmp_path):
    with pytest.raises(InputError, match="below 4, the smallest node count that the curve was measured at") as caught:
        load_jobs(jobs_csv(tmp_path, {"min_nodes": None, "max_nodes": "2", "curve": "0:0 4:8"}))
    assert (caught.value.column, caught.value.value) == ("max_nodes", "2")


def test_a_job_without_min_nodes_needs_a_curve_that_says_where_it_was_measured(tmp_path):
    with pytest.raises(InputError, match="'min_nodes' is empty here"):
        load_jobs(jobs_csv(tmp_path, {"min_nodes": None, "curve": "amdahl(rate_1=1 serial=0)"}))


def test_laws_that_were_measured_at_other_counts_are_told_apart(tmp_path):
    cells = [f"amdahl(rate_1=1 serial=0{measured})" for measured in ("", " measured=1:8", " measured=2:8")]
    rows = [{"name": f"j{i}", "curve": cell} for i, cell in enumerate(cells)]
    jobs = load_jobs(jobs_csv(tmp_path, *rows))
    assert [getattr(job.throughput, "measured", None) for job in jobs] == [None, (1, 8), (2, 8)]
    write_jobs(jobs, tmp_path / "again.csv")
    assert list(load_jobs(tmp_path / "again.csv")) == list(jobs)


RED = r"\u001b[31mred"


@pytest.mark.parametrize(
    ("text", "problem", "row"),
    [
        (TOML.replace('name = "', f'name = "{RED}', 1), "a job name is unusable", "[[job]] 1"),
        (TOML.replace('name = "', 'name = " ', 1), "a job name is unusable: it has spaces", "[[job]] 1"),
        (TOML.replace('name = "', f'model = "{RED}"\nname = "', 1), "a model name is unusable", "[[job]] 1"),
        (TOML.replace('name = "', f'node_types = ["{RED}"]\nname = "', 1), "a node type name is unusable", "[[job]] 1"),
        (
            TOML + f'\n[curves."{RED}"]\nnodes = [0, 2]\nvalues = [0, 3]\n',
            "a curve name is unusable",
            "[curves.\x1b[31mred]",
        ),
    ],
)
def test_names_that_a_terminal_obeys_are_refused(tmp_path, text, problem, row):
    file = text_file(tmp_path, "jobs.toml", text)
    with pytest.raises(InputError, match=problem) as caught:
        load_jobs(file)
    assert (caught.value.file, caught.value.row) == (str(file), row)
    assert "\x1b" not in str(caught.value)


def test_curves_of_a_table_have_names_too(tmp_path):
    curves = text_file(tmp_path, "curves.csv", "curve,nodes,value\n\x1b[31m,0,0\n\x1b[31m,2,3\n")
    with pytest.raises(InputError, match="a curve name is unusable") as caught:
        load_jobs(text_file(tmp_path, "jobs.toml", TOML), curves)
    assert caught.value.file == str(curves)


@pytest.mark.parametrize(
    "kind",
    [pa.string(), *(pytest.param(kind, marks=pytest.mark.thorough) for kind in (pa.binary(), pa.large_string()))],
)
def test_a_long_text_in_many_rows_of_a_small_file_takes_no_memory(tmp_path, kind):
    path = tmp_path / "jobs.parquet"
    index = pa.array(np.zeros(1000, np.int32))
    names = pa.DictionaryArray.from_arrays(index, pa.array(["n" * 1_000_000]).cast(kind))
    pq.write_table(pa.table({"name": names}), path, compression="zstd", store_schema=False)
    found = refusal_of("bfreplay.datasets:load_jobs", path)
    assert found.problem == "the texts in 'name' are far too long"
    assert found.file == str(path)


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        (TOML.replace("count = 3", "count = 100001"), "the count is too large", "count"),
        (TOML.replace("count = 3", "count = 1000000000000"), "the count is too large", "count"),
        (TOML.replace('"trial"', f'"{"x" * 251}"'), "the numbered names are too long", "name"),
    ],
)
def test_a_job_is_not_repeated_beyond_bounds(tmp_path, text, problem, column):
    file = text_file(tmp_path, "jobs.toml", text)
    with pytest.raises(InputError, match=problem) as caught:
        load_jobs(file)
    assert (caught.value.file, caught.value.row, caught.value.column) == (str(file), "[[job]] 1", column)
    assert len(load_jobs(text_file(tmp_path, "jobs.toml", TOML.replace('"trial"', f'"{"x" * 250}"')))) == 4


@pytest.mark.parametrize("field", ["name", "model"])
def test_a_name_that_a_spreadsheet_would_run_is_not_written(field, tmp_path):
    job = ElasticJob("a", 0, 1, 2, 1.0, 1.0, 1e6, TabulatedCurve([0, 1, 2], [0.0, 1.0, 2.0]), model="m")
    with pytest.raises(InputError, match="a spreadsheet would run it as a formula"):
        write_jobs(JobSet([replace(job, **{field: "=1+1"})]), tmp_path / "jobs.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_time_that_python_lacks_is_refused(tmp_path):
    columns = {
        "name": ["a"],
        "min_nodes": [1],
        "max_nodes": [1],
        "scale_up_cost_s": [1.0],
        "scale_down_cost_s": [1.0],
        "work_samples": [1.0],
        "curve": ["0:0 1:1"],
        "submit_time": pa.array([2**62], pa.timestamp("us", "UTC")),
    }
    pq.write_table(pa.table(columns), tmp_path / "jobs.parquet")
    with pytest.raises(InputError, match=r"jobs\.parquet"):
        load_jobs(tmp_path / "jobs.parquet")


CHANGES = {
    "scale_up_cost_s": CostByCount(((0, 20.0), (2, 29.5))),
    "scale_down_cost_s": 12.0,
    "start_cost_s": CostByCount(((0, 60.0), (2, 90.0))),
    "restart": "pause",
    "work_saved_every_s": 600.0,
    "saves": "on-notice",
    "counts": (1, 2),
}
AS_TEXT = {
    "scale_up_cost_s": "0:20 2:29.5",
    "start_cost_s": "2:90 0:60",
    "restart": "pause",
    "work_saved_every_s": "600",
    "saves": "on-notice",
    "counts": "1;2",
}


def changes_of(job):
    return {name: getattr(job, name) for name in CHANGES}


def written_again(jobs, folder):
    write_jobs(jobs, folder / "again.csv", overwrite=True)
    assert load_jobs(folder / "again.csv").jobs == jobs.jobs
    return (folder / "again.csv").read_text()


@pytest.mark.parametrize("counts", ["1;2", "1 2", " 1 ;  2", '"1, 2"', "1.0;2"])
def test_what_a_change_costs_is_read_from_csv_and_written_back_whole(tmp_path, counts):
    jobs = load_jobs(jobs_csv(tmp_path, AS_TEXT | {"counts": counts}, {"name": "plain"}))
    assert changes_of(jobs[0]) == CHANGES
    assert jobs[0].throughput.table(2).tolist() == [0.0, 10.5, 20.25]
    assert jobs[1].has_published_costs
    header, first, second = written_again(jobs, tmp_path).splitlines()
    assert header.endswith(",start_cost_s,restart,work_saved_every_s,saves,counts")
    assert first.endswith(",0:60 2:90,pause,600.0,on-notice,1;2")
    assert second.endswith(",,,,,")


TOML_CHANGES = """
start_cost_s = {2 = 90, 0 = 60}
restart = "pause"
work_saved_every_s = 600
saves = "on-notice"
counts = [1, 2]
"""


@pytest.mark.parametrize(
    "text",
    [
        TOML_CHANGES,
        TOML_CHANGES.replace("{2 = 90, 0 = 60}", '"0:60 2:90"'),
        TOML_CHANGES.replace("[1, 2]", '"1 2"').replace("600", "600.0"),
    ],
)
def test_what_a_change_costs_is_read_from_toml_and_written_back_whole(tmp_path, text):
    toml = TOML.replace("scale_up_cost_s = 0\nscale_down_cost_s = 0", "scale_up_cost_s = {0 = 20, 2 = 29.5}" + text)
    toml = toml.replace("max_nodes = 1\n", "max_nodes = 2\nscale_down_cost_s = 12\n").replace("[1, 2]]", "[2, 4]]")
    jobs = load_jobs(text_file(tmp_path, "jobs.toml", toml))
    assert changes_of(jobs[0]) == CHANGES
    written_again(jobs[:1], tmp_path)  # curves lose their names


def test_what_a_change_costs_is_read_from_parquet_and_written_back_whole(tmp_path):
    columns = {name: [cell, cell] for name, cell in GOOD.items() if name != "name"} | {
        "name": ["a", "b"],
        "min_nodes": [1, 1],
        "max_nodes": [2, 2],
        "scale_up_cost_s": ["0:20 2:29.5", "7"],
        "scale_down_cost_s": [12.0, 12.0],
        "start_cost_s": pa.array([[(0, 60.0), (2, 90.0)], None], pa.map_(pa.int32(), pa.float64())),
        "restart": ["pause", None],
        "work_saved_every_s": [600, None],
        "saves": ["on-notice", None],
        "counts": [[1, 2], []],
    }
    pq.write_table(pa.table(columns), tmp_path / "jobs.parquet")
    jobs = load_jobs(tmp_path / "jobs.parquet")
    assert changes_of(jobs[0]) == CHANGES
    assert jobs[1].has_published_costs
    assert (jobs[1].scale_up_cost_s, jobs[1].counts) == (7.0, ())
    written_again(jobs, tmp_path)


def test_columns_of_defaults_are_not_written(tmp_path):
    explicit = {"start_cost_s": "0", "restart": "charge", "work_saved_every_s": "0", "saves": "never", "counts": ""}
    header = written_again(load_jobs(jobs_csv(tmp_path, explicit)), tmp_path).splitlines()[0]
    assert not {*explicit}.intersection(header.split(","))
    only = written_again(load_jobs(jobs_csv(tmp_path, explicit | {"restart": "pause"})), tmp_path).splitlines()[0]
    assert {*explicit}.intersection(only.split(",")) == {"restart"}


def test_a_law_with_counts_is_written_as_the_law(tmp_path):
    law = "amdahl(rate_1=9.5 serial=0.25)"
    jobs = load_jobs(jobs_csv(tmp_path, {"curve": law, "max_nodes": "4", "counts": "1;4"}))
    assert jobs[0].throughput.table(4)[2] == 9.5
    assert "amdahl(rate_1=9.5, serial=0.25)" in written_again(jobs, tmp_path)


@pytest.mark.parametrize(
    ("change", "problem", "column", "value", "expected", "fix"),
    [
        ({"start_cost_s": "-1"}, "negative", "start_cost_s", -1.0, "seconds >= 0", "give the seconds of the pause"),
        ({"start_cost_s": '"1,5"'}, "not a number", "start_cost_s", "1,5", "a number", "1.5 if it is a decimal comma"),
        ({"scale_up_cost_s": "2:9"}, "begin at count 0", "scale_up_cost_s", None, "0:20 4:29", "give the seconds"),
        ({"scale_up_cost_s": "0:9 x:1"}, "no whole number", "scale_up_cost_s", "x", "0:20 4:29", "give the seconds"),
        ({"scale_down_cost_s": "0:9 4:"}, "be read", "scale_down_cost_s", "0:9 4:", "0:20 4:29", "give the seconds"),
        ({"restart": "Pause"}, "restart is unknown", "restart", "Pause", "charge, pause", "did you mean 'pause'"),
        ({"saves": "always", "work_saved_every_s": "9"}, "unknown", "saves", "always", "never, on-notice", "write one"),
        ({"saves": "on-notice"}, "nothing is ever at risk", "saves", "on-notice", "never", "give work_saved_every_s"),
        ({"work_saved_every_s": "-1"}, "negative", "work_saved_every_s", -1.0, "seconds: 0, or", "0 if all work"),
        ({"work_saved_every_s": "1h"}, "not a number", "work_saved_every_s", "1h", "a number", "in digits"),
        ({"counts": "1;1.5;2"}, "no whole numbers", "counts", "1;1.5;2", "whole numbers separated", "1;2;4;8"),
        ({"counts": "1;two"}, "not a number", "counts", "two", "a number", "in digits"),
        ({"counts": "2;1"}, "out of order", "counts", (2, 1), "from min_nodes 1 to max_nodes 2", "1;2;4;8"),
        ({"counts": "1"}, "not within its bounds", "counts", (1,), "from min_nodes 1 to max_nodes 2", "1;2;4;8"),
    ],
)
def test_a_faulty_cost_names_file_row_column_value_and_the_way_out(
    tmp_path, change, problem, column, value, expected, fix
):
    file = jobs_csv(tmp_path, {}, {"name": "j2"} | change)
    with pytest.raises(InputError, match=problem) as caught:
        load_jobs(file)
    error = caught.value
    assert (error.file, error.row, error.column) == (str(file), 2, column)
    assert value is None or error.value == value
    assert expected in error.expected
    assert fix in error.fix


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("restart = 1", "the restart is not text", "restart"),
        ("saves = true", "saves is not text", "saves"),
        ("counts = 2", "no whole numbers", "counts"),
        ("counts = [1, true]", "not a number", "counts"),
        ("start_cost_s = true", "not a number", "start_cost_s"),
        ("start_cost_s = {0 = true}", "no number", "start_cost_s"),
        ("start_cost_s = {0 = 1, many = 2}", "no whole number", "start_cost_s"),
        ("start_cost_s = []", "do not begin at count 0", "start_cost_s"),
        ("start_cost_s = [1, 2]", "cannot be read", "start_cost_s"),
    ],
)
def test_a_faulty_cost_in_toml_names_the_job(tmp_path, text, problem, column):
    file = text_file(tmp_path, "jobs.toml", TOML + text + "\n")
    with pytest.raises(InputError, match=problem) as caught:
        load_jobs(file)
    assert (caught.value.file, caught.value.row, caught.value.column) == (str(file), "[[job]] 2", column)
