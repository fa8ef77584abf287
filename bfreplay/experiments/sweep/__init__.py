"""Many runs that differ in some options: each once, resumable, on as many processors as there are."""

from bfreplay.experiments.sweep.result import SweepResult
from bfreplay.experiments.sweep.run_sweep import SweepProgress, sweep

__all__ = ["SweepProgress", "SweepResult", "sweep"]
