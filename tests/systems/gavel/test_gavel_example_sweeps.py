"""Gavel's specs in examples/ are sweeps that can start."""

from __future__ import annotations

from pathlib import Path

import pytest

from bfreplay.experiments.sweep.spec import read_spec

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.parametrize(("name", "n_points"), [("gavel-rates", 126), ("gavel-rounds", 36)])
def test_a_spec_of_the_examples_can_start(name, n_points):
    spec = read_spec(EXAMPLES / f"{name}.toml")
    assert len(spec.points) == n_points
    for point in {point.options.policy: point for point in spec.points}.values():
        run = point.options.prepare()
        run.policy.close()
        assert run.settings.measured is not None
        assert len([job for job in run.jobs if job.submit_us == 0]) > 5
