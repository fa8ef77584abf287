"""Gavel (OSDI'20): heterogeneity-aware policies that give every job a share of time on every node type, in rounds.

Its data are measured throughputs by node type (``throughputs``; made-up ones in ``made_up_throughputs``), traces of
jobs (``trace``) and generated workloads (``generated_workload``). Its policies are listed in ``policies``: ``shares``
splits time among jobs, ``rounds`` turns shares into assignments of nodes, with the quirks of the published program, and
``ideal`` applies shares without rounds. Unmeasured rates of pairs are estimated, and learnt as pairs run
(``pair_estimates``).
"""

from bfreplay.registry import PublishedSystem
from bfreplay.systems.gavel.policies import POLICIES

SYSTEM = PublishedSystem(
    name="gavel",
    policies={name: f"bfreplay.systems.gavel.policies:{name}" for name in POLICIES},
    is_trace="bfreplay.systems.gavel.trace:is_trace",
    read_trace="bfreplay.systems.gavel.trace:trace_with",
    generated_jobs="bfreplay.systems.gavel.generated_workload:draw_jobs",
)
