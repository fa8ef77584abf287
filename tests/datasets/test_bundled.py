"""The bundled sample is what its generator makes, small, and readable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.synthetic_sample import make_sample_events, make_sample_jobs
from bfreplay.datasets import bundled
from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.jobs.load import load_jobs
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.load import load_events


def rows_of(events: NodeEvents) -> dict[str, np.ndarray]:
    batches = list(events.batches())
    return {column: np.concatenate([getattr(b, column) for b in batches]) for column in ("time_us", "node", "state")}


def test_the_bundled_log_is_the_one_its_generator_makes() -> None:
    stored, made = load_events(bundled.sample_events_path()), make_sample_events()
    assert stored.nodes == made.nodes
    assert (stored.window_start_us, stored.window_end_us) == (made.window_start_us, made.window_end_us)
    stored_rows, made_rows = rows_of(stored), rows_of(made)
    for column in made_rows:
        np.testing.assert_array_equal(stored_rows[column], made_rows[column], err_msg=column)


def test_the_bundled_jobs_are_those_their_generator_makes() -> None:
    stored, made = load_jobs(bundled.sample_jobs_path()), make_sample_jobs()
    assert stored.submit_is_relative
    assert len(made) == 40
    assert list(stored) == list(made)


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundled")
    program = Path(__file__).parents[2] / "benchmarks" / "synthetic_sample.py"
    subprocess.run([sys.executable, program, folder], check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_the_command_writes_both_files_into_a_folder(regenerated: Path) -> None:
    assert sorted(path.name for path in regenerated.iterdir()) == [
        bundled.sample_events_path().name,
        bundled.sample_jobs_path().name,
    ]


@pytest.mark.slow
def test_the_command_gives_the_same_jobs_file_to_the_byte(regenerated: Path) -> None:
    stored = bundled.sample_jobs_path()
    assert (regenerated / stored.name).read_bytes() == stored.read_bytes()


def test_the_command_gives_the_same_events(regenerated: Path) -> None:
    # Parquet bytes may differ between releases of pyarrow; the rows may not.
    stored = bundled.sample_events_path()
    one, other = rows_of(load_events(stored)), rows_of(load_events(regenerated / stored.name))
    for column in one:
        np.testing.assert_array_equal(one[column], other[column], err_msg=column)


def test_the_bundled_files_are_small() -> None:
    sizes = [bundled.sample_events_path().stat().st_size, bundled.sample_jobs_path().stat().st_size]
    assert sum(sizes) <= 400_000


def test_the_bundled_log_has_256_nodes_four_days_and_enough_idle_nodes_to_replay() -> None:
    idleness = characterise(load_events(bundled.sample_events_path()))
    assert idleness.n_nodes == 256
    assert idleness.duration_s == 4 * 86_400
    assert 0.05 <= idleness.idle_share <= 0.12
    assert idleness.n_pool_events >= 1_000
