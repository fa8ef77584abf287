"""Options of ElasticFlow's policies."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from bfreplay import checks
from bfreplay.documents import Json
from bfreplay.errors import InputError
from bfreplay.policies.deadlines.admission import SLOT_S

Order = Literal["paper", "artifact"]
ORDERS = ("paper", "artifact")


@dataclass(frozen=True, slots=True)
class ElasticFlowOptions:
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

    slot_s: float = SLOT_S
    published: bool = False
    gpus_each: int = 8

    def __post_init__(self) -> None:
        checks.round_length("slot_s", self.slot_s)
        checks.truth("published", self.published)
        checks.whole("gpus_each", self.gpus_each, 1)
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

    def to_json(self) -> dict[str, Json]:
        """Return every option."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
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

    reserve: float = 0.0
    order: Order = "paper"

    def __post_init__(self) -> None:
        ElasticFlowOptions.__post_init__(self)
        checks.number("reserve", self.reserve, least=0)
        checks.one_of("order", self.order, ORDERS)


@dataclass(frozen=True, slots=True)
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

    lease_s: float = 240.0
    backend: str = "highs"

    def __post_init__(self) -> None:
        ElasticFlowOptions.__post_init__(self)
        checks.round_length("lease_s", self.lease_s)
