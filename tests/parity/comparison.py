"""Figures beside their records, each with a tolerance of its own: what agrees, what differs, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from bfreplay.errors import BfreplayError

Many = Mapping[Any, Any] | Sequence[Any]
"""Items by name, or in order."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Largest difference of a figure that agrees with its record.

    Parameters
    ----------
    limit
        Difference of numbers: relative, and absolute for numbers below 1; everything else has to be equal.
    is_absolute
        The limit is absolute for all numbers.
    reason
        Why the figure is not the recorded one to the last bit.
    """

    limit: float = 0.0
    is_absolute: bool = False
    reason: str = ""


EXACT = Tolerance()
ANY = Tolerance(math.inf)
ROUNDING = Tolerance(1e-9, reason="sums in another order")


def printed(n_decimals: int, reason: str = "") -> Tolerance:
    """Return the tolerance of a figure that the record holds with ``n_decimals``: half of the last one."""
    half = 0.5 * 10.0**-n_decimals * (1 + 1e-6)  # the half itself is rounded, up or down
    return Tolerance(half, is_absolute=True, reason=reason or f"printed with {n_decimals} decimals")


@dataclass(frozen=True, slots=True)
class Reason:
    """Known reason of a difference, and the largest difference that it explains, by figure or of any figure."""

    text: str
    explains: Mapping[str, Tolerance] | Tolerance

    def explains_all(self, ours: Mapping[str, Any], recorded: Mapping[str, Any], figures: Iterable[str]) -> bool:
        """Return whether it explains the differences of these figures."""
        limits = self.explains if isinstance(self.explains, Mapping) else dict.fromkeys(figures, self.explains)
        return all(
            name in limits and _distance(ours[name], recorded[name], limits[name]) <= limits[name].limit
            for name in figures
        )


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One row of the table: items of one kind.

    Parameters
    ----------
    what
        Description of the items, and of what is compared of each.
    figures
        Tolerance of each figure of an item; without names, an item is one figure.
    notes
        Reasons that no item can show, such as missing records.
    """

    what: str
    figures: Mapping[str, Tolerance] | Tolerance
    notes: Sequence[str] = ()


@dataclass(slots=True)
class Tally:
    """Items of a comparison so far.

    Parameters
    ----------
    n, n_equal
        Numbers of items compared, and of items that agree.
    largest_difference
        Largest relative difference among figures that agree.
    differences
        Number of items by known reason of their difference.
    unexplained
        Items that differ without a known reason, and their figures.
    """

    n: int = 0
    n_equal: int = 0
    largest_difference: float = 0.0
    differences: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    @property
    def n_named(self) -> int:
        """Number of items that differ for a known reason."""
        return self.differences.total()

    @property
    def has_failed(self) -> bool:
        """True if an item differs without a known reason, or nothing was compared."""
        return self.n == 0 or self.n_equal + self.n_named < self.n

    @property
    def digits(self) -> int | None:
        """Decimal digits to which the agreeing items agree; ``None``: they are equal to the last bit."""
        return None if self.largest_difference == 0 else math.floor(-math.log10(self.largest_difference))


