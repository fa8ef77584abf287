"""What a sweep is asked to do, and every way of asking wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import OPTION_NAMES
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.placeholders import RESULT_COLUMNS
from bfreplay.experiments.sweep.spec import read_spec, spec_of, spec_of_options

RUN = {"events": "log.parquet", "jobs": "jobs.toml"}


def test_every_combination_is_a_point_and_the_last_option_changes_first():
    spec = spec_of({"run": RUN, "vary": {"t-fwd": [60, 120.0], "max-parallel": [5, 10]}})
    assert spec.columns == ("t_fwd", "max_parallel")
    assert [tuple(point.cells.values()) for point in spec.points] == [(60, 5), (60, 10), (120, 5), (120, 10)]
    assert [point.options.max_parallel for point in spec.points] == [5, 10, 5, 10]


def test_numbers_with_even_gaps_are_written_by_their_ends_and_how_many_they_are():
    run = {**RUN, "jobs": "gavel(n=9, jobs_per_hour={rate})", "curves": "sample"}
    vary = {"rate": {"from": 0.4, "to": 1.2, "values": 5}, "max-parallel": {"from": 5, "to": 15, "values": 3}}
    spec = spec_of({"run": run, "vary": vary})
    assert [point.cells["rate"] for point in spec.points[::3]] == [0.4, 0.6, 0.8, 1.0, 1.2]
    assert [point.cells["max_parallel"] for point in spec.points[:3]] == [5, 10, 15]
    assert spec.points[3].options.jobs == "gavel(n=9, jobs_per_hour=0.6)"


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"from": 1, "to": 2, "values": 1}, "values of max-parallel"),
        ({"from": "1", "to": 2, "values": 2}, "from of max-parallel"),
        ({"from": 1, "to": 2, "values": 3}, "max-parallel"),  # 1.5 jobs
    ],
)
def test_even_gaps_that_cannot_be_are_refused(given, column):
    with pytest.raises(InputError) as error:
        spec_of({"run": RUN, "vary": {"max-parallel": given}})
    assert error.value.column == column


def test_even_gaps_of_too_many_values_are_refused_before_any_is_made():
    with pytest.raises(InputError, match="the sweep is 20,000,000,000 runs"):
        spec_of({"run": RUN, "vary": {"seed": {"from": 0, "to": 9, "values": 10_000_000_000}, "max-parallel": [1, 2]}})


def test_a_label_sets_several_options_together():
    workload = {"small": {"jobs": "s.csv"}, "large": {"jobs": "l.pkl", "curves": "c.pkl", "max-parallel": 70}}
    spec = spec_of({"run": {"events": "log.parquet"}, "vary": {"workload": workload, "seed": [1, 2]}})
    assert [tuple(point.cells.values()) for point in spec.points] == [
        ("small", 1),
        ("small", 2),
        ("large", 1),
        ("large", 2),
    ]
    assert [(point.options.curves, point.options.max_parallel) for point in spec.points[1:3]] == [
        (None, None),
        ("c.pkl", 70),
    ]


def test_single_runs_come_after_the_combinations_and_may_use_labels():
    spec = spec_of(
        {
            "run": {**RUN, "t-fwd": 300},
            "vary": {"t-fwd": [60], "workload": {"many": {"max-parallel": 70}}},
            "runs": [{"policy": "equal-share"}, {"workload": "many", "seed": 3}],
        }
    )
    assert spec.columns == ("t_fwd", "workload", "policy", "seed")
    assert [tuple(point.cells.values()) for point in spec.points] == [
        (60, "many", "bftrainer", 0),
        (300, None, "equal-share", 0),
        (300, "many", "bftrainer", 3),
    ]
    assert [point.options.max_parallel for point in spec.points] == [70, None, 70]


def test_single_runs_alone_are_a_sweep_and_so_is_one_run():
    assert len(spec_of({"run": RUN, "runs": [{"seed": 1}, {"seed": 2}]}).points) == 2
    assert spec_of({"run": RUN}).columns == ()
    assert len(spec_of({"run": RUN}).points) == 1


def test_paths_count_from_the_folder_of_the_spec_and_rows_have_them_as_written(tmp_path):
    (tmp_path / "sweep.toml").write_text(
        '[run]\njobs = "sub/jobs.csv"\n[vary]\nevents = ["a.parquet", "/b.parquet", "sample"]\n'
    )
    spec = read_spec(tmp_path / "sweep.toml")
    assert [point.options.events for point in spec.points] == [str(tmp_path / "a.parquet"), "/b.parquet", "sample"]
    assert [point.cells["events"] for point in spec.points] == ["a.parquet", "/b.parquet", "sample"]
    assert {point.options.jobs for point in spec.points} == {str(tmp_path / "sub" / "jobs.csv")}


def test_a_window_may_be_written_with_times_of_toml(tmp_path):
    (tmp_path / "sweep.toml").write_text(
        '[run]\nevents = "sample"\njobs = "sample"\n'
        '[vary]\nwindow = [[2024-07-01, 2024-07-02T06:00:00Z], ["2024-07-01", "1719900000"], '
        "[1719813600, 1719900000]]\n"
    )
    spec = read_spec(tmp_path / "sweep.toml")
    assert [point.cells["window"] for point in spec.points] == [
        "2024-07-01/2024-07-02T06:00:00+00:00",
        "2024-07-01/1719900000",
        "1719813600/1719900000",
    ]
    assert spec.document["vary"]["window"][0] == ["2024-07-01", "2024-07-02T06:00:00+00:00"]


def test_options_given_in_python_are_told_apart_by_what_differs():
    runs = [
        RunOptions(events="a.csv", jobs="j.csv", t_fwd=t_fwd, policy=policy)
        for t_fwd in (60, "auto")
        for policy in ("bftrainer", "equal-share")
    ]
    spec = spec_of_options(runs)
    assert spec.columns == ("policy", "t_fwd")
    assert [tuple(point.cells.values()) for point in spec.points][:3] == [
        ("bftrainer", 60),
        ("equal-share", 60),
        ("bftrainer", "auto"),
    ]
    for wrong in ([], ["sample"]):
        with pytest.raises(InputError):
            spec_of_options(wrong)


def test_no_option_is_called_like_a_column_of_the_results():
    assert not {name.replace("-", "_") for name in OPTION_NAMES} & RESULT_COLUMNS


@pytest.mark.parametrize(
    ("text", "says", "where"),
    [
        ("[run]\njob = 'x'\n", "did you mean 'jobs'?", "[run]"),
        ("[run]\n[vry]\n", "did you mean 'vary'?", "vry"),
        ("[run]\nevents = 'sample'\n", "the option 'jobs' is missing", "[run]"),
        ("[run]\nt-fwd = '60'\n", "neither a number nor 'auto'", "[run]"),
        ("[run]\nmax-parallel = 0\n", "max-parallel is below 1", "[run]"),
        ("[run]\nwindow = '2024-07-01'\n", "no pair of times", "[run]"),
        ("[run]\nsemantics = 'publishd'\n", "did you mean 'published'?", "[run]"),
        ("[run]\nefficiency = 1\n", "neither true nor false", "[run]"),
        ("[vary]\nt-fwd = 60\n", "is not a list", "[vary] t-fwd"),
        ("[vary]\nt-fwd = []\n", "has no values", "[vary] t-fwd"),
        ("[vary]\nt-fwd = [60, -1]\n", "not a positive number", "[vary] t-fwd"),
        ("[vary]\nmax_paralel = [1]\n", "did you mean 'max-parallel'?", "[vary]"),
        ("[vary.jobs]\na = { jobs = 'sample' }\n", "it is an option", "[vary.jobs]"),
        ("[vary.samples]\na = { jobs = 'sample' }\n", "a column of the results", "[vary.samples]"),
        ("[vary.set]\na = { job = 'sample' }\n", "did you mean 'jobs'?", "[vary.set] a"),
        ("[vary.set]\na = 5\n", "is not a table", "[vary.set] a"),
        ("[vary.set]\n", "has no labels", "[vary.set]"),
        ("[vary]\nseed = [1]\n[vary.set]\na = { seed = 1 }\n", "set by seed and by set", "[vary]"),
        ("[vary.set]\nbig = { seed = 1 }\n[[runs]]\nset = 'bgi'\n", "did you mean 'big'?", "[[runs]] 1"),
        ("[[runs]]\nsed = 1\n", "did you mean 'seed'?", "[[runs]] 1"),
        ("[runs]\nseed = 1\n", "runs is no array of tables", "[[runs]]"),
        ("run = 5\n", "[run] is no table", "[run]"),
        ("[vary]\nseed = [1, 2\n", "cannot be read as TOML", "sweep.toml"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path, text, says, where):
    (tmp_path / "sweep.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_spec(tmp_path / "sweep.toml")
    assert says in str(caught.value)
    assert where in str(caught.value)
    assert str(tmp_path / "sweep.toml") in str(caught.value)


def test_a_slip_that_asks_for_millions_of_runs_is_refused():
    numbers = list(range(1, 1001))
    with pytest.raises(InputError, match="1,000,000 runs"):
        spec_of({"run": RUN, "vary": {"seed": numbers, "max-parallel": numbers}})


def test_a_spec_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="no such file"):
        read_spec(Path("nowhere.toml"))


def test_a_sweep_of_too_many_runs_is_refused_before_any_is_looked_at(monkeypatch):
    run = {"events": "sample", "jobs": "sample"}
    monkeypatch.setattr("bfreplay.experiments.sweep.spec.RunOptions.from_mapping", lambda *_, **__: pytest.fail("read"))
    for document, value in (
        ({"vary": {"t-fwd": list(range(100_001))}}, "100001"),
        ({"vary": {"t-fwd": list(range(1_000)), "max-parallel": list(range(1_000))}}, "1000 x 1000"),
        ({"vary": {"t-fwd": list(range(1_000)), "w": {str(k): {} for k in range(1_000)}}}, "1000 x 1000"),
        ({"runs": [{}] * 100_001}, 100_001),
        ({"vary": {"t-fwd": list(range(50_000))}, "runs": [{}] * 50_001}, "50000"),
    ):
        with pytest.raises(InputError, match=r"the sweep is 1[\d,]{6,} runs") as caught:
            spec_of({"run": run, **document})
        assert (caught.value.value, caught.value.expected) == (value, "at most 100,000")


def test_a_label_that_a_terminal_obeys_is_refused():
    run = {"events": "sample", "jobs": "sample"}
    with pytest.raises(InputError, match="a label name is unusable"):
        spec_of({"run": run, "vary": {"w": {"\x1b[31m": {"t-fwd": 10}}}})


def test_a_spec_may_ask_for_its_picture():
    spec = spec_of({"run": RUN, "vary": {"t-fwd": [60, 120]}, "picture": {"x": "t-fwd", "y": "samples", "by": "seed"}})
    assert spec.picture == ("t_fwd", ("samples",), ("seed",))
    assert spec_of({"run": RUN, "vary": {"seed": [1]}}).picture is None


@pytest.mark.parametrize(
    ("picture", "column"),
    [
        ({"x": "t-fwd", "y": ["sample"]}, "y"),
        ({"x": "t-fwd"}, "y"),
        ({"y": ["samples"]}, "x"),
        ({"x": "t-fwd", "y": 3}, "y"),
        ({"x": "t-fwd", "y": ["samples"], "colour": "red"}, "colour"),
        ("timeline", None),
    ],
)
def test_a_picture_that_makes_no_sense_is_refused(picture, column):
    with pytest.raises(InputError) as error:
        spec_of({"run": RUN, "vary": {"t-fwd": [60, 120]}, "picture": picture})
    assert error.value.column == column
