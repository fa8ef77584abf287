"""Every registered back end, each in a worker of its own."""

import pytest

from bfreplay.milp.backends import BACKENDS
from bfreplay.milp.isolation import IsolatedBackend
from tests.milp.backends.present import present


def pytest_generate_tests(metafunc):
    if "backend_name" in metafunc.fixturenames:
        metafunc.parametrize("backend_name", list(BACKENDS.built_in), scope="module")


@pytest.fixture(scope="module")
def backend(backend_name):
    """The back end itself, for what it says of itself."""
    return present(backend_name)


@pytest.fixture(scope="module")
def isolated(backend, backend_name):
    """It in a worker: two of them may not share a process, and a crash fails one test, not the run."""
    with IsolatedBackend(backend_name, grace_s=30.0) as worker:
        yield worker
