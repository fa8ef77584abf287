"""Checks of parity: what was compared, how much of it agrees, and why the rest does not."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol

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
"""A published system, and the function ``(data, quick)`` that yields its checks."""

Many = Mapping[Any, Any] | Sequence[Any]
"""Items by name, or in order."""


class Checks(Protocol):
    """The checks of a published system, one after the other."""

    def __call__(self, data: Path, *, quick: bool) -> Iterator[Check]:
        """Repeat what is recorded in ``data``; ``quick``: a part of it that takes seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Difference:
    """A named difference: the reason, one sentence, and of how many items; 0 for what cannot be compared at all."""

    reason: str
    n: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table.

    Parameters
    ----------
    what
        What was compared, with the unit that ``n`` counts.
    n, n_equal
        How many were compared, and how many agree.
    tolerance
        Largest difference of numbers that agree: relative, and absolute for numbers below 1; 0: equal to the last bit.
    largest_difference
        The largest one seen among those that agree.
    differences
        Named differences that were seen, and what cannot be compared.
    unexplained
        Those that do not agree for no known reason, and by how much.
    seconds
        Time that the check took.
    """

    what: str
    n: int
    n_equal: int
    tolerance: float = 0.0
    largest_difference: float = 0.0
    differences: tuple[Difference, ...] = ()
    unexplained: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def n_named(self) -> int:
        """How many do not agree for a reason that ``differences`` names."""
        return sum(each.n for each in self.differences)

    @property
    def failed(self) -> bool:
        """Whether something differs without a known reason, or nothing was compared."""
        return self.n == 0 or self.n_equal + self.n_named < self.n

    @property
    def digits(self) -> int | None:
        """Decimal digits to which all that agree do so; ``None``: all of them are equal to the last bit."""
        return None if self.largest_difference == 0 else math.floor(-math.log10(self.largest_difference))


@dataclass(frozen=True, slots=True)
class SystemParity:
    """The checks of one system; ``absent`` says which data are not there, and then there are none."""

    system: str
    checks: tuple[Check, ...] = ()
    absent: str = ""

    @property
    def failed(self) -> bool:
        """Whether a check failed."""
        return any(check.failed for check in self.checks)


class Tally:
    """Counts what agrees, item by item, into a check.

    Parameters
    ----------
    what
        What is compared, with the unit that is counted.
    tolerance
        Largest difference of numbers that agree, as in ``Check``.
    notes
        Differences that no item can show, such as cases that were not recorded.
    """

    def __init__(self, what: str, tolerance: float = 0.0, notes: Sequence[str] = ()) -> None:
        self._what, self._tolerance = what, tolerance
        self._seen = dict.fromkeys(notes, 0)
        self._n = self._n_equal = 0
        self._largest = 0.0
        self._unexplained: list[str] = []

    def compare(self, item: str, ours: Any, recorded: Any, known: str | None = None) -> None:
        """Compare one item with its record, see ``difference``; ``known`` is the reason, if one is known to differ."""
        by = difference(ours, recorded)
        self._n += 1
        if by <= self._tolerance:
            self._n_equal += 1
            self._largest = max(self._largest, by)
        elif known is not None:
            self._seen[known] = self._seen.get(known, 0) + 1
        else:
            self._unexplained.append(f"{item}: {'not the same' if math.isinf(by) else f'differs by {by:.1e}'}")

    def compare_all(
        self, name: str, ours: Many, recorded: Many, known: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Compare items one by one, by key or position; one that is missing on a side differs.

        ``name`` and the key are an item's name, by which ``known`` has the reasons for known differences.
        """
        mine, theirs = (each if isinstance(each, Mapping) else dict(enumerate(each)) for each in (ours, recorded))
        for key in [*theirs, *(key for key in mine if key not in theirs)]:
            item = f"{name} {key}"
            self.compare(item, mine.get(key, "missing here"), theirs.get(key, "not recorded"), known.get(item))

    @contextmanager
    def attempt(self, item: str) -> Iterator[None]:
        """Count ``item`` as differing where repeating it stops with an error, as wrong records make it do."""
        try:
            yield
        except (BfreplayError, LookupError, ValueError) as error:
            self._n += 1
            self._unexplained.append(f"{item}: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}")

    def check(self) -> Check:
        """What was counted."""
        seen = tuple(Difference(reason, n) for reason, n in self._seen.items())
        return Check(self._what, self._n, self._n_equal, self._tolerance, self._largest, seen, tuple(self._unexplained))


