"""Time: the loop, the pool of idle nodes, progress and what it costs, the ledger."""

from bfreplay.replay.ledger import Ledger
from bfreplay.replay.progress import Semantics
from bfreplay.replay.settings import ReplaySettings

__all__ = ["Ledger", "ReplaySettings", "Semantics"]
