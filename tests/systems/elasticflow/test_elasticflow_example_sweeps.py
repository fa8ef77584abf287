"""ElasticFlow's specs in examples/ are sweeps that can start."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bfreplay.experiments.sweep.spec import read_spec

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.often("fig8a-12-n_jobs1", "fig10-12-n_jobs4")
@pytest.mark.parametrize(
    ("name", "n_points", "n_jobs"),
    [
        ("fig6", 24, {25, 195}),
        ("fig8a", 12, {195}),
        pytest.param("fig8b", 24, {260, 876, 1595}, marks=pytest.mark.thorough),
        ("fig9", 24, {1000}),
        ("fig10", 12, {100}),
        ("fig11", 40, {200}),
    ],
)
def test_a_spec_of_the_examples_can_start(shared, tmp_path, name, n_points, n_jobs):
    spec_file = tmp_path / f"elasticflow-{name}.toml"
    shutil.copy(EXAMPLES / spec_file.name, spec_file)
    data = shared / "data/elasticflow"
    for path in (*data.glob("throughputs_*"), *(data / "traces").glob("*.csv")):
        (tmp_path / path.name).symlink_to(path)
    points = read_spec(spec_file).points
    assert len(points) == n_points
    seen = set()
    for point in {(point.options.policy, str(point.options.jobs)): point for point in points}.values():
        run = point.options.prepare()
        run.policy.close()
        seen.add(len(run.jobs))
    assert seen == n_jobs
