"""Scalability laws in files: ``amdahl(rate_1=2831.0, serial=0.02)``, or a table with the key ``law``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bfreplay.checks import decimal, nearest
from bfreplay.errors import InputError
from bfreplay.scalability import Law, MeasuredLaw, find_law, name_of

LAW_KEY = "law"
MEASURED_KEY = "measured"
"""Smallest and largest node count that the law was fitted to: ``[64, 1024]``, or ``64:1024`` in a cell of text."""
_CALL = re.compile(r"\s*([^\s()=,]+)\s*\((.*)\)\s*", re.DOTALL)
_EXAMPLE = "a law such as amdahl(rate_1=2831, serial=0.02)"


def is_law(cell: Any) -> bool:
    """Return whether a cell holds a law, as text or as a table, valid or not."""
    if isinstance(cell, Mapping):
        return LAW_KEY in cell
    return isinstance(cell, str) and "(" in cell


def law_of(cell: Any, *, allow_code: bool = False) -> Law | MeasuredLaw:
    """Return the law in a cell for which ``is_law`` is true.

    Parameters
    ----------
    cell
        ``"amdahl(rate_1=2831, serial=0.02)"`` (commas, spaces or both between the parameters), or
        ``{"law": "amdahl", "rate_1": 2831, "serial": 0.02}``. Either may have ``measured`` as well.
    allow_code
        True if the law may be code to import, ``package.module:Class``.

    Raises
    ------
    InputError
        An unknown law, or one that may not be imported; a parameter that is unknown, missing, repeated, not a number or
        out of range.
    """
    if isinstance(cell, Mapping):
        name, given = cell[LAW_KEY], {str(key): value for key, value in cell.items() if key != LAW_KEY}
        if not isinstance(name, str):
            raise InputError("the name of the law is not text", column=LAW_KEY, value=name, expected='law = "amdahl"')
    else:
        name, given = _parts(cell)
    law = find_law(name, allow_code=allow_code)
    measured = given.pop(MEASURED_KEY, None)
    wanted = [parameter.name for parameter in law.parameters]
    for key in given:
        if key not in wanted:
            raise InputError(
                f"the law {name} has no parameter {key!r}",
                column=key,
                value=given[key],
                expected=", ".join(wanted),
                fix=nearest(key, wanted, "drop it, or choose another law"),
            )
    for key in wanted:
        if key not in given:
            raise InputError(
                f"the law {name} lacks its parameter {key!r}",
                column=key,
                value=cell if isinstance(cell, str) else dict(cell),
                expected=", ".join(wanted),
                fix=f"add {key}: {next(parameter.meaning for parameter in law.parameters if parameter.name == key)}",
            )
    plain = law(**{key: number_of(given[key], key) for key in wanted})
    return plain if measured is None else MeasuredLaw(plain, _counts(measured))


def law_cells(curve: Law | MeasuredLaw) -> dict[str, str | float | list[int]]:
    """Return a law as a table, from which ``law_of`` makes the same one."""
    law = curve.law if isinstance(curve, MeasuredLaw) else curve
    cells: dict[str, str | float | list[int]] = {LAW_KEY: name_of(type(law))}
    cells |= {each.name: value for each, value in zip(law.parameters, law.values, strict=True)}
    return cells | ({MEASURED_KEY: list(curve.measured)} if isinstance(curve, MeasuredLaw) else {})


def law_text(curve: Law | MeasuredLaw) -> str:
    """Return a law as ``"amdahl(rate_1=2831.0, serial=0.02)"``, from which ``law_of`` makes the same one."""
    cells = law_cells(curve)
    name = cells.pop(LAW_KEY)
    if isinstance(curve, MeasuredLaw):
        cells[MEASURED_KEY] = ":".join(map(str, curve.measured))
    inside = ", ".join(f"{key}={value}" for key, value in cells.items())
    return f"{name}({inside})"


def _counts(cell: Any) -> tuple[int, int]:
    counts = cell.split(":") if isinstance(cell, str) else cell
    if isinstance(counts, list) and len(counts) == 2:
        numbers = [number_of(count, MEASURED_KEY) for count in counts]
        if all(number.is_integer() for number in numbers):
            return int(numbers[0]), int(numbers[1])
    raise InputError(
        "the measured node counts are not two whole numbers",
        column=MEASURED_KEY,
        value=cell,
        expected="the smallest and the largest one: 64:1024 in text, [64, 1024] in TOML",
    )


def _parts(text: str) -> tuple[str, dict[str, str]]:
    match = _CALL.fullmatch(text)
    if match is None:
        raise InputError("a law is unreadable", value=text, expected=_EXAMPLE, fix="close the parenthesis after it")
    name, inside = match.groups()
    given: dict[str, str] = {}
    for part in re.sub(r"\s*=\s*", "=", inside).replace(",", " ").split():
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise InputError(
                f"a parameter of the law {name} has no name or no value",
                value=part,
                expected=_EXAMPLE,
                fix="write NAME=VALUE for each parameter, with a decimal point in the value",
            )
        if key in given:
            raise InputError(
                f"the parameter {key!r} of the law {name} is given twice", column=key, value=text, fix="drop one"
            )
        given[key] = value
    return name, given


def number_of(value: Any, column: str) -> float:
    """Return a number given as number or text; InputError for anything else."""
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        return decimal(value) if isinstance(value, str) else float(value)
    except (ValueError, OverflowError):
        raise InputError(
            "this is not a number", column=column, value=value, expected="a number", fix=_number_fix(value)
        ) from None


def _number_fix(value: Any) -> str:
    if isinstance(value, str) and value.count(",") == 1 and value.replace(",", "").strip("+- ").isdigit():
        return f"write a decimal point, not a comma: {value.strip().replace(',', '.')}"
    return "write it in digits with a decimal point, such as 18.5"
