"""Recorded instances of Gavel's policies, by policy."""

from pathlib import Path

from bfreplay.experiments.parity.recorded.gavel import Instance, instances


def instances_of(shared: Path, *policies: str) -> list[Instance]:
    """Return the instances of these policies, by the original's names; at least one of each."""
    found = [one for one in instances(shared).values() if one.policy in policies]
    assert {one.policy for one in found} == set(policies)
    return found
