"""Public names of bfreplay.experiments: type checkers read them here, and so does ``__init__.py``."""

from .formulation_lab.lab import LabResult as LabResult
from .formulation_lab.lab import compare_formulations as compare_formulations
from .formulation_lab.sampling import LabSettings as LabSettings
from .rule_comparison import compare_rules as compare_rules
from .run_comparison.comparison import RunComparison as RunComparison
from .run_comparison.comparison import compare as compare
