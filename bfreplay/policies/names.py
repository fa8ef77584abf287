"""Policies and objectives by name, without what they import: completion on the command line needs no more."""

from __future__ import annotations

from collections.abc import Mapping

from bfreplay.registry import Registry, published_systems

BUILT_IN: Mapping[str, tuple[str, str]] = {
    "bftrainer": ("bfreplay.policies.bftrainer:BFTrainerPolicy", "'bftrainer'"),
    "reclaim-aware": (
        "bfreplay.policies.reclaims.policy:ReclaimAwarePolicy",
        "'reclaim-aware' (learns which nodes are reclaimed together)",
    ),
    "look-ahead": (
        "bfreplay.policies.look_ahead:LookAheadPolicy",
        "'look-ahead' (plans for pools like those seen so far)",
    ),
    "equal-share": ("bfreplay.policies.equal_share:EqualSharePolicy", "'equal-share'"),
    "foresight": ("bfreplay.policies.look_ahead:ForesightPolicy", "'foresight(events=10)' (knows the log)"),
}
"""Class by name, ``"module:Class"``, imported when first used; and its words in the help of ``--policy``."""

HELP = "; ".join(words for _, words in BUILT_IN.values())

POLICIES = Registry(
    kind="policy",
    group="bfreplay.policies",
    needs=("decide",),
    built_in={
        **{name: location for name, (location, _) in BUILT_IN.items()},
        **{f"{system.name}.{name}": place for system in published_systems() for name, place in system.policies.items()},
    },
)
"""A line in ``BUILT_IN``, or an entry point elsewhere, makes a policy known everywhere."""

OWN = "own"
"""Name of the default objective."""
_OBJECTIVES = "bfreplay.policies.objectives"
OBJECTIVES = Registry(
    kind="objective",
    group="bfreplay.objectives",
    needs=("problem",),
    built_in={
        OWN: f"{_OBJECTIVES}.built_in:own",
        "throughput": f"{_OBJECTIVES}.built_in:throughput",
        "speed-up": f"{_OBJECTIVES}.built_in:speed_up",
        "priority": f"{_OBJECTIVES}.built_in:priority",
        "proportional-fairness": f"{_OBJECTIVES}.built_in:proportional_fairness",
        "max-min": f"{_OBJECTIVES}.max_min:MaxMin",
        "deadline": f"{_OBJECTIVES}.built_in:deadline",
        "cost": f"{_OBJECTIVES}.built_in:cost",
        "energy": f"{_OBJECTIVES}.built_in:energy",
    },
    takes_functions=True,
)
"""One line here, or an entry point elsewhere, makes an objective known everywhere."""
