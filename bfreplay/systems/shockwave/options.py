"""Options of Shockwave's policies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from bfreplay import checks
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.quirks import Quirks
from bfreplay.systems.gavel.rounds.state import RoundRules
from bfreplay.systems.gavel.shares.share_problem import SharePolicy
from bfreplay.systems.shockwave.planner.options import PlannerOptions
from bfreplay.systems.shockwave.published_jobs import DEADLINE_FACTOR
from bfreplay.systems.shockwave.trace import RESTORE_S

ROUND_S = 120.0
"""Length of Shockwave's rounds."""


@dataclass(frozen=True, slots=True)
class ShockwaveOptions(GavelOptions):
    """Options of a ``ShockwavePolicy``: those of Gavel's rounds, with other defaults.

    Parameters
    ----------
    published
        Repeat the published simulator: at least 1,000 s between two recomputations, its own changes of batch sizes
        (``published_jobs``), restarts that cost steps instead of time, and nodes kept empty for jobs that arrived after
        the last recomputation. Needs jobs of a trace.
    deadline_factor
        With ``published``, a job that has run for this multiple of its exclusive time counts as finished.

    Raises
    ------
    InputError
        A value out of range.
    """

    published_reset_s: ClassVar[float] = 1000.0
    published_quirks: ClassVar[Quirks] = Quirks(reset_at_zero_means_never=True, shareless_jobs_take_nodes=True)

    round_s: float = ROUND_S
    restart_s: float = RESTORE_S
    deadline_factor: float = DEADLINE_FACTOR

    def rules(self, types_in_log: tuple[str, ...], type_names: tuple[str, ...], shares: SharePolicy) -> RoundRules:
        """Return the rules of the rounds, without restarts in the published simulator (see ``PublishedJobs``)."""
        rules = GavelOptions.rules(self, types_in_log, type_names, shares)
        return replace(rules, restart_s=0.0) if self.published else rules

    def __post_init__(self) -> None:
        GavelOptions.__post_init__(self)
        checks.number("deadline_factor", self.deadline_factor, above=0)


@dataclass(frozen=True, slots=True)
class PlannedOptions(ShockwaveOptions):
    """Options of the policy ``shockwave.shockwave``: those of the other policies, and its planner's.

    Parameters
    ----------
    planner
        Options of prediction, objective and back end; its rounds are as long as those of the policy.
    """

    planner: PlannerOptions = field(default_factory=PlannerOptions)
