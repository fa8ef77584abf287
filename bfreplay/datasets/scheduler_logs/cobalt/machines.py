"""The machines of the Argonne Leadership Computing Facility."""

from __future__ import annotations

MACHINE_SIZES = {
    "mira": 49_152,
    "theta": 4_392,
    "cooley": 126,
    "thetagpu": 24,
    "polaris": 560,
    "aurora": 10_624,
}
"""Nodes of each machine, as ALCF gives them, by its name in the tables in lower case."""

SITE_ZONE = "America/Chicago"
"""The zone in which ALCF's people work, and maintenance begins at the same hour all year."""
