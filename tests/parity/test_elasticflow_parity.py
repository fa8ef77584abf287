"""ElasticFlow against its records."""

from __future__ import annotations

import pytest

from tests.parity.elasticflow import LOGS
from tests.parity.parts import check_part, parts_of


@pytest.mark.parametrize("part", parts_of("elasticflow"))
def test_everything_agrees_or_differs_for_a_known_reason(shared, part):
    table = check_part(shared, "elasticflow", part)
    # the logs are older than the program: since then, ends are at least a slot ahead of the event at hand
    n_changed = {"log of dlas-gpu": 3, "log of ef-accessctrl": 79}
    assert table.tallies[LOGS].n_named == n_changed.get(part, 0) if LOGS in table.tallies else part not in n_changed
