"""Experiments: many decisions or replays, compared.

Sweeps, tuning and regret are imported from their own packages: ``bfreplay.experiments.sweep`` and so on; or from
``bfreplay`` itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfreplay.experiments.formulation_lab.lab import compare_formulations
    from bfreplay.experiments.formulation_lab.sampling import LabSettings
    from bfreplay.experiments.run_comparison.comparison import compare, compare_runs
    from bfreplay.result_folders.comparison import RunComparison
    from bfreplay.result_folders.lab import LabResult

__all__ = ["LabResult", "LabSettings", "RunComparison", "compare", "compare_formulations", "compare_runs"]

# imported when first used: a worker of a sweep needs none of them
_MODULE_OF = {
    "LabResult": "bfreplay.result_folders.lab",
    "LabSettings": "bfreplay.experiments.formulation_lab.sampling",
    "RunComparison": "bfreplay.result_folders.comparison",
    "compare_formulations": "bfreplay.experiments.formulation_lab.lab",
    "compare": "bfreplay.experiments.run_comparison.comparison",
    "compare_runs": "bfreplay.experiments.run_comparison.comparison",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'bfreplay.experiments' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value
