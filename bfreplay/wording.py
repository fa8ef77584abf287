"""Numbers as people read them, the same in every text."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

_LARGEST_WHOLE = 1e12


def count(n: int, word: str) -> str:
    """``1 node``, ``4,734 nodes``."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def amount(value: float) -> str:
    """One decimal from 10 on, three digits below: what is small must not print as zero."""
    return f"{value:,.1f}" if value >= 10 or value == 0 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """``45 s``, ``7.9 min``, ``3.4 h``, ``14.9 days``."""
    for unit, length in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{amount(seconds / length)} {unit}"
    return f"{seconds:.3g} s"


def maybe_duration(seconds: float) -> str:
    """A length of time, or a dash where there is none."""
    return "-" if math.isnan(seconds) else duration(seconds)


def samples(value: float) -> str:
    """Samples, or amounts of an objective: ``0``, ``0.25``, ``1,234``, ``1.5e+15``."""
    if abs(value) >= _LARGEST_WHOLE:
        return f"{value:.4g}"
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{'-' if value < 0 else ''}{amount(abs(value))}"


def digits(value: float) -> str:
    """Four digits: ``2,815``, ``0.02015``, ``1.2e-05``; ``inf`` for infinity."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.4g}"


def labelled(lines: Iterable[tuple[str, str]], width: int = 12) -> list[str]:
    """Lines such as ``Seconds     0.51``, of what each begins with and what it says, one text below the other."""
    return [f"{label:<{width}}{text}" for label, text in lines]


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Lines of a table whose cells stand below one another, those of the columns ``left`` at their left edge."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def paragraphs(blocks: Iterable[Sequence[str]]) -> str:
    """Blocks of lines with an empty line between them; blocks without lines are left out."""
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)
