"""A ledger that is off by the least thing does not close."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bfreplay.errors import LedgerError
from bfreplay.replay.ledger import HELD, Ledger

LEDGER = Ledger(
    idle_node_us=107,
    useful_node_us=40,
    rescaling_node_us=5,
    preempted_node_us=10,
    repeated_node_us=7,
    stalled_node_us=15,
    unallocated_node_us=30,
    allocated_node_us=77,
    gross_samples=1020.0,
    samples=800.0,
    samples_by_job=800.0,
    rescale_samples=50.0,
    preemption_samples=100.0,
    repeated_samples=20.0,
    trimmed_samples=50.0,
    credited_samples=0.0,
)


def test_a_ledger_whose_sides_are_equal_closes():
    LEDGER.close()
    LEDGER.close_idle_intervals(107, 77)
    assert LEDGER.to_json()["node_hours"]["unallocated"] == 30 / 3.6e9


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(
    ("field", "says"),
    [
        *((name, "idle node time") for name in ("idle_node_us", "unallocated_node_us")),
        *((f"{label}_node_us", "idle node time") for label in HELD),
        ("allocated_node_us", "held node time"),
        *(
            (name, "samples made")
            for name in (
                "gross_samples",
                "rescale_samples",
                "preemption_samples",
                "repeated_samples",
                "trimmed_samples",
            )
        ),
        ("samples_by_job", "progress"),
    ],
)
def test_a_ledger_that_differs_by_one_does_not_close(field, by, says):
    size = by if field.endswith("_us") else by * 2e-6  # of 1000 samples, twice what rounding may do
    with pytest.raises(LedgerError, match=f"^{says} do(es)? not close"):
        replace(LEDGER, **{field: getattr(LEDGER, field) + size}).close()


@pytest.mark.parametrize("size", [-5e-7, 5e-7])
def test_samples_may_differ_by_rounding(size):
    replace(LEDGER, gross_samples=1020.0 + size, samples_by_job=800.0 - size).close()


def test_nobody_is_credited_with_samples_that_nobody_made():
    with pytest.raises(LedgerError, match=r"credited with 50\.0 samples that they did not make"):
        replace(LEDGER, trimmed_samples=-50.0, samples=900.0, samples_by_job=900.0).close()


@pytest.mark.parametrize(("idle_us", "held_us", "which"), [(106, 77, "idle"), (108, 77, "idle"), (107, 76, "held")])
def test_idle_intervals_that_differ_by_one_do_not_close(idle_us, held_us, which):
    with pytest.raises(LedgerError, match=f"{which} node time of the idle intervals"):
        LEDGER.close_idle_intervals(idle_us, held_us)
