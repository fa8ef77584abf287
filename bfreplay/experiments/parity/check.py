"""Checks of parity: items compared, items that agree, and reasons why others do not."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

import bfreplay
from bfreplay.errors import BfreplayError, InputError
from bfreplay.registry import built_in

DATA_VARIABLE = "BFREPLAY_SHARED"
"""Environment variable with the folder of the recorded results."""

SYSTEMS: Mapping[str, str] = {
    "bftrainer": "bfreplay.experiments.parity.bftrainer:checks",
    "gavel": "bfreplay.experiments.parity.gavel:checks",
    "shockwave": "bfreplay.experiments.parity.shockwave:checks",
    "elasticflow": "bfreplay.experiments.parity.elasticflow:checks",
}
"""Function ``(data, *, quick)`` of each published system: yields its checks, quick ones in seconds."""

Many = Mapping[Any, Any] | Sequence[Any]
"""Items by name, or in order."""

T = TypeVar("T")


@dataclass(slots=True)
class Check:
    """Comparison of one kind of items: one row of the table. ``compare`` and ``compare_all`` add items.

    Parameters
    ----------
    what
        Description, with the unit that ``n`` counts.
    n, n_equal
        Numbers of items compared, and of items that agree.
    tolerance
        Largest difference of numbers that agree: relative, and absolute for numbers below 1; 0: equal to the last bit.
    largest_difference
        Largest difference among items that agree.
    differences
        Number of items by known reason of their difference; 0 for items that cannot be compared at all.
    unexplained
        Items that differ without a known reason, and their differences.
    seconds
        Time of the check.
    notes
        Reasons in ``differences`` that no item can show, such as missing records.
    """

    what: str
    n: int = 0
    n_equal: int = 0
    tolerance: float = 0.0
    largest_difference: float = 0.0
    differences: dict[str, int] = field(default_factory=dict)
    unexplained: list[str] = field(default_factory=list)
    seconds: float = 0.0
    notes: InitVar[Sequence[str]] = ()

    def __post_init__(self, notes: Sequence[str]) -> None:
        self.differences |= dict.fromkeys(notes, 0)

    @property
    def n_named(self) -> int:
        """Number of items that differ for a reason in ``differences``."""
        return sum(self.differences.values())

    @property
    def has_failed(self) -> bool:
        """True if an item differs without a known reason, or nothing was compared."""
        return self.n == 0 or self.n_equal + self.n_named < self.n

    @property
    def digits(self) -> int | None:
        """Decimal digits to which the agreeing items agree; ``None``: they are equal to the last bit."""
        return None if self.largest_difference == 0 else math.floor(-math.log10(self.largest_difference))

    def compare(self, item: str, ours: Any, recorded: Any, known: str | None = None) -> None:
        """Compare one item with its record, see ``difference``; ``known``: the reason of a known difference."""
        by = difference(ours, recorded)
        self.n += 1
        if by <= self.tolerance:
            self.n_equal += 1
            self.largest_difference = max(self.largest_difference, by)
        elif known is not None:
            self.differences[known] = self.differences.get(known, 0) + 1
        else:
            self.unexplained.append(f"{item}: {'not the same' if math.isinf(by) else f'differs by {by:.1e}'}")

    def compare_all(
        self, name: str, ours: Many, recorded: Many, known: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Compare items one by one, by key or position; a missing item differs.

        ``known`` has the reasons of known differences by item: ``name`` and the key.
        """
        new, old = (each if isinstance(each, Mapping) else dict(enumerate(each)) for each in (ours, recorded))
        for key in [*old, *(key for key in new if key not in old)]:
            item = f"{name} {key}"
            self.compare(item, new.get(key, "missing here"), old.get(key, "not recorded"), known.get(item))

    @contextmanager
    def attempt(self, item: str) -> Iterator[None]:
        """Count ``item`` as different if repeating it stops with an error, as it may with wrong records."""
        try:
            yield
        except (BfreplayError, LookupError, ValueError) as error:
            self.n += 1
            self.unexplained.append(f"{item}: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}")


@dataclass(frozen=True, slots=True)
class SystemParity:
    """Checks of one system; none if its data are missing: ``absent`` is their folder."""

    system: str
    checks: tuple[Check, ...] = ()
    absent: str = ""

    @property
    def has_failed(self) -> bool:
        """True if a check failed."""
        return any(check.has_failed for check in self.checks)


