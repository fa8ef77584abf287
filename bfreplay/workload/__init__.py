"""Jobs that a user submits: elastic jobs, job sets, and job sources, which make jobs during the replay."""

from bfreplay.workload.change_costs import CostByCount, Restart, Saves
from bfreplay.workload.elastic_job import Adaptation, ElasticJob
from bfreplay.workload.job_set import Colocation, Ending, JobReport, JobSet, JobSource, Orders, Verdict

__all__ = [
    "Adaptation",
    "Colocation",
    "CostByCount",
    "ElasticJob",
    "Ending",
    "JobReport",
    "JobSet",
    "JobSource",
    "Orders",
    "Restart",
    "Saves",
    "Verdict",
]
