"""Options of ElasticFlow's policies."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.options import Number, OneOf, Whole, option
from bfreplay.policies.deadlines.admission import SLOT_S
from bfreplay.policies.policy import PolicyOptions


@dataclass(frozen=True)
class ElasticFlowOptions(PolicyOptions):
    """Options of all policies of ElasticFlow.

    Parameters
    ----------
    slot_s
        Length of a slot: plans change at its end only, and jobs take turns once a slot. 60 s (figure 8) or 240 s in the
        published simulations.
    published
        Repeat the published simulator, clock and all, on a cluster of servers that are never reclaimed.
    gpus_each
        GPUs of a server in the published simulator.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    slot_s: float = option(SLOT_S, checks.round_length)
    published: bool = option(False, checks.truth)
    gpus_each: int = option(8, Whole(1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published:
            checks.number("slot_s", self.slot_s, least=1)
            if not float(self.slot_s).is_integer():
                raise InputError(
                    "the published simulator counts whole seconds",
                    column="slot_s",
                    value=self.slot_s,
                    expected="a whole number",
                    fix="round it",
                )


@dataclass(frozen=True)
class PlanningOptions(ElasticFlowOptions):
    """Options of policies that plan against deadlines.

    Parameters
    ----------
    reserve
        A job is planned to end this number of rescale costs before its deadline, as plans have no rescales.
    order
        First job to get spare nodes under ElasticFlow: ``paper``, the one that needs less node time with more nodes;
        ``artifact`` (the published program), the one whose node time grows most.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    reserve: float = option(0.0, Number(least=0))
    order: str = option("paper", OneOf(("paper", "artifact")))


@dataclass(frozen=True)
class ChronusOptions(ElasticFlowOptions):
    """Options of Chronus; the published program checks its jobs once a slot.

    Parameters
    ----------
    lease_s
        Length of a lease; 240 s in the published program.
    backend
        Back end that plans leases; ``greedy`` for the fallback rule of the published program, always used with
        ``published``, as its recorded runs have no solver.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    lease_s: float = option(240.0, checks.round_length)
    backend: str = option("highs", checks.text)