def check_runs(
    what: str,
    runs: Mapping[str, T],
    unit: str,
    answers: Callable[[T], tuple[Any, Any]],
    tolerance: float = 0.0,
    *,
    notes: Sequence[str] = (),
    known: Mapping[str, str] = MappingProxyType({}),
) -> Check:
    """Compare the items of each run, ours and recorded by ``answers``; without a ``unit`` a run is one item."""
    check = Check(what, tolerance=tolerance, notes=notes)
    for name, run in runs.items():
        with check.attempt(name):
            ours, recorded = answers(run)
            if unit:
                check.compare_all(f"{name}, {unit}", ours, recorded, known)
            else:
                check.compare(name, ours, recorded)
    return check


def difference(ours: Any, recorded: Any) -> float:
    """Return the largest difference of numbers in two nested values of one shape; infinite if anything else differs.

    It is relative, and absolute for recorded numbers below 1; for different whole numbers it is infinite.
    """
    if isinstance(ours, np.ndarray) or isinstance(recorded, np.ndarray):
        return _array_difference(np.asarray(ours), np.asarray(recorded))
    if isinstance(recorded, Mapping):
        if not isinstance(ours, Mapping) or ours.keys() != recorded.keys():
            return math.inf
        return max((difference(ours[key], recorded[key]) for key in recorded), default=0.0)
    if isinstance(recorded, list | tuple):
        if not isinstance(ours, list | tuple) or len(ours) != len(recorded):
            return math.inf
        return max((difference(a, b) for a, b in zip(ours, recorded, strict=True)), default=0.0)
    if ours == recorded:
        return 0.0
    if not all(isinstance(each, int | float) for each in (ours, recorded)) or not isinstance(ours + recorded, float):
        return math.inf
    by = abs(ours - recorded) / max(1.0, abs(recorded))
    return math.inf if math.isnan(by) else by


def _array_difference(ours: np.ndarray, recorded: np.ndarray) -> float:
    if ours.shape != recorded.shape:
        return math.inf
    by = np.abs(ours - recorded) / np.maximum(1.0, np.abs(recorded))
    by[ours == recorded] = 0.0
    return float(np.nan_to_num(by, nan=math.inf).max(initial=0.0))


def data_folder(given: Path | None) -> Path:
    """Return the folder of the recorded results: ``given``, or that of the environment, or ``../shared``.

    Raises
    ------
    InputError
        No such folder.
    """
    named = os.environ.get(DATA_VARIABLE)
    folder = given or (Path(named) if named else Path(bfreplay.__file__).resolve().parents[2] / "shared")
    if not (folder / "golden").is_dir():
        raise InputError(
            "the recorded results of the published systems were not found",
            file=folder,
            value=str(folder),
            expected="a folder with golden/bftrainer, data/bftrainer and so on",
            fix=f"give the folder by --data FOLDER, or by the environment variable {DATA_VARIABLE}",
        )
    return folder


def parity(
    data: Path, systems: Sequence[str] = (), *, quick: bool = False, progress: Callable[[str, str], None] | None = None
) -> list[SystemParity]:
    """Repeat the records of the published systems.

    Parameters
    ----------
    data
        Folder with ``golden/SYSTEM`` and ``data/SYSTEM``.
    systems
        Names of systems; by default all that are recorded there.
    quick
        Repeat only a part of each that takes seconds.
    progress
        Called with the system and the last check; first with an empty text.

    Raises
    ------
    InputError
        An unknown system, or no data of a named one.
    """
    for name in systems:
        if name not in SYSTEMS:
            raise InputError(f"unknown published system {name!r}", value=name, expected=f"one of {', '.join(SYSTEMS)}")
    return [_check_system(data, name, name in systems, quick, progress) for name in systems or SYSTEMS]


def _check_system(
    data: Path, name: str, is_asked_for: bool, quick: bool, progress: Callable[[str, str], None] | None
) -> SystemParity:
    for folder in (data / "golden" / name, data / "data" / name):
        if not folder.is_dir():
            if is_asked_for:
                raise InputError(
                    f"the data of {name} were not found",
                    file=folder,
                    value=str(folder),
                    expected="its recorded results and their inputs",
                    fix="add them, or give no name: all systems with data are then compared",
                )
            return SystemParity(name, absent=str(folder))
    checks: Callable[..., Iterator[Check]] = built_in(SYSTEMS[name])
    return SystemParity(name, tuple(_with_seconds(checks(data, quick=quick), name, progress)))


def _with_seconds(checks: Iterable[Check], name: str, progress: Callable[[str, str], None] | None) -> Iterator[Check]:
    """Yield the checks with the seconds of each."""
    if progress is not None:
        progress(name, "")
    begun = perf_counter()
    for check in checks:
        if progress is not None:
            progress(name, check.what)
        check.seconds = perf_counter() - begun
        yield check
        begun = perf_counter()
