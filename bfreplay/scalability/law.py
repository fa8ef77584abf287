"""Scalability curves, laws (formulas with named parameters), and laws by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.registry import Registry
from bfreplay.saved_state import restorable


@runtime_checkable
class Curve(Protocol):
    """A rate (samples/s, speed-up, any metric) as a function of the number of nodes.

    A curve may have an attribute ``measured``: see `measured_counts`.
    """

    @property
    def last_nodes(self) -> int:
        """Largest node count at which the curve is defined."""
        ...

    def table(self, max_nodes: int) -> NDArray[np.float64]:
        """Values at 0, 1, ..., ``max_nodes``: shape ``(max_nodes + 1,)``; the first is 0."""
        ...


def measured_counts(curve: Curve) -> tuple[int, int] | None:
    """Return the smallest and the largest node count at which ``curve`` was measured; ``None`` if not known."""
    return getattr(curve, "measured", None)


Floats = NDArray[np.float64]

LAST_NODES = 1_000_000
"""Node counts above any machine's. A law holds beyond it; its table is not asked for."""

LARGEST_RATE = 1e30
"""Largest rate, in samples or objective per second: sums over jobs and times stay far from the end of floats."""


class Scaling(StrEnum):
    """Quantity that stays the same while nodes are added."""

    STRONG = "strong"  # the global batch: each node gets a smaller part of it
    WEAK = "weak"  # the batch of each node: the global batch grows
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a law.

    Parameters
    ----------
    name
        Name in files.
    low, high
        Least and largest value, both allowed (``rate_1`` alone has to be above its least).
    meaning
        Meaning in a few words, with the unit.
    """

    name: str
    low: float
    high: float
    meaning: str


RATE_1 = Parameter("rate_1", 0.0, LARGEST_RATE, "rate of one node, samples/s")


class Law(ABC):
    """A curve by a formula: ``rate_1`` times a shape that is 1 at one node.

    A law is a frozen dataclass with a field for each of its ``parameters``, ``rate_1`` first. It fulfils `Curve`.

    Attributes
    ----------
    law
        Its name in files and on the command line.
    scaling
        Scaling that it describes.
    can_fall
        True if the rate at many nodes can end below its peak, within the bounds of the parameters.
    formula
        Formula in one line.
    parameters
        Names, meanings and bounds of the parameters; ``RATE_1`` first.

    Raises
    ------
    InputError
        A parameter is no finite number within its bounds.
    """

    __slots__ = ()
    law: ClassVar[str]
    scaling: ClassVar[Scaling]
    can_fall: ClassVar[bool]
    formula: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]

    @staticmethod
    @abstractmethod
    def shape(nodes: Floats, *parameters: complex) -> NDArray[Any]:
        """Rates at ``nodes`` (at least 1) over that of one node; all parameters but ``rate_1``, in their order.

        Plain arithmetic on arrays, without ``abs``, comparisons and casts: fits give it complex parameters to take
        derivatives (W. Squire and G. Trapp, SIAM Review 40 (1998) 110).
        """

    @staticmethod
    @abstractmethod
    def starts(nodes: Floats, rates: Floats) -> Sequence[Sequence[float]]:
        """Return starting points of a fit: values of all parameters but ``rate_1``, rough estimates."""

    def __post_init__(self) -> None:
        for parameter in self.parameters:
            value, low, high = getattr(self, parameter.name), parameter.low, parameter.high
            is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            is_rate = parameter.name == RATE_1.name
            if not (is_number and math.isfinite(value) and low <= value <= high) or (is_rate and value == 0):
                span = f"> 0, at most {high:g}" if is_rate else f"from {low:g} to {high:g}"
                raise InputError(
                    f"{self.law}: {parameter.name} is out of range",
                    column=parameter.name,
                    value=value,
                    expected=f"{parameter.meaning}: a number {span}",
                )
            object.__setattr__(self, parameter.name, float(value))

    @property
    def values(self) -> tuple[float, ...]:
        """Its parameters in their order."""
        return tuple(getattr(self, parameter.name) for parameter in self.parameters)

    @property
    def last_nodes(self) -> int:
        """Largest node count that a table is made for: more than any machine has."""
        return LAST_NODES

    def rates(self, nodes: Sequence[float] | Floats) -> Floats:
        """Rates at these node counts, each at least 1; the shape is that of ``nodes``."""
        rate_1, *others = self.values
        return np.asarray(rate_1 * self.shape(np.asarray(nodes, dtype=np.float64), *others), dtype=np.float64)

    def table(self, max_nodes: int) -> Floats:
        """Values at 0, 1, ..., ``max_nodes``: shape ``(max_nodes + 1,)``; the first is 0."""
        table = np.zeros(max_nodes + 1)
        table[1:] = self.rates(np.arange(1.0, max_nodes + 1))
        return table


@restorable
@dataclass(frozen=True, slots=True)
class MeasuredLaw:
    """A law with the node counts that it was fitted to; at others it is extrapolated. It fulfils `Curve`.

    Parameters
    ----------
    law
        The law.
    measured
        Smallest and largest measured node count.

    Raises
    ------
    InputError
        The counts are not in order, below 1 or above 1,000,000.
    """

    law: Law
    measured: tuple[int, int]

    def __post_init__(self) -> None:
        first_count, last_count = self.measured
        if not 1 <= first_count <= last_count <= self.last_nodes:
            raise InputError(
                f"{self.law.law}: the measured node counts are out of order or out of range",
                column="measured",
                value=list(self.measured),
                expected=f"the smallest and the largest one, 1 to {self.last_nodes:,}",
            )

    @property
    def last_nodes(self) -> int:
        """Largest node count that a table is made for."""
        return self.law.last_nodes

    def table(self, max_nodes: int) -> Floats:
        """Values at 0, 1, ..., ``max_nodes``, measured there or not: shape ``(max_nodes + 1,)``."""
        return self.law.table(max_nodes)


LAWS = Registry(
    kind="scalability law",
    group="bfreplay.curves",
    needs=("law", "scaling", "can_fall", "formula", "parameters", "shape", "starts", "table"),
    built_in={
        "amdahl": "bfreplay.scalability.laws:Amdahl",
        "gustafson": "bfreplay.scalability.laws:Gustafson",
        "usl": "bfreplay.scalability.laws:UniversalScalability",
        "power": "bfreplay.scalability.laws:PowerLaw",
        "communication-weak": "bfreplay.scalability.laws:CommunicationWeak",
        "communication-strong": "bfreplay.scalability.laws:CommunicationStrong",
    },
)


def find_law(name: str, *, allow_code: bool = True) -> type[Law]:
    """Return the law called ``name``, or at ``package.module:Class``; the latter not from a file, with ``allow_code``.

    Raises
    ------
    InputError
        There is no such law, or it may not or cannot be imported; the message lists those there are.
    """
    return cast(type[Law], LAWS.load(name, allow_code=allow_code))


@cache
def name_of(law: type[Law]) -> str:
    """Return the name that `find_law` finds this law by: its own where it is registered, else its place."""
    try:
        if find_law(law.law, allow_code=False) is law:
            return law.law
    except InputError:
        pass  # its name is not registered, or is that of a law which cannot be imported here
    return f"{law.__module__}:{law.__qualname__}"


def laws_for(scaling: Scaling) -> Sequence[type[Law]]:
    """Every registered law that describes this scaling; all of them for ``EITHER``."""
    laws = [find_law(law_name) for law_name in LAWS.names()]
    return [law for law in laws if scaling in (Scaling.EITHER, law.scaling) or law.scaling is Scaling.EITHER]
