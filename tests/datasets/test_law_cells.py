"""Laws and measured curves in files: read, refused, and written back exactly."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets import load_jobs, write_jobs
from bfreplay.datasets.jobs.curve_points import law_cells, law_of, law_text, write_curves
from bfreplay.errors import InputError, OutputExistsError
from bfreplay.scalability import Amdahl, CommunicationWeak, MeasuredLaw, TabulatedCurve, UniversalScalability
from bfreplay.workload import ElasticJob, JobSet
from tests.scalability.test_laws import some_law

HEAD = "name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve\n"
JOB = (
    '[[job]]\nname = "a"\nmin_nodes = 1\nmax_nodes = 8\nscale_up_cost_s = 1\nscale_down_cost_s = 1\n'
    "work_samples = 100\n"
)


def jobs_csv(folder: Path, cell: str) -> Path:
    file = folder / "jobs.csv"
    file.write_text(f"{HEAD}a,1,8,1,1,100,{cell}\n")
    return file


def curves_toml(folder: Path, text: str) -> Path:
    file = folder / "curves.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    "cell",
    [
        '"amdahl(rate_1=2831, serial=0.02)"',
        "amdahl(rate_1=2831 serial=0.02)",
        '" amdahl ( serial = 0.02 , rate_1 = 2.831e3 ) "',
    ],
)
def test_a_law_stands_in_a_cell(tmp_path, cell):
    assert load_jobs(jobs_csv(tmp_path, cell))[0].throughput == Amdahl(2831.0, 0.02)


def test_a_law_stands_in_toml_as_text_as_a_table_and_by_name(tmp_path):
    file = tmp_path / "jobs.toml"
    named = '[curves.mine]\nlaw = "usl"\nrate_1 = 5\nserial = 0.1\nkappa = 0.001\n'
    for curve in (
        '"usl(rate_1=5, serial=0.1, kappa=0.001)"',
        '{law = "usl", rate_1 = 5, serial = 0.1, kappa = 1e-3}',
        '"mine"',
    ):
        file.write_text(f"{JOB}curve = {curve}\nobjective_curve = '0:0 8:1'\n{named}")
        (job,) = load_jobs(file)
        assert job.throughput == UniversalScalability(5.0, 0.1, 0.001)
        assert job.objective == TabulatedCurve((0, 8), (0.0, 1.0))


def test_equal_laws_are_one_object(tmp_path):
    file = tmp_path / "jobs.csv"
    file.write_text(HEAD + "".join(f"{name},1,8,1,1,100,amdahl(rate_1=7 serial=0.1)\n" for name in "abc"))
    assert len({id(job.throughput) for job in load_jobs(file)}) == 1


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("amdal(rate_1=1 serial=0)", "unknown scalability law 'amdal'[\\s\\S]*did you mean 'amdahl'"),
        ("amdahl(rate_1=1 seriall=0)", "no parameter 'seriall'[\\s\\S]*did you mean 'serial'"),
        ("amdahl(rate_1=1)", "lacks its parameter 'serial'"),
        ("amdahl(rate_1=1 serial=2)", "serial is out of range"),
        ("amdahl(rate_1=1 serial=nan)", "serial is out of range"),
        ("amdahl(rate_1=1 serial=x)", "this is not a number"),
        ("amdahl(rate_1=1 serial=0.1 serial=0.2)", "'serial' of the law amdahl is given twice"),
        ("amdahl(1 0.1)", "no name or no value"),
        ("amdahl(rate_1=1 serial=0", "unreadable"),
    ],
)
def test_a_wrong_law_is_refused_with_file_row_and_column(tmp_path, cell, says):
    with pytest.raises(InputError, match=says) as caught:
        load_jobs(jobs_csv(tmp_path, cell))
    assert (caught.value.row, caught.value.column) == (1, "curve")
    assert caught.value.file.endswith("jobs.csv")


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ('law = "amdal"\nrate_1 = 1\nserial = 0', "did you mean 'amdahl'", "law"),
        ('law = "amdahl"\nrate_1 = 1\nserail = 0', "did you mean 'serial'", "serail"),
        ('law = "amdahl"\nrate_1 = 1', "lacks its parameter 'serial'", "serial"),
        ('law = "amdahl"\nrate_1 = 1\nserial = -1', "serial is out of range", "serial"),
        ('law = "amdahl"\nrate_1 = 1\nserial = true', "not a number", "serial"),
        ("law = 3\nrate_1 = 1", "name of the law is not text", "law"),
        ('lw = "amdahl"\nrate_1 = 1\nserial = 0', "neither exactly the keys nodes and values nor a law", None),
        ("nodes = [0, 2, 2]\nvalues = [0, 1, 2]", "two points at 2 nodes", "nodes"),
    ],
)
def test_a_wrong_curve_in_toml_is_refused_with_its_table(tmp_path, text, says, column):
    curves = curves_toml(tmp_path, f"[curves.mine]\n{text}\n")
    with pytest.raises(InputError, match=says) as caught:
        load_jobs(jobs_csv(tmp_path, "mine"), curves)
    assert (caught.value.row, caught.value.column) == ("[curves.mine]", column)


@given(some_law())
def test_the_text_of_a_law_gives_it_back_exactly(law):
    assert law_of(law_text(law)) == law


@given(some_law(), st.sampled_from([None, Amdahl(3.0, 0.5), TabulatedCurve((0, 9), (0.0, 0.1))]))
def test_jobs_with_laws_survive_csv_exactly(tmp_path_factory, law, objective):
    file = tmp_path_factory.mktemp("jobs") / "jobs.csv"
    jobs = JobSet([ElasticJob("a", 0, 1, 9, 0, 0, 1, law, objective)], submit_is_relative=True)
    write_jobs(jobs, file)
    (job,) = load_jobs(file)
    assert (job.throughput, job.objective) == (law, objective)


def test_a_law_of_another_package_is_written_by_its_place_and_read_back(tmp_path, monkeypatch):
    (tmp_path / "my_laws.py").write_text(
        "from tests.scalability.test_laws import Logarithm\n"
        "class Mine(Logarithm):\n    __slots__ = ()\n    law = 'mine'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    law = law_of("my_laws:Mine(rate_1=4, slope=0.5)", allow_code=True)
    assert law_text(law) == "my_laws:Mine(rate_1=4.0, slope=0.5)"
    assert load_jobs(jobs_csv(tmp_path, f'"{law_text(law)}"'), allow_code=True)[0].throughput == law
    del sys.modules["my_laws"]


def test_a_curve_that_is_neither_points_nor_law_is_written_at_every_count(tmp_path):
    class Steps:
        last_nodes = 3

        def table(self, max_nodes):
            return TabulatedCurve((0, 1, 3), (0.0, 5.0, 6.0)).table(max_nodes)

    write_jobs(JobSet([ElasticJob("a", 0, 1, 3, 0, 0, 1, Steps())], True), tmp_path / "jobs.csv")
    assert load_jobs(tmp_path / "jobs.csv")[0].throughput == TabulatedCurve((0, 1, 2, 3), (0.0, 5.0, 5.5, 6.0))


def test_written_curves_are_read_back_exactly_whatever_their_names(tmp_path):
    curves = {
        "resnet-50": CommunicationWeak(1234.5678901234567, 1e-5, 1 / 3),
        'bert "large" é.': TabulatedCurve((0, 1, 4), (0.0, 0.1, 0.30000000000000004)),
    }
    write_curves(curves, tmp_path / "curves.toml", {"resnet-50": ["one\ntwo", "three"]})
    text = (tmp_path / "curves.toml").read_text()
    assert text.startswith("# one two\n# three\n[curves.resnet-50]\n")
    assert set(tomllib.loads(text)["curves"]) == set(curves)
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(HEAD + 'a,1,4,1,1,1,resnet-50\nb,1,4,1,1,1,"bert ""large"" é."\n')
    first, second = load_jobs(jobs, tmp_path / "curves.toml")
    assert first.throughput == curves["resnet-50"]
    assert (second.throughput.nodes, second.throughput.values) == ((0, 1, 4), (0.0, 0.1, 0.30000000000000004))
    with pytest.raises(OutputExistsError):
        write_curves(curves, tmp_path / "curves.toml")
    write_curves({"a": Amdahl(1.0, 0.0)}, tmp_path / "curves.toml", overwrite=True)
    with pytest.raises(InputError, match=r"ending in \.toml"):
        write_curves(curves, tmp_path / "curves.csv")


@pytest.mark.parametrize(
    "cell",
    [
        "amdahl(rate_1=10.0, serial=0.5, measured=64:1024)",
        {"law": "amdahl", "rate_1": 10, "serial": 0.5, "measured": [64, 1024]},
    ],
)
def test_a_law_may_say_at_which_counts_it_was_measured(cell):
    curve = law_of(cell)
    assert curve == MeasuredLaw(Amdahl(10.0, 0.5), (64, 1024))
    assert law_text(curve) == "amdahl(rate_1=10.0, serial=0.5, measured=64:1024)"
    assert law_of(law_cells(curve)) == curve
    assert curve.table(2).tolist() == Amdahl(10.0, 0.5).table(2).tolist()


@pytest.mark.parametrize("counts", ["64", "64:1024:2", "a:b", "1.5:2", "9:3", "0:3", "8:1000001"])
def test_measured_counts_that_are_no_range_are_refused(counts):
    with pytest.raises(InputError) as caught:
        law_of(f"amdahl(rate_1=10, serial=0.5, measured={counts})")
    assert caught.value.column == "measured"
