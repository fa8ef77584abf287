"""Experiments: many decisions or replays, compared."""

from bfreplay.experiments.lab import compare_formulations
from bfreplay.experiments.lab_result import LabResult
from bfreplay.experiments.lab_settings import LabSettings

__all__ = ["LabResult", "LabSettings", "compare_formulations"]
