"""Gavel's policies by name: one class each, which differ in how shares of time are computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bfreplay.policies.gavel.gangs import gangs
from bfreplay.policies.gavel.gavel_options import GavelOptions
from bfreplay.policies.gavel.gavel_policy import GavelPolicy
from bfreplay.policies.gavel.shares.allox import AlloX, require_single_nodes
from bfreplay.policies.gavel.shares.fifo import Fifo, FifoPerf
from bfreplay.policies.gavel.shares.fifo_packed import FifoPacked
from bfreplay.policies.gavel.shares.finish_time_fairness import FinishTimeFairness
from bfreplay.policies.gavel.shares.gandiva import Gandiva
from bfreplay.policies.gavel.shares.isolated import Isolated, Proportional
from bfreplay.policies.gavel.shares.makespan import Makespan
from bfreplay.policies.gavel.shares.max_min_fairness import MaxMinFairness
from bfreplay.policies.gavel.shares.max_sum_throughput import MaxSumThroughput
from bfreplay.policies.gavel.shares.priority_classes import PriorityClasses
from bfreplay.policies.gavel.shares.strategy_proof import StrategyProof
from bfreplay.policies.gavel.shares.time_shares import SharePolicy
from bfreplay.policies.gavel.shares.water_filling import WaterFilling
from bfreplay.workload import ElasticJob


class MaxMinFairnessAgnostic(GavelPolicy):
    """Least attained service: equal time for all, node types not told apart."""

    name = "gavel.max_min_fairness"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``MaxMinFairness``."""
        return MaxMinFairness("agnostic")


class MaxMinFairnessPerf(GavelPolicy):
    """Heterogeneity-aware max-min fairness."""

    name = "gavel.max_min_fairness_perf"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``MaxMinFairness``."""
        return MaxMinFairness("perf")


class MaxMinFairnessPacked(GavelPolicy):
    """Heterogeneity-aware max-min fairness with jobs that share nodes."""

    name = "gavel.max_min_fairness_packed"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``MaxMinFairness``."""
        return MaxMinFairness("packed")


class WaterFillingAgnostic(GavelPolicy):
    """Water filling, node types not told apart."""

    name = "gavel.max_min_fairness_water_filling"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``WaterFilling``."""
        return WaterFilling("agnostic")


class WaterFillingPerf(GavelPolicy):
    """Heterogeneity-aware water filling."""

    name = "gavel.max_min_fairness_water_filling_perf"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``WaterFilling``."""
        return WaterFilling("perf")


class WaterFillingPacked(GavelPolicy):
    """Heterogeneity-aware water filling with jobs that share nodes."""

    name = "gavel.max_min_fairness_water_filling_packed"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``WaterFilling``."""
        return WaterFilling("packed")


class HierarchicalPerf(GavelPolicy):
    """Fairness among priorities first, then among the jobs of each, or first come, first served (``inner``)."""

    name = "gavel.hierarchical_perf"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``PriorityClasses``."""
        return PriorityClasses(options.inner)


class FinishTimeFairnessAgnostic(GavelPolicy):
    """Finish-time fairness, node types not told apart."""

    name = "gavel.finish_time_fairness"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``FinishTimeFairness``."""
        return FinishTimeFairness("agnostic")


class FinishTimeFairnessPerf(GavelPolicy):
    """Heterogeneity-aware finish-time fairness."""

    name = "gavel.finish_time_fairness_perf"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``FinishTimeFairness``."""
        return FinishTimeFairness("perf")


class FinishTimeFairnessPacked(GavelPolicy):
    """Heterogeneity-aware finish-time fairness with jobs that share nodes."""

    name = "gavel.finish_time_fairness_packed"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``FinishTimeFairness``."""
        return FinishTimeFairness("packed")


class MakespanAgnostic(GavelPolicy):
    """Least makespan, node types not told apart."""

    name = "gavel.min_total_duration"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``Makespan``."""
        return Makespan("agnostic")


class MakespanPerf(GavelPolicy):
    """Heterogeneity-aware least makespan."""

    name = "gavel.min_total_duration_perf"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``Makespan``."""
        return Makespan("perf")


class MakespanPacked(GavelPolicy):
    """Heterogeneity-aware least makespan with jobs that share nodes."""

    name = "gavel.min_total_duration_packed"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``Makespan``."""
        return Makespan("packed")


class MaxSumThroughputPerf(GavelPolicy):
    """Most steps per second."""

    name = "gavel.max_sum_throughput_perf"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``MaxSumThroughput``."""
        return MaxSumThroughput()


class MaxSumThroughputByCost(GavelPolicy):
    """Most steps for the money."""

    name = "gavel.max_sum_throughput_normalized_by_cost_perf"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``MaxSumThroughput``."""
        return MaxSumThroughput(by_cost=True)


class ByCostWithDeadlines(GavelPolicy):
    """Most steps for the money, deadlines met where they can be."""

    name = "gavel.max_sum_throughput_normalized_by_cost_perf_SLOs"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``MaxSumThroughput``."""
        return MaxSumThroughput(by_cost=True, deadlines=True)


class ByCostPackedWithDeadlines(GavelPolicy):
    """Most steps for the money, deadlines met where they can be, with jobs that share nodes."""

    name = "gavel.max_sum_throughput_normalized_by_cost_packed_SLOs"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``MaxSumThroughput``."""
        return MaxSumThroughput(by_cost=True, deadlines=True, packs=True)


class IsolatedPolicy(GavelPolicy):
    """Each job has its part of the cluster for itself."""

    name = "gavel.isolated"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``Isolated``."""
        return Isolated()


class ProportionalPolicy(GavelPolicy):
    """Each job's time is split over node types like the cluster."""

    name = "gavel.proportional"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``Proportional``."""
        return Proportional()


class FifoPolicy(GavelPolicy):
    """First come, first served, on a random node type."""

    name = "gavel.fifo"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``Fifo``."""
        return Fifo(seed=options.seed, over_allocates=options.published)


class FifoPerfPolicy(GavelPolicy):
    """First come, first served, on the fastest node type with room."""

    name = "gavel.fifo_perf"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``FifoPerf``."""
        return FifoPerf()


class FifoPackedPolicy(GavelPolicy):
    """First come, first served, and those that wait share nodes where that pays."""

    name = "gavel.fifo_packed"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``FifoPacked``."""
        return FifoPacked()


class GandivaPolicy(GavelPolicy):
    """Pairs of jobs by trial, as in Gandiva."""

    name = "gavel.gandiva"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``Gandiva``."""
        return Gandiva(seed=options.seed)


class AlloXPolicy(GavelPolicy):
    """Least mean completion time by matching jobs to places in queues, as in AlloX; one node a job."""

    name = "gavel.allox"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``AlloX``."""
        return AlloX(counts_zero_rates=options.published)

    def check_jobs(self, jobs: Sequence[ElasticJob], most_nodes: int) -> None:
        """Refuse jobs on several nodes as well; see ``GavelPolicy.check_jobs``."""
        super().check_jobs(jobs, most_nodes)
        least, most = (np.array([getattr(job, name) for job in jobs], np.int64) for name in ("min_nodes", "max_nodes"))
        require_single_nodes([job.name for job in jobs], gangs(least, most, self.options.gang, most_nodes))


class StrategyProofPolicy(GavelPolicy):
    """Largest geometric mean, with discounts that make lies about throughput pointless."""

    name = "gavel.max_min_fairness_strategy_proof_perf"

    @staticmethod
    def make_shares(options: GavelOptions) -> SharePolicy:
        """See ``StrategyProof``."""
        return StrategyProof()