def difference(ours: Any, recorded: Any) -> float:
    """Largest difference of the numbers in two nested values of one shape; infinite where anything else differs.

    It is relative, and absolute for recorded numbers below 1. Two whole numbers are equal or infinitely far apart.
    """
    if isinstance(ours, np.ndarray) or isinstance(recorded, np.ndarray):
        return _of_arrays(np.asarray(ours), np.asarray(recorded))
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


def _of_arrays(ours: np.ndarray, recorded: np.ndarray) -> float:
    if ours.shape != recorded.shape:
        return math.inf
    by = np.abs(ours - recorded) / np.maximum(1.0, np.abs(recorded))
    by[ours == recorded] = 0.0
    return float(np.nan_to_num(by, nan=math.inf).max(initial=0.0))


def data_folder(asked: Path | None) -> Path:
    """The folder of the recorded results: ``asked``, or that of the environment, or ``shared`` beside the checkout.

    Raises
    ------
    InputError
        It is not there.
    """
    named = os.environ.get(DATA_VARIABLE)
    folder = asked or (Path(named) if named else Path(bfreplay.__file__).resolve().parents[2] / "shared")
    if not (folder / "golden").is_dir():
        raise InputError(
            "the recorded results of the published systems are not there", file=folder, value=str(folder),
            expected="a folder with golden/bftrainer, data/bftrainer and so on",
            fix=f"name the folder with --data FOLDER, or in the environment variable {DATA_VARIABLE}",
        )  # fmt: skip
    return folder


def parity(
    data: Path, systems: Sequence[str] = (), *, quick: bool = False, progress: Callable[[str, str], None] | None = None
) -> list[SystemParity]:
    """Repeat what is recorded of the published systems.

    Parameters
    ----------
    data
        The folder with ``golden/SYSTEM`` and ``data/SYSTEM``.
    systems
        Which; all that are recorded there where none is named.
    quick
        Only a part of each that takes seconds.
    progress
        Called with the system and what was compared last; at first with an empty text.

    Raises
    ------
    InputError
        An unknown system, or one that was asked for by name has no data.
    """
    for name in systems:
        if name not in SYSTEMS:
            raise InputError(f"unknown published system {name!r}", value=name, expected=f"one of {', '.join(SYSTEMS)}")
    return [_of_system(data, name, name in systems, quick, progress) for name in systems or SYSTEMS]


def _of_system(
    data: Path, name: str, is_asked_for: bool, quick: bool, progress: Callable[[str, str], None] | None
) -> SystemParity:
    for folder in (data / "golden" / name, data / "data" / name):
        if not folder.is_dir():
            if is_asked_for:
                raise InputError(
                    f"the data of {name} are not there", file=folder, value=str(folder),
                    expected="its recorded results and their inputs",
                    fix="add them, or leave the system out: without names, all systems that are there are compared",
                )  # fmt: skip
            return SystemParity(name, absent=str(folder))
    checks: Checks = built_in(SYSTEMS[name])
    return SystemParity(name, tuple(_told(checks(data, quick=quick), name, progress)))


def _told(checks: Iterable[Check], name: str, progress: Callable[[str, str], None] | None) -> Iterator[Check]:
    """Checks as they come, with the seconds that each took."""
    if progress is not None:
        progress(name, "")
    begun = perf_counter()
    for check in checks:
        if progress is not None:
            progress(name, check.what)
        yield replace(check, seconds=perf_counter() - begun)
        begun = perf_counter()
