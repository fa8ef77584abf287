"""What a user submits: elastic jobs, a set of them, or a source that makes them while time goes on."""

from bfreplay.workload.adaptation import Adaptation
from bfreplay.workload.elastic_job import ElasticJob
from bfreplay.workload.job_set import Colocation, Ending, JobReport, JobSet, JobSource, Orders, Verdict

__all__ = [
    "Adaptation", "Colocation", "ElasticJob", "Ending", "JobReport", "JobSet", "JobSource", "Orders", "Verdict",
]  # fmt: skip
