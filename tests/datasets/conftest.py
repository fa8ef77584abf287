"""Fixtures of the tests of logs and job sets."""

import pytest

from bfreplay.datasets import EventsMetadata
from tests.datasets.small_logs import BUSY, DOWN, IDLE, log


@pytest.fixture
def three_nodes():
    """a idle from 10 to 30 s, b down at 10 s, c busy all the time with a job change at 20 s."""
    return log(
        [BUSY, BUSY, BUSY],
        [(10, "b", DOWN), (10, "a", IDLE), (20, "c", BUSY), (30, "a", BUSY)],
        metadata=EventsMetadata(cluster="tiny", skipped={"no end time": 2}, notes={"seed": 1}),
    )
