"""Changes that come together wait for one decision (``--settle``).

A batch job takes its nodes within some 100 ms: an allocator that decides at each of them restarts jobs again and again.
"""

from __future__ import annotations

from bfreplay.policies.state import NEVER_US
from bfreplay.replay.decision_log import NO_CHANGES, PoolChanges

_LONGEST = 10
"""Longest wait of a change, in settle times."""


class Settling:
    """Changes that wait for a decision until all has been quiet for the settle time.

    Attributes
    ----------
    settle_us
        Settle time; 0: nothing waits.
    due_us
        When what waits is decided, if nothing else happens; ``NEVER_US`` if nothing waits.
    """

    def __init__(self, settle_s: float) -> None:
        self.settle_us = round(settle_s * 1e6)
        self._forget()

    def _forget(self) -> None:
        self.due_us = self._since_us = NEVER_US
        self._trigger, self._changes = 0, NO_CHANGES

    def settle(self, now_us: int, trigger: int, changes: PoolChanges, *, at_once: bool) -> tuple[int, PoolChanges, int]:
        """Return all that waited, a trigger of now included, and since when: what is decided now; 0 while it waits.

        A trigger makes all that waits already go on waiting with it; ``at_once``: nothing waits.
        """
        if trigger:
            self._trigger |= trigger
            self._since_us = min(self._since_us, now_us)
            self.due_us = min(now_us + self.settle_us, self._since_us + _LONGEST * self.settle_us)
        is_settled = at_once or self.due_us <= now_us
        if trigger or is_settled:
            self._changes = self._changes.plus(changes)
        if not is_settled:
            return 0, NO_CHANGES, NEVER_US
        waiting = self._trigger, self._changes, self._since_us
        self._forget()
        return waiting
