"""Time: the loop, the pool of idle nodes, progress, the books, the results of a run."""

from bfreplay.replay.accounting import Semantics
from bfreplay.replay.baseline import Efficiency
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.result import RunResult
from bfreplay.replay.run import replay_log
from bfreplay.replay.settings import ReplaySettings

__all__ = ["Efficiency", "Ledger", "ReplaySettings", "RunResult", "Semantics", "replay_log"]
