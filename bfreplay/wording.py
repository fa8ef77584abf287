"""Text forms of numbers and tables, the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

_LARGEST_WHOLE = 1e12


def count(n: int, word: str) -> str:
    """Return a number with its noun: ``1 node``, ``4,734 nodes``."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def amount(value: float) -> str:
    """Three significant digits: ``1,660``, ``25.7``, ``3.40``, ``7.98e+09``; counts, and whole below 1,000, exactly."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value) or (abs(value) < 1_000 and math.isclose(value, round(value), rel_tol=1e-9)):
        return f"{value:.0f}"
    exponent = int(f"{value:.2e}".partition("e")[2])
    if not -4 <= exponent < 7:
        return f"{value:.2e}"
    return f"{round(value, 2 - exponent):,.{max(0, 2 - exponent)}f}"


def signed_amount(value: float) -> str:
    """Three significant digits with the sign: ``+12.3``, ``-0.05``, ``0``."""
    return f"{'+' if value > 0 else ''}{amount(value)}"


def percent(share: float) -> str:
    """Three significant digits, such as ``12.3 %``; ``99.9 %`` for what is less than all but would round to it."""
    return "99.9 %" if 0.9995 <= share < 1 else f"{amount(share * 100)} %"


def parts_of_whole(values: Sequence[float]) -> list[str]:
    """Return the parts of a whole, rounded so that their sum is the rounded whole.

    With one decimal, three for a whole below 10, none if all are whole numbers.

    The exception to the three digits of `amount`: a reader adds a ledger up. By largest remainders.
    """
    is_whole = all(math.isclose(value, round(value), abs_tol=1e-9) for value in values)
    decimals = 0 if is_whole else 1 if sum(values) >= 10 else 3
    scaled_values = [value * 10**decimals for value in values]
    units = [math.floor(scaled_value) for scaled_value in scaled_values]
    largest_remainders = sorted(range(len(values)), key=lambda position: units[position] - scaled_values[position])
    for position in largest_remainders[: round(sum(scaled_values)) - sum(units)]:
        units[position] += 1
    return [f"{unit / 10**decimals:,.{decimals}f}" for unit in units]


def duration(seconds: float) -> str:
    """Return a length of time: ``45 s``, ``7.9 min``, ``3.4 h``, ``14.9 days``."""
    for unit_name, length in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{amount(seconds / length)} {unit_name}"
    return f"{amount(seconds)} s"


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
            cell_text.ljust(width) if number in left else cell_text.rjust(width)
            for number, (cell_text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def paragraphs(blocks: Iterable[Sequence[str]]) -> str:
    """Join blocks of lines with empty lines between them, without empty blocks."""
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)
