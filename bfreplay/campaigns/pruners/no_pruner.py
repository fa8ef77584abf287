"""No pruning: every trial runs to its end."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.campaigns.parts import Advice, Released, TrialState


class NoPruner:
    """Lets every trial go on."""

    def begin(self, higher_is_better: bool) -> None:
        """Nothing to forget."""

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """None: it does not look."""
        return ()

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Go on."""
        return Advice.GO_ON

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Nothing to remember."""

    def released(self, n_under_way: int) -> Released:
        """No trial ever waits."""
        return Released()

    def describe(self) -> dict[str, object]:
        """Its kind."""
        return {"kind": "none"}
