"""Shockwave's policies by name: its planner, and its six baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bfreplay.systems.gavel.shares.share_problem import SharePolicy
    from bfreplay.systems.shockwave.shockwave_policy import ShockwavePolicy


def _gandiva_fair() -> SharePolicy:
    from bfreplay.systems.shockwave.shares import GandivaFair

    return GandivaFair()


def _gavel() -> SharePolicy:
    from bfreplay.systems.gavel.shares.linear_policies import MaxMinFairness

    return MaxMinFairness("agnostic")


def _mst() -> SharePolicy:
    from bfreplay.systems.gavel.shares.linear_policies import MaxSumThroughput

    return MaxSumThroughput()


def _ossp() -> SharePolicy:
    from bfreplay.systems.gavel.shares.linear_policies import Makespan

    return Makespan("perf")


def _themis() -> SharePolicy:
    from bfreplay.systems.gavel.shares.finish_time_fairness import FinishTimeFairness

    return FinishTimeFairness("perf")


def _allox() -> SharePolicy:
    from bfreplay.systems.shockwave.shares import GangAlloX

    return GangAlloX()


BASELINES: Mapping[str, Callable[[], SharePolicy]] = {
    "ossp": _ossp,
    "themis": _themis,
    "gavel": _gavel,
    "allox": _allox,
    "mst": _mst,
    "gandiva_fair": _gandiva_fair,
}
"""Least makespan; finish-time fairness; equal time; least mean completion time; most throughput; equal shares."""

POLICIES = ("shockwave", *BASELINES)
"""All seven policies: ``shockwave.shockwave`` is the planner."""


@cache
def shockwave_policy(name: str) -> type[ShockwavePolicy]:
    """Return the class of the policy ``shockwave.<name>``."""
    from bfreplay.systems.shockwave.planner_policy import PlannerPolicy
    from bfreplay.systems.shockwave.shockwave_policy import BaselinePolicy

    attributes: dict[str, object] = {"name": f"shockwave.{name}", "__module__": __name__}
    if name in BASELINES:
        attributes["make_shares"] = staticmethod(lambda options: BASELINES[name]())
    made: type[ShockwavePolicy] = type(name, (BaselinePolicy if name in BASELINES else PlannerPolicy,), attributes)
    return made


def __getattr__(name: str) -> type[ShockwavePolicy]:
    """Return a class as an attribute of this module: the registry of policies imports ``policies:themis``."""
    if name in POLICIES:
        return shockwave_policy(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
