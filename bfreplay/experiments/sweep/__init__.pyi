"""Public names of bfreplay.experiments.sweep: type checkers read them here, and so does ``__init__.py``."""

from .result import SweepResult as SweepResult
from .run_sweep import SweepProgress as SweepProgress
from .run_sweep import sweep as sweep
