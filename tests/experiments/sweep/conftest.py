"""What the tests of sweeps share."""

from __future__ import annotations

import pytest

from tests.experiments.sweep.small_sweeps import ALL_ONCE, n_begun, sweep_here, table_of, write_files


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory) -> bytes:
    """The table of the four runs, by one process and without a mishap."""
    folder = write_files(tmp_path_factory.mktemp("unbroken"))
    done = sweep_here(folder, "out", "--processes", "1", "--quiet")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    assert "4 runs, none failed." in done.stdout
    assert n_begun(folder) == ALL_ONCE
    return table_of(folder, "out")
