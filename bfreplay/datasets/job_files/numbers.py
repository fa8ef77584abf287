"""Numbers in cells of tables."""

from __future__ import annotations

from typing import Any

from bfreplay.errors import InputError


def number_of(value: Any, column: str) -> float:
    """Return the number given as number or text; InputError for anything else."""
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise InputError(
            "this is no number", column=column, value=value, expected="a number", fix=_number_fix(value)
        ) from None


def _number_fix(value: Any) -> str:
    if isinstance(value, str) and value.count(",") == 1 and value.replace(",", "").strip("+- ").isdigit():
        return f"write a decimal point, not a comma: {value.strip().replace(',', '.')}"
    return "write it in digits with a decimal point, such as 18.5"
