"""Shockwave's policies by name: its planner, and its six baselines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from bfreplay.registry import built_in

if TYPE_CHECKING:
    from bfreplay.systems.gavel.shares.share_problem import SharePolicy
    from bfreplay.systems.shockwave.shockwave_policy import ShockwavePolicy

_GAVEL, _OWN = "bfreplay.systems.gavel.shares", "bfreplay.systems.shockwave.shares"

BASELINES: Mapping[str, tuple[str, ...]] = {
    "ossp": (f"{_GAVEL}.linear_policies:Makespan", "perf"),
    "themis": (f"{_GAVEL}.finish_time_fairness:FinishTimeFairness", "perf"),
    "gavel": (f"{_GAVEL}.linear_policies:MaxMinFairness", "agnostic"),
    "allox": (f"{_OWN}:GangAlloX",),
    "mst": (f"{_GAVEL}.linear_policies:MaxSumThroughput",),
    "gandiva_fair": (f"{_OWN}:GandivaFair",),
}
"""Least makespan; finish-time fairness; equal time; least mean completion time; most throughput; equal shares.

Each is the class that computes the shares, imported when asked for, and its arguments.
"""

POLICIES = ("shockwave", *BASELINES)
"""All seven policies: ``shockwave.shockwave`` is the planner."""


def baseline_shares(policy_name: str) -> SharePolicy:
    """Return what computes the shares of a baseline."""
    location, *arguments = BASELINES[policy_name]
    shares: SharePolicy = built_in(location)(*arguments)
    return shares


@cache
def shockwave_policy(policy_name: str) -> type[ShockwavePolicy]:
    """Return the class of the policy ``shockwave.<name>``."""
    from bfreplay.systems.shockwave.shockwave_policy import PlannerPolicy, ShockwavePolicy

    attributes: dict[str, object] = {"name": f"shockwave.{policy_name}", "__module__": __name__}
    if policy_name in BASELINES:
        attributes["make_shares"] = staticmethod(lambda options: baseline_shares(policy_name))
    base = ShockwavePolicy if policy_name in BASELINES else PlannerPolicy
    return type(policy_name, (base,), attributes)


def __getattr__(policy_name: str) -> type[ShockwavePolicy]:
    """Return a class as an attribute of this module: the registry of policies imports ``policies:themis``."""
    if policy_name in POLICIES:
        return shockwave_policy(policy_name)
    raise AttributeError(f"module {__name__!r} has no attribute {policy_name!r}")
