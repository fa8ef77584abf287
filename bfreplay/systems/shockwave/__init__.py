"""Shockwave (NSDI'23): jobs that change their batch sizes while they train, and a planner that looks rounds ahead.

Its data are traces of such jobs (``trace``, ``adaptation_rules``), throughputs in Gavel's format, and generated
workloads (``generated_workload``). Its policies are listed in ``policies``: six that give shares of time, as Gavel's
do, and Shockwave's own, which plans a window of rounds (``planner``). All run in Gavel's rounds; ``published_jobs``
repeats the batch-size changes of the published simulator.
"""

from bfreplay.registry import PublishedSystem
from bfreplay.systems.shockwave.policies import POLICIES

SYSTEM = PublishedSystem(
    name="shockwave",
    policies={name: f"bfreplay.systems.shockwave.policies:{name}" for name in POLICIES},
    is_trace="bfreplay.systems.shockwave.trace:is_trace",
    read_trace="bfreplay.systems.shockwave.trace:trace_with",
    generated_jobs="bfreplay.systems.shockwave.generated_workload:draw_jobs",
)
