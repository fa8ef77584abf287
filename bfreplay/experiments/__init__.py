"""Experiments: many decisions or replays, compared."""

from bfreplay.experiments.formulation_lab import LabResult, LabSettings, compare_formulations

__all__ = ["LabResult", "LabSettings", "compare_formulations"]
