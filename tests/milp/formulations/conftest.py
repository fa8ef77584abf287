"""CBC for the tests of formulations."""

import pytest

from bfreplay.milp.isolation import IsolatedBackend


@pytest.fixture(scope="module")
def cbc():
    """CBC in a worker: a crash fails one test, not the run."""
    with IsolatedBackend("cbc") as isolated:
        yield isolated
