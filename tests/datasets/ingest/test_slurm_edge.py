"""Rows at the edge of a log, added one by one or at once."""

import numpy as np
import pytest

from bfreplay.datasets.ingest.slurm.edge import Edge

TIMES_US = [[5, 3, 3, 9, 9], [9, 3], [4, 4, 8], [2, 10], [3, 9]]


@pytest.mark.parametrize("direction", [-1, 1])
def test_rows_added_at_once_count_as_rows_added_one_by_one(direction):
    one_by_one, at_once = Edge(direction), Edge(direction)
    for part, times_us in enumerate(TIMES_US):
        for position, time_us in enumerate(times_us):
            one_by_one.add(time_us, (part, position))
        at_once.add_all(np.array(times_us), lambda position, part=part: (part, position))
        assert (at_once.time_text, at_once.count) == (one_by_one.time_text, one_by_one.count)
        assert at_once._others == one_by_one._others
