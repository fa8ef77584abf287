"""Fixtures of all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the published data and golden records; tests that need it skip, by name, where it is absent.

    In CI, which has it, BFREPLAY_REQUIRE_SHARED makes its absence an error.
    """
    folder = Path(os.environ.get("BFREPLAY_SHARED") or REPOSITORY.parent / "shared")
    if not folder.is_dir():
        message = f"the shared data are not at {folder} (set BFREPLAY_SHARED to where they are)"
        if os.environ.get("BFREPLAY_REQUIRE_SHARED"):
            pytest.fail(message)
        pytest.skip(message)
    return folder


# no test measures time; and CI tries the same examples each time, so that what lands does not depend on luck
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
