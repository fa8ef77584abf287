"""Comparison of finished replays of one log and one set of jobs: hour by hour, job by job, and why."""

from bfreplay.experiments.run_comparison.comparison import compare_runs
from bfreplay.result_folders.comparison import RunComparison

__all__ = ["RunComparison", "compare_runs"]
