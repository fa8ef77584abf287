"""What can be set of ElasticFlow's policies."""

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
        Plans change at the ends of slots only; policies that let jobs take turns do so once a slot. The published
        simulations have 60 s (figure 8) or 240 s.
    published
        Repeat the published simulator, clock and all, on a cluster of servers that are never reclaimed.
    gpus_each
        GPUs of a server, of the published simulator.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    slot_s: float = SLOT_S
    published: bool = False
    gpus_each: int = 8

    def __post_init__(self) -> None:
        checks.number("slot_s", self.slot_s, above=0)
        checks.truth("published", self.published)
        checks.whole("gpus_each", self.gpus_each, 1)
        if self.published:
            checks.number("slot_s", self.slot_s, least=1)
            if not float(self.slot_s).is_integer():
                raise InputError(
                    "the published simulator counts whole seconds", column="slot_s", value=self.slot_s,
                    expected="a whole number", fix="round it",
                )  # fmt: skip

    def to_json(self) -> dict[str, Json]:
        """Every option."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PlanningOptions(ElasticFlowOptions):
    """Options of policies that plan against deadlines.

    Parameters
    ----------
    reserve
        A job is planned to be done before its deadline by what so many rescales cost it; plans know of none.
    order
        Who gets spare nodes first under ElasticFlow: by the ``paper``, the job that needs less node time with more
        nodes; in the published program (``artifact``), the one whose node time grows most.

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
    """Options of Chronus; the published program looks at its jobs once a slot.

    Parameters
    ----------
    lease_s
        Length of a lease; the published program has 240 s.
    backend
        Back end that plans leases; ``greedy`` for the rule that the published program falls back to, and always with
        ``published``, whose recorded runs have no solver.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    lease_s: float = 240.0
    backend: str = "highs"

    def __post_init__(self) -> None:
        ElasticFlowOptions.__post_init__(self)
        checks.number("lease_s", self.lease_s, above=0)
