"""Fixtures of the tests of public logs."""

from collections.abc import Iterator

import pytest

from tests.datasets.public_logs.web_server import Server, serving


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A web server on this machine."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as running:
        yield running
