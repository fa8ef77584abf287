"""Seeded synthetic machine and a job set that fits it, without data of any site."""

from bfreplay.datasets.synthetic.elastic_jobs import synthetic_jobs
from bfreplay.datasets.synthetic.machine import JobStream, MachineModel, synthetic_machine

__all__ = ["JobStream", "MachineModel", "synthetic_jobs", "synthetic_machine"]
