"""The sweeps of examples/: their specs can be read, once the published files that they name are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bfreplay.experiments.sweep.spec import read_spec

SPECS = [
    file
    for file in sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.toml"))
    if "[campaign]" not in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_an_example_is_a_sweep(spec):
    read = read_spec(spec)
    assert len(read.points) > 1
    assert all(point.options.policy for point in read.points)
