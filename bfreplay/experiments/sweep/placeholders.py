"""Cells of a sweep's tables; placeholders in the text of options, as in ``jobs = "gavel(n=10, seed={draw})"``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import OPTION_NAMES
from bfreplay.options import option_name
from bfreplay.runs.headline_metrics import COLUMNS
from bfreplay.runs.run_record import Seconds

OF_STATE = ("id", "status", "error")

RESULT_COLUMNS = frozenset((*OF_STATE, *COLUMNS, "warnings"))
"""Columns of the results, without those of options that vary."""

SECONDS = tuple(name for name in Seconds.__struct_fields__ if name not in ("isolated_s", "ideal_s"))
"""Measured seconds of each run."""


Cell = str | float | int | bool | None


def cell_of(value: object) -> Cell:
    """Return the value of an option as one cell."""
    if isinstance(value, tuple):  # a window, as ISO-8601 writes an interval; or a range of jobs
        return ("/" if any(isinstance(item, str) for item in value) else ":").join(map(str, value))
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def text_of(cell: Cell) -> str:
    """Return a cell as text: ``60``, ``0.5``, ``true``, ``auto``; empty for ``None``."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return repr(cell).removesuffix(".0")
    return str(cell)


_BRACE = re.compile(r"\{\{|\}\}|\{([A-Za-z]\w*)\}")


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a value, at any depth of its lists and tables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Iterable):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(item)


def placeholders_in(value: object) -> Iterator[str]:
    """Return the names in braces in every text of a value, at any depth; ``{{`` and ``}}`` are literal braces."""
    return (match[1] for text in texts_in(value) for match in _BRACE.finditer(text) if match[1] is not None)


def parameters_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a spec, in order of appearance.

    Raises
    ------
    InputError
        One has the name of an option or of a column of the results.
    """
    names = tuple(dict.fromkeys(placeholders_in(document)))
    for parameter in names:
        is_option = option_name(parameter) in OPTION_NAMES
        if is_option or parameter in RESULT_COLUMNS:
            other_meaning = "an option" if is_option else "a column of the results"
            raise InputError(
                f"the placeholder {{{parameter}}} cannot have this name: it is {other_meaning}",
                column=parameter,
                value=f"{{{parameter}}}",
                expected="another word in braces",
                fix=f"choose another name, for example {{job_{parameter}}}",
            )
    return names


def has_placeholder(value: object) -> bool:
    """Return whether a value has placeholders."""
    return next(placeholders_in(value), None) is not None


def fill(options: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with placeholders replaced by the values of the parameters.

    Raises
    ------
    InputError
        A placeholder has no value.
    """
    return {option: _fill_value(option, value, values) for option, value in options.items()}


def _fill_value(option: str, value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return _BRACE.sub(lambda match: _text(option, match, values), value)
    if isinstance(value, Mapping):
        return {key: _fill_value(option, item, values) for key, item in value.items()}
    return [_fill_value(option, item, values) for item in value] if isinstance(value, list | tuple) else value


def _text(option: str, match: re.Match[str], values: Mapping[str, Any]) -> str:
    parameter = match[1]
    if parameter is None:
        return match[0][0]
    if parameter not in values:
        raise InputError(
            f"the placeholder {{{parameter}}} has no value",
            column=option,
            value=match.string,
            expected=f"{parameter} = [...] in [vary], or {parameter} = VALUE in [run]",
            fix=f"add one; for literal braces write them twice: {{{{{parameter}}}}}",
        )
    return text_of(values[parameter])


def check_value(parameter: str, value: object) -> None:
    """Raise ``InputError`` for a value that cannot be part of a text.

    Raises
    ------
    InputError
        It is neither a number, nor text, nor true or false.
    """
    if not isinstance(value, str | int | float):
        raise InputError(
            f"{parameter} cannot be part of a text",
            column=parameter,
            value=value,
            expected="a number, text, true or false",
            fix=f"it replaces {{{parameter}}}: write one value",
        )