class Table:
    """Tallies of comparisons; ``compare`` and ``compare_all`` add items."""

    def __init__(self) -> None:
        self.tallies: dict[Comparison, Tally] = {}

    def of(self, comparison: Comparison) -> Tally:
        """Return the tally of a comparison."""
        return self.tallies.setdefault(comparison, Tally())

    def add(self, other: Table) -> None:
        """Add the items of another table."""
        for comparison, more in other.tallies.items():
            tally = self.of(comparison)
            tally.n += more.n
            tally.n_equal += more.n_equal
            tally.largest_difference = max(tally.largest_difference, more.largest_difference)
            tally.differences.update(more.differences)
            tally.unexplained += more.unexplained

    def compare(self, comparison: Comparison, item: str, ours: Any, recorded: Any, known: Reason | None = None) -> None:
        """Compare one item with its record: a mapping by figure, or the one figure.

        Beyond its tolerances an item differs for the reason ``known``, within the tolerances of that.
        """
        figures, tally = comparison.figures, self.of(comparison)
        tally.n += 1
        if isinstance(figures, Tolerance):
            figures, ours, recorded = {"": figures}, {"": ours}, {"": recorded}
        if not (isinstance(ours, Mapping) and isinstance(recorded, Mapping)):
            tally.unexplained.append(f"{item}: {ours if isinstance(ours, str) else recorded}")
            return
        if not figures.keys() == ours.keys() == recorded.keys():
            raise ValueError(f"{item}: other figures than {', '.join(figures)}")
        wrong = {name: _distance(ours[name], recorded[name], each) for name, each in figures.items()}
        wrong = {name: by for name, by in wrong.items() if by > figures[name].limit}
        if not wrong:
            tally.n_equal += 1
            by = max(difference(ours[name], recorded[name]) for name in figures)
            tally.largest_difference = max(tally.largest_difference, by)
        elif known and known.explains_all(ours, recorded, wrong):
            tally.differences[known.text] += 1
        else:
            texts = (
                f"{name} {'not the same' if math.isinf(by) else f'differs by {by:.1e}'}".strip()
                for name, by in wrong.items()
            )
            tally.unexplained.append(f"{item}: {', '.join(texts)}")

    def compare_all(
        self,
        comparison: Comparison,
        name: str,
        ours: Many,
        recorded: Many,
        known: Mapping[str, Reason] = MappingProxyType({}),
    ) -> None:
        """Compare items one by one, by key or position; a missing item differs.

        ``known`` has the reasons of known differences by item: ``name`` and the key.
        """
        new, old = (each if isinstance(each, Mapping) else dict(enumerate(each)) for each in (ours, recorded))
        for key in [*old, *(key for key in new if key not in old)]:
            item = f"{name} {key}"
            self.compare(comparison, item, new.get(key, "missing here"), old.get(key, "not recorded"), known.get(item))

    @contextmanager
    def attempt(self, comparison: Comparison, item: str) -> Iterator[None]:
        """Count ``item`` as different if repeating it stops with an error, as it may with wrong records."""
        try:
            yield
        except (BfreplayError, LookupError, ValueError) as error:
            tally = self.of(comparison)
            tally.n += 1
            tally.unexplained.append(f"{item}: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}")


def difference(ours: Any, recorded: Any, *, is_absolute: bool = False) -> float:
    """Return the largest difference of numbers in two nested values of one shape; infinite if anything else differs.

    It is relative, and absolute for recorded numbers below 1 or if asked for; for different whole numbers infinite.
    """
    if isinstance(ours, np.ndarray) or isinstance(recorded, np.ndarray):
        return _array_difference(np.asarray(ours), np.asarray(recorded), is_absolute)
    if isinstance(recorded, Mapping):
        if not isinstance(ours, Mapping) or ours.keys() != recorded.keys():
            return math.inf
        return max((difference(ours[key], recorded[key], is_absolute=is_absolute) for key in recorded), default=0.0)
    if isinstance(recorded, list | tuple):
        if not isinstance(ours, list | tuple) or len(ours) != len(recorded):
            return math.inf
        pairs = zip(ours, recorded, strict=True)
        return max((difference(a, b, is_absolute=is_absolute) for a, b in pairs), default=0.0)
    if ours == recorded:
        return 0.0
    if not all(isinstance(each, int | float) for each in (ours, recorded)) or not isinstance(ours + recorded, float):
        return math.inf
    by = abs(ours - recorded) / (1.0 if is_absolute else max(1.0, abs(recorded)))
    return math.inf if math.isnan(by) else by


def _array_difference(ours: np.ndarray, recorded: np.ndarray, is_absolute: bool) -> float:
    if ours.shape != recorded.shape:
        return math.inf
    by = np.abs(ours - recorded) / (1.0 if is_absolute else np.maximum(1.0, np.abs(recorded)))
    by[ours == recorded] = 0.0
    return float(np.nan_to_num(by, nan=math.inf).max(initial=0.0))


def _distance(ours: Any, recorded: Any, tolerance: Tolerance) -> float:
    return difference(ours, recorded, is_absolute=tolerance.is_absolute)
