"""ElasticFlow (ASPLOS'23): jobs with deadlines get the fewest sufficient GPUs, and spare ones by their gain.

Its data are traces of jobs with deadlines (``trace``), throughput tables (``throughputs``) and generated workloads
(``generated_workload``). Its policies are listed in ``policies``: ElasticFlow, its ablations, and its baselines.
``published`` repeats the authors' schedulers on the clock of their simulator, for comparison with their recorded runs;
planning against deadlines itself is in ``policies.deadlines``.
"""

from bfreplay.registry import PublishedSystem
from bfreplay.systems.elasticflow.policies import POLICIES

SYSTEM = PublishedSystem(
    name="elasticflow",
    policies={name: f"bfreplay.systems.elasticflow.policies:{name}" for name in POLICIES},
    is_trace="bfreplay.systems.elasticflow.trace:is_trace",
    read_trace="bfreplay.systems.elasticflow.trace:trace_with",
    generated_jobs="bfreplay.systems.elasticflow.generated_workload:draw_jobs",
    traces_are_csv=True,
)
