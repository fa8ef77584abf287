"""Time: the loop, the pool of idle nodes, progress and what it costs, the ledger."""

from bfreplay.replay.accounting import Semantics
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.settings import ReplaySettings

__all__ = ["Ledger", "ReplaySettings", "Semantics"]
