"""Back ends that this machine may lack."""

from __future__ import annotations

import os

import pytest

from bfreplay.milp.backends import Backend, backend_of, why_not


def present(name: str) -> Backend:
    """The back end of this name; the test is skipped, by name, where it does not work.

    In CI, which installs every back end, BFREPLAY_REQUIRE_SHARED makes a missing one an error.
    """
    found = backend_of(name)
    if reason := why_not(found):
        message = f"back end {name} does not work here: {reason}"
        if os.environ.get("BFREPLAY_REQUIRE_SHARED"):
            pytest.fail(message)
        pytest.skip(message)
    return found
