"""The result of one replay: typed record, metrics, folder, baselines; decisions posed again; explanations."""

from bfreplay.runs.decision_files import export_decisions
from bfreplay.runs.replay_session import ReplaySession
from bfreplay.runs.run_record import Efficiency
from bfreplay.runs.run_replay import run_replay
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_settings import Output, RunSettings, Saving
from bfreplay.runs.saved_decisions import RecordedDecision, decision_at, recorded_decisions

__all__ = [
    "Efficiency",
    "Output",
    "RecordedDecision",
    "ReplaySession",
    "RunResult",
    "RunSettings",
    "Saving",
    "decision_at",
    "export_decisions",
    "recorded_decisions",
    "run_replay",
]
