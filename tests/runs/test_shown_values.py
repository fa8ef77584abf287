"""Values behind the texts of a page, and numbers with the word for what they count."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.runs.metric import KeyFigure, exact, show_count


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (float("nan"), ""),
        (0.1 + 0.2, "0.30000000000000004"),
        (np.float64(0.1), "0.1"),
        (10**18 + 1, "1000000000000000001"),
        (np.int64(7), "7"),
        ("trial 7", "trial 7"),
    ],
)
def test_the_exact_text_has_every_digit(value, text):
    assert exact(value) == text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (1, "count", "1 node"),
        (0, "count", "0 nodes"),
        (4_734, "count", "4,734 nodes"),
        (1.0, "amount", "1 node"),
        (1.004, "amount", "1.00 nodes"),
        (1.5, "amount", "1.50 nodes"),
    ],
)
def test_the_word_is_singular_where_a_person_reads_1(value, kind, text):
    assert show_count(KeyFigure("nodes", "nodes", value, kind), "node").striptags() == text
