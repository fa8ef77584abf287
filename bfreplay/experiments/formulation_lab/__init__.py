"""The formulation lab: real decisions, solved by every formulation on every back end, and compared."""

from bfreplay.experiments.formulation_lab.lab import compare_formulations
from bfreplay.experiments.formulation_lab.trials import LabSettings
from bfreplay.result_folders.lab import LabResult

__all__ = ["LabResult", "LabSettings", "compare_formulations"]
