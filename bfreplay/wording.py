"""Text forms of numbers and tables, the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

_LARGEST_WHOLE = 1e12


def count(n: int, word: str) -> str:
    """Return a number with its noun: ``1 node``, ``4,734 nodes``."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def amount(value: float) -> str:
    """One decimal from 10 on, three digits below: what is small must not print as zero."""
    return f"{value:,.1f}" if value >= 10 or value == 0 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Return a length of time: ``45 s``, ``7.9 min``, ``3.4 h``, ``14.9 days``."""
    for unit, length in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{amount(seconds / length)} {unit}"
    return f"{seconds:.3g} s"


def maybe_duration(seconds: float) -> str:
    """Return a length of time, or a dash for nan."""
    return "-" if math.isnan(seconds) else duration(seconds)


def samples(value: float) -> str:
    """Return samples, or amounts of an objective, as text: ``0``, ``0.25``, ``1,234``, ``1.5e+15``."""
    if abs(value) >= _LARGEST_WHOLE:
        return f"{value:.4g}"
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{'-' if value < 0 else ''}{amount(abs(value))}"


def digits(value: float) -> str:
    """Return four digits: ``2,815``, ``0.02015``, ``1.2e-05``; ``inf`` for infinity."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.4g}"


def labelled_lines(lines: Iterable[tuple[str, str]], width: int = 12) -> list[str]:
    """Return lines such as ``Seconds     0.51``, from label and text."""
    return [f"{label:<{width}}{text}" for label, text in lines]


def aligned_lines(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return the lines of a table, the columns ``left`` aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def paragraphs(blocks: Iterable[Sequence[str]]) -> str:
    """Join blocks of lines with empty lines between them, without empty blocks."""
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)
