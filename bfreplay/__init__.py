"""Replay batch-scheduler logs into an exact allocator of elastic training jobs.

>>> import bfreplay
>>> log = bfreplay.load_events(bfreplay.sample_events_path())
>>> jobs = bfreplay.load_jobs(bfreplay.sample_jobs_path())
>>> run = bfreplay.replay_log(log, jobs, bfreplay.BFTrainerPolicy(t_fwd_s=120))
>>> run.summary["jobs"]["finished"] > 0
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfreplay.campaigns import load_campaign
    from bfreplay.datasets import NodeEvents, load_events, load_jobs, write_events, write_jobs
    from bfreplay.datasets.bundled import sample_events_path, sample_jobs_path
    from bfreplay.datasets.ingest.read_log import ingest
    from bfreplay.datasets.ingest.reader import ReadOptions
    from bfreplay.datasets.occupancy.rules import OccupancyRules
    from bfreplay.errors import BfreplayError, InputError, LedgerError, OutputExistsError, SolverUnavailableError
    from bfreplay.experiments.regret import regret
    from bfreplay.experiments.run_comparison.comparison import compare_runs
    from bfreplay.experiments.run_options import RunOptions
    from bfreplay.experiments.sweep import sweep
    from bfreplay.experiments.tuning import tune
    from bfreplay.milp import AllocationProblem, Solution, Solver, solve, solver_of
    from bfreplay.policies import BFTrainerPolicy, Decision, EqualSharePolicy, Policy, PolicyState
    from bfreplay.policies.learning import LearningPolicy
    from bfreplay.policies.look_ahead import ForesightPolicy, LookAheadPolicy
    from bfreplay.policies.objectives.catalogue import objective_of
    from bfreplay.replay import ReplaySettings, RunResult, Semantics, replay_log
    from bfreplay.report.page.document import write_report
    from bfreplay.scalability import TabulatedCurve, fit_all
    from bfreplay.versions import show_versions
    from bfreplay.workload import ElasticJob, JobSet

__version__ = "0.1.0"

__all__ = [
    "AllocationProblem",
    "BFTrainerPolicy",
    "BfreplayError",
    "Decision",
    "ElasticJob",
    "EqualSharePolicy",
    "ForesightPolicy",
    "InputError",
    "JobSet",
    "LearningPolicy",
    "LedgerError",
    "LookAheadPolicy",
    "NodeEvents",
    "OccupancyRules",
    "OutputExistsError",
    "Policy",
    "PolicyState",
    "ReadOptions",
    "ReplaySettings",
    "RunOptions",
    "RunResult",
    "Semantics",
    "Solution",
    "Solver",
    "SolverUnavailableError",
    "TabulatedCurve",
    "__version__",
    "compare_runs",
    "fit_all",
    "ingest",
    "load_campaign",
    "load_events",
    "load_jobs",
    "objective_of",
    "regret",
    "replay_log",
    "sample_events_path",
    "sample_jobs_path",
    "show_versions",
    "solve",
    "solver_of",
    "sweep",
    "tune",
    "write_events",
    "write_jobs",
    "write_report",
]

# imported when first used, so that ``import bfreplay`` and ``bfreplay --help`` stay quick
_MODULE_OF = {
    "AllocationProblem": "bfreplay.milp",
    "BFTrainerPolicy": "bfreplay.policies",
    "BfreplayError": "bfreplay.errors",
    "Decision": "bfreplay.policies",
    "ElasticJob": "bfreplay.workload",
    "EqualSharePolicy": "bfreplay.policies",
    "ForesightPolicy": "bfreplay.policies.look_ahead",
    "InputError": "bfreplay.errors",
    "JobSet": "bfreplay.workload",
    "LearningPolicy": "bfreplay.policies.learning",
    "LedgerError": "bfreplay.errors",
    "LookAheadPolicy": "bfreplay.policies.look_ahead",
    "NodeEvents": "bfreplay.datasets",
    "OccupancyRules": "bfreplay.datasets.occupancy.rules",
    "OutputExistsError": "bfreplay.errors",
    "Policy": "bfreplay.policies",
    "PolicyState": "bfreplay.policies",
    "ReadOptions": "bfreplay.datasets.ingest.reader",
    "ReplaySettings": "bfreplay.replay",
    "RunOptions": "bfreplay.experiments.run_options",
    "RunResult": "bfreplay.replay",
    "Semantics": "bfreplay.replay",
    "Solution": "bfreplay.milp",
    "Solver": "bfreplay.milp",
    "SolverUnavailableError": "bfreplay.errors",
    "TabulatedCurve": "bfreplay.scalability",
    "compare_runs": "bfreplay.experiments.run_comparison.comparison",
    "fit_all": "bfreplay.scalability",
    "ingest": "bfreplay.datasets.ingest.read_log",
    "load_campaign": "bfreplay.campaigns",
    "load_events": "bfreplay.datasets",
    "load_jobs": "bfreplay.datasets",
    "objective_of": "bfreplay.policies.objectives.catalogue",
    "regret": "bfreplay.experiments.regret",
    "replay_log": "bfreplay.replay",
    "sample_events_path": "bfreplay.datasets.bundled",
    "sample_jobs_path": "bfreplay.datasets.bundled",
    "show_versions": "bfreplay.versions",
    "solve": "bfreplay.milp",
    "solver_of": "bfreplay.milp",
    "sweep": "bfreplay.experiments.sweep",
    "tune": "bfreplay.experiments.tuning",
    "write_events": "bfreplay.datasets",
    "write_jobs": "bfreplay.datasets",
    "write_report": "bfreplay.report.page.document",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'bfreplay' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
