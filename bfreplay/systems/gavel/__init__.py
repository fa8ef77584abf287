"""Gavel (OSDI'20): heterogeneity-aware policies that give every job a share of time on every node type, in rounds.

Its data are measured throughputs by node type (``throughputs``; made-up ones in ``made_up_throughputs``), traces of
jobs (``trace``) and generated workloads (``generated_workload``). Its policies are listed in ``policies``: ``shares``
has how each splits time among jobs, ``rounds`` how shares become assignments of nodes, with the quirks of the published
program.
"""

from bfreplay.registry import PublishedSystem

_POLICIES = (
    "max_min_fairness",
    "max_min_fairness_perf",
    "max_min_fairness_packed",
    "max_min_fairness_water_filling",
    "max_min_fairness_water_filling_perf",
    "max_min_fairness_water_filling_packed",
    "hierarchical_perf",
    "finish_time_fairness",
    "finish_time_fairness_perf",
    "finish_time_fairness_packed",
    "min_total_duration",
    "min_total_duration_perf",
    "min_total_duration_packed",
    "max_sum_throughput_perf",
    "max_sum_throughput_normalized_by_cost_perf",
    "max_sum_throughput_normalized_by_cost_perf_SLOs",
    "max_sum_throughput_normalized_by_cost_packed_SLOs",
    "isolated",
    "proportional",
    "fifo",
    "fifo_perf",
    "fifo_packed",
    "gandiva",
    "allox",
    "max_min_fairness_strategy_proof_perf",
)

SYSTEM = PublishedSystem(
    name="gavel",
    policies={name: f"bfreplay.systems.gavel.policies:{name}" for name in _POLICIES},
    is_trace="bfreplay.systems.gavel.trace:is_trace",
    read_trace="bfreplay.systems.gavel.made_up_throughputs:trace_with",
    generated_jobs="bfreplay.systems.gavel.made_up_throughputs:jobs_named",
)
