"""The formulation lab: real decisions, solved by every formulation on every back end, and compared."""

from bfreplay.experiments.formulation_lab.lab import compare_formulations
from bfreplay.experiments.formulation_lab.result import LabResult
from bfreplay.experiments.formulation_lab.settings import LabSettings

__all__ = ["LabResult", "LabSettings", "compare_formulations"]
