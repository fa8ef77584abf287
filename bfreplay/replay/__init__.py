"""Time: the loop, the pool of idle nodes, progress, the books, the results of a run."""

from bfreplay.replay.accounting import Semantics
from bfreplay.replay.exported import export_decisions
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.recorded import RecordedDecision, decision_at, recorded_decisions
from bfreplay.replay.result import RunResult
from bfreplay.replay.run import replay_log
from bfreplay.replay.run_record import Efficiency
from bfreplay.replay.settings import ReplaySettings

__all__ = [
    "Efficiency",
    "Ledger",
    "RecordedDecision",
    "ReplaySettings",
    "RunResult",
    "Semantics",
    "decision_at",
    "export_decisions",
    "recorded_decisions",
    "replay_log",
]
