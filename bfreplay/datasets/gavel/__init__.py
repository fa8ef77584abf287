"""The data of Gavel (OSDI'20): measured throughputs by node type, traces of jobs, and generated workloads."""

from bfreplay.datasets.gavel.generated import generated_jobs
from bfreplay.datasets.gavel.made_up import sample_throughputs
from bfreplay.datasets.gavel.throughputs import ThroughputTable, read_throughputs, write_throughputs
from bfreplay.datasets.gavel.trace import read_trace, write_trace

__all__ = [
    "ThroughputTable",
    "generated_jobs",
    "read_throughputs",
    "read_trace",
    "sample_throughputs",
    "write_throughputs",
    "write_trace",
]
