"""Gavel's policies by name: one class each, which differ in how shares of time are computed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from bfreplay.systems.gavel.gavel_policy import GavelPolicy
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.shares.allox import AlloX
from bfreplay.systems.gavel.shares.fifo import Fifo, FifoPacked, FifoPerf
from bfreplay.systems.gavel.shares.finish_time_fairness import FinishTimeFairness
from bfreplay.systems.gavel.shares.gandiva import Gandiva
from bfreplay.systems.gavel.shares.linear_policies import Makespan, MaxMinFairness, MaxSumThroughput
from bfreplay.systems.gavel.shares.rule_shares import Isolated, Proportional
from bfreplay.systems.gavel.shares.share_problem import SharePolicy
from bfreplay.systems.gavel.shares.strategy_proof import StrategyProof
from bfreplay.systems.gavel.shares.water_filling import PriorityClasses, WaterFilling

_SHARES: Mapping[str, tuple[type[SharePolicy], Mapping[str, Any]]] = {
    # least attained service: equal time for all, node types not told apart; then told apart; then jobs may share nodes
    "max_min_fairness": (MaxMinFairness, {"variant": "agnostic"}),
    "max_min_fairness_perf": (MaxMinFairness, {"variant": "perf"}),
    "max_min_fairness_packed": (MaxMinFairness, {"variant": "packed"}),
    "max_min_fairness_water_filling": (WaterFilling, {"variant": "agnostic"}),
    "max_min_fairness_water_filling_perf": (WaterFilling, {"variant": "perf"}),
    "max_min_fairness_water_filling_packed": (WaterFilling, {"variant": "packed"}),
    # fairness among priorities first, then among the jobs of each, or first come, first served
    "hierarchical_perf": (PriorityClasses, {}),
    "finish_time_fairness": (FinishTimeFairness, {"variant": "agnostic"}),
    "finish_time_fairness_perf": (FinishTimeFairness, {"variant": "perf"}),
    "finish_time_fairness_packed": (FinishTimeFairness, {"variant": "packed"}),
    # least makespan
    "min_total_duration": (Makespan, {"variant": "agnostic"}),
    "min_total_duration_perf": (Makespan, {"variant": "perf"}),
    "min_total_duration_packed": (Makespan, {"variant": "packed"}),
    # most steps per second, or for the money; deadlines met where they can be
    "max_sum_throughput_perf": (MaxSumThroughput, {}),
    "max_sum_throughput_normalized_by_cost_perf": (MaxSumThroughput, {"by_cost": True}),
    "max_sum_throughput_normalized_by_cost_perf_SLOs": (MaxSumThroughput, {"by_cost": True, "deadlines": True}),
    "max_sum_throughput_normalized_by_cost_packed_SLOs": (
        MaxSumThroughput,
        {"by_cost": True, "deadlines": True, "packs": True},
    ),
    # each job has its part of the cluster for itself; each job's time is split over node types like the cluster
    "isolated": (Isolated, {}),
    "proportional": (Proportional, {}),
    # first come, first served: on a random type; on the fastest with room; those that wait share nodes where that pays
    "fifo": (Fifo, {}),
    "fifo_perf": (FifoPerf, {}),
    "fifo_packed": (FifoPacked, {}),
    # pairs of jobs by trial
    "gandiva": (Gandiva, {}),
    # least mean completion time by matching jobs to places in queues; one node a job
    "allox": (AlloX, {}),
    # largest geometric mean, with discounts that make lies about throughput pointless
    "max_min_fairness_strategy_proof_perf": (StrategyProof, {}),
}
_FROM_OPTIONS: Mapping[type[SharePolicy], Mapping[str, str]] = {
    PriorityClasses: {"inner": "inner"},
    Fifo: {"seed": "seed", "over_allocates": "published"},
    Gandiva: {"seed": "seed"},
    AlloX: {"counts_zero_rates": "published"},
}
"""Settings that are taken from options of the policy, by the options' names."""


@cache
def gavel_policy(name: str) -> type[GavelPolicy]:
    """The class of the policy ``gavel.<name>``."""
    kind, settings = _SHARES[name]

    def make_shares(options: GavelOptions) -> SharePolicy:
        of_options = _FROM_OPTIONS.get(kind, {})
        return kind(**settings, **{key: getattr(options, option) for key, option in of_options.items()})

    attributes = {"name": f"gavel.{name}", "make_shares": staticmethod(make_shares), "__module__": __name__}
    made: type[GavelPolicy] = type(name, (GavelPolicy,), attributes)
    return made


def __getattr__(name: str) -> type[GavelPolicy]:
    """The classes as attributes of this module: the registry of policies imports ``named:fifo_perf``."""
    if name in _SHARES:
        return gavel_policy(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
