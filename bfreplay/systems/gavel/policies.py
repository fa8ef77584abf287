"""Gavel's policies by name: one class each, which computes shares of time in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from bfreplay.registry import built_in

if TYPE_CHECKING:
    from bfreplay.policies import Policy
    from bfreplay.systems.gavel.gavel_policy import GavelPolicy
    from bfreplay.systems.gavel.options import GavelOptions
    from bfreplay.systems.gavel.shares.share_problem import SharePolicy

POLICIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    # least attained service: equal time for all, node types ignored; then distinguished; then jobs may share nodes
    "max_min_fairness": ("linear_policies:MaxMinFairness", {"variant": "agnostic"}),
    "max_min_fairness_perf": ("linear_policies:MaxMinFairness", {"variant": "perf"}),
    "max_min_fairness_packed": ("linear_policies:MaxMinFairness", {"variant": "packed"}),
    "max_min_fairness_water_filling": ("water_filling:WaterFilling", {"variant": "agnostic"}),
    "max_min_fairness_water_filling_perf": ("water_filling:WaterFilling", {"variant": "perf"}),
    "max_min_fairness_water_filling_packed": ("water_filling:WaterFilling", {"variant": "packed"}),
    # fairness among priorities first, then among the jobs of each, or first come, first served
    "hierarchical_perf": ("water_filling:PriorityClasses", {}),
    "finish_time_fairness": ("finish_time_fairness:FinishTimeFairness", {"variant": "agnostic"}),
    "finish_time_fairness_perf": ("finish_time_fairness:FinishTimeFairness", {"variant": "perf"}),
    "finish_time_fairness_packed": ("finish_time_fairness:FinishTimeFairness", {"variant": "packed"}),
    # least makespan
    "min_total_duration": ("linear_policies:Makespan", {"variant": "agnostic"}),
    "min_total_duration_perf": ("linear_policies:Makespan", {"variant": "perf"}),
    "min_total_duration_packed": ("linear_policies:Makespan", {"variant": "packed"}),
    # most steps per second, or for the money; deadlines met where they can be
    "max_sum_throughput_perf": ("linear_policies:MaxSumThroughput", {}),
    "max_sum_throughput_normalized_by_cost_perf": ("linear_policies:MaxSumThroughput", {"by_cost": True}),
    "max_sum_throughput_normalized_by_cost_perf_SLOs": (
        "linear_policies:MaxSumThroughput",
        {"by_cost": True, "deadlines": True},
    ),
    "max_sum_throughput_normalized_by_cost_packed_SLOs": (
        "linear_policies:MaxSumThroughput",
        {"by_cost": True, "deadlines": True, "packs": True},
    ),
    # each job has its own part of the cluster; each job's time is split over node types like the cluster
    "isolated": ("rule_shares:Isolated", {}),
    "proportional": ("rule_shares:Proportional", {}),
    # first come, first served: on a random type; on the fastest with room; waiting jobs share nodes where that pays
    "fifo": ("slot_policies:Fifo", {}),
    "fifo_perf": ("slot_policies:FifoPerf", {}),
    "fifo_packed": ("slot_policies:FifoPacked", {}),
    # pairs of jobs by trial
    "gandiva": ("rule_shares:Gandiva", {}),
    # least mean completion time by matching jobs to places in queues; one node a job
    "allox": ("slot_policies:AlloX", {}),
    # largest geometric mean, with discounts that make lies about throughput pointless
    "max_min_fairness_strategy_proof_perf": ("strategy_proof:StrategyProof", {}),
}
"""Class that computes the shares, ``"module:Class"`` in ``shares``, imported when asked for; and its settings."""

_FROM_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "water_filling:PriorityClasses": {"inner": "inner"},
    "slot_policies:Fifo": {"seed": "seed", "over_allocates": "published"},
    "rule_shares:Gandiva": {"seed": "seed"},
    "slot_policies:AlloX": {"counts_zero_rates": "published"},
}
"""Settings that are taken from options of the policy, by the options' names."""


@cache
def gavel_policy(policy_name: str) -> type[GavelPolicy]:
    """Return the class of the policy ``gavel.<name>``."""
    from bfreplay.systems.gavel.gavel_policy import GavelPolicy

    location, settings = POLICIES[policy_name]

    def make_shares(options: GavelOptions) -> SharePolicy:
        option_of_setting = _FROM_OPTIONS.get(location, {})
        of_options = {key: getattr(options, option) for key, option in option_of_setting.items()}
        shares: SharePolicy = built_in(f"bfreplay.systems.gavel.shares.{location}")(**settings, **of_options)
        return shares

    attributes = {"name": f"gavel.{policy_name}", "make_shares": staticmethod(make_shares), "__module__": __name__}
    return type(policy_name, (GavelPolicy,), attributes)


def isolated_policy(policy: Policy) -> GavelPolicy:
    """Return ``gavel.isolated`` with the options of ``policy``, above all its rounds, if it is one of Gavel's."""
    from bfreplay.systems.gavel.gavel_policy import GavelPolicy
    from bfreplay.systems.gavel.options import GavelOptions

    options = GavelOptions()
    if isinstance(policy, GavelPolicy):
        options = policy.options
        if not policy.follows_gavel_alone:  # of another system: its rounds, without its published simulator
            options = GavelOptions(
                round_s=options.round_s, restart_s=options.restart_s, gang=options.gang, refill=options.refill
            )
    return gavel_policy("isolated")(options)


def __getattr__(policy_name: str) -> type[GavelPolicy]:
    """Return a class as an attribute of this module: the registry of policies imports ``policies:fifo_perf``."""
    if policy_name in POLICIES:
        return gavel_policy(policy_name)
    raise AttributeError(f"module {__name__!r} has no attribute {policy_name!r}")
