import pickle

import pandas as pd
import pytest

from bfreplay.datasets import load_jobs, read_published_jobs, write_jobs
from bfreplay.errors import InputError
from bfreplay.scalability import TabulatedCurve

NAMES = ["J0-AlexNet", "J1"]


def tables(folder, bounds=None, curves=None, drop=(), names=NAMES, curve_names=NAMES):
    """Two tiny pickles: bounds and curves of two jobs; ``None`` keeps a column as it is."""
    times = pd.to_datetime(["2021-02-10 00:00:01", "2021-02-10 00:00:02"])
    first = {"Tcup": [18.0, 18.0], "Tcdw": [12.0, 12.0], "Jmin": [1.0, 2.0], "Jmax": [4.0, 4.0]}
    first |= {"Pmax": [1e6, 1e6], "Tsub": times} | (bounds or {})
    points, other = [0, 1, 2, 4], [0, 1.0, 1.9, 3.5]
    second = {
        "Ns": [points] * 2,
        "Ps": [[0, 10.0, 19.0, 35.0]] * 2,
        "Os": [[0, 10.0, 19.0, 35.0], other],
        "Tsub": times,
    }
    second |= curves or {}
    files = []
    for name, columns, index in (("Jbnd", first, names), ("JNPs", second, curve_names)):
        frame = pd.DataFrame({key: cells for key, cells in columns.items() if key not in drop}, index=index)
        files.append(folder / f"{name}.pkl")
        files[-1].write_bytes(pickle.dumps(frame))
    return files


def test_two_tables_become_jobs_with_shared_curves(tmp_path):
    bounds, curves = tables(tmp_path)
    first, second = jobs = load_jobs(bounds, curves)
    assert (first.name, first.model, first.submit_us) == ("J0-AlexNet", "AlexNet", 1_612_915_201_000_000)
    assert (first.min_nodes, first.max_nodes, first.scale_up_cost_s, first.scale_down_cost_s) == (1, 4, 18.0, 12.0)
    assert first.work_samples == 1e6
    assert first.objective is None
    assert first.throughput.nodes == (0, 1, 2, 4)
    assert (second.model, second.min_nodes) == (None, 2)
    assert second.throughput is first.throughput
    assert second.objective == TabulatedCurve((0, 1, 2, 4), (0.0, 1.0, 1.9, 3.5))
    assert [name for name, _ in jobs.sources] == ["Jbnd.pkl", "JNPs.pkl"]
    assert not jobs.submit_is_relative


@pytest.mark.parametrize(
    ("change", "file", "problem", "row", "column"),
    [
        ({"drop": ["Tcup", "Jmax"]}, "Jbnd.pkl", "lacks columns: Tcup, Jmax", None, "Tcup"),
        ({"drop": ["Os"]}, "JNPs.pkl", "lacks columns: Os", None, "Os"),
        ({"curve_names": ["J0-AlexNet", "J2"]}, "JNPs.pkl", "names differ", 2, "index"),
        (
            {"curves": {"Tsub": pd.to_datetime(["2021-02-10 00:00:01"] * 2)}},
            "JNPs.pkl",
            "another submit time",
            2,
            "Tsub",
        ),
        ({"bounds": {"Jmin": [1.0, 5.0]}}, "Jbnd.pkl", "above max_nodes", 2, "min_nodes"),
        ({"bounds": {"Jmin": [1.0, 1.5]}}, "Jbnd.pkl", "not a whole number", 2, "Jmin"),
        ({"bounds": {"Pmax": ["many", 1.0]}}, "Jbnd.pkl", "no numbers", None, "Pmax"),
        ({"bounds": {"Tsub": [1, 2]}}, "Jbnd.pkl", "holds no times", None, "Tsub"),
        ({"curves": {"Ps": [[0, 10.0, 19.0, 35.0], [5, 10.0, 19.0, 35.0]]}}, "JNPs.pkl", "start at zero", 2, "Ps"),
        ({"curves": {"Os": [[0, 1.0, 2.0, 3.0], "none"]}}, "JNPs.pkl", "holds no list", 2, "Os"),
        ({"names": ["J0", "J0"], "curve_names": ["J0", "J0"]}, "Jbnd.pkl", "two jobs", None, "name"),
    ],
)
def test_faulty_tables_name_file_row_and_column(tmp_path, change, file, problem, row, column):
    with pytest.raises(InputError, match=problem) as caught:
        read_published_jobs(*tables(tmp_path, **change))
    assert caught.value.file == str(tmp_path / file)
    assert (caught.value.row, caught.value.column) == (row, column)


def test_swapped_tables_are_recognised(tmp_path):
    bounds, curves = tables(tmp_path)
    with pytest.raises(InputError, match="swapped"):
        load_jobs(curves, bounds)


def test_a_published_set_needs_its_curves(tmp_path):
    with pytest.raises(InputError, match="second file"):
        load_jobs(tables(tmp_path)[0])


@pytest.mark.parametrize(
    ("name", "n_jobs", "n_curves", "model", "has_objective"),
    [
        ("ImageNet-imgps-{}-1001J", 1001, 7, "AlexNet", False),
        ("ImageNet-spdup-{}-1001J", 1001, 7, "AlexNet", True),
        ("hps-shufflenet-{}-1000J", 1000, 1, None, False),
        ("hps-shufflenet-{}-10J", 10, 1, None, False),
    ],
)
def test_the_published_sets_are_read_and_survive_csv(shared, tmp_path, name, n_jobs, n_curves, model, has_objective):
    folder = shared / "data/bftrainer"
    jobs = load_jobs(folder / f"{name.format('Jbnd')}.pkl", folder / f"{name.format('JNPs')}.pkl")
    assert len(jobs) == n_jobs
    assert len({id(job.throughput) for job in jobs}) == n_curves
    assert (jobs[0].model, jobs[0].objective is not None) == (model, has_objective)
    write_jobs(jobs, tmp_path / "jobs.csv")
    assert load_jobs(tmp_path / "jobs.csv").jobs == jobs.jobs
