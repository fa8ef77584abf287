"""Gavel against its records."""

from __future__ import annotations

import pytest

from tests.parity.parts import check_part, parts_of


@pytest.mark.parametrize("part", parts_of("gavel"))
def test_everything_agrees_or_differs_for_a_known_reason(shared, part):
    check_part(shared, "gavel", part)
