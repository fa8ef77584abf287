"""Records of a long JSON file one at a time, in memory that neither its length nor its nesting can blow up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.errors import InputError

DEEPEST = 64
_OPENING, _CLOSING = ("start_map", "start_array"), ("end_map", "end_array")


def records(file: LogFile, array: str, export: str) -> Iterator[tuple[int, Any]]:
    """Yield the elements of ``{"array": [...]}``, each with its number from 1; other keys are passed over.

    Whole numbers are ``int``, others finite ``float``.

    Raises
    ------
    InputError
        It is no JSON, is cut, is nested more than 64 deep, or has a number that is too large for 64 bits; it has no
        such array. ``export`` is the command that
        writes a right one.
    """
    number = depth = 0
    has_array = is_inside = False
    key: str | None = None
    builder: _Builder | None = None
    try:
        for event, value in _events(file):
            if builder is None and is_inside and event != "end_array":
                builder = _Builder()
            if builder is not None:
                builder.take(event, value)
                if builder.is_done:
                    number += 1
                    yield number, builder.value
                    builder = None
            elif event == "map_key":
                key = value if depth == 1 else None
            elif event in _OPENING:
                is_inside = event == "start_array" and depth == 1 and key == array
                has_array |= is_inside
                depth += 1
            elif event in _CLOSING:
                is_inside = False
                depth -= 1
    except _BrokenJsonError as error:
        raise _broken(file, number, str(error), export) from None
    if not has_array:
        raise InputError(
            f'there is no list "{array}" in this JSON',
            file=file.name,
            expected=f'{{"{array}": [...]}}',
            fix=f"export again: {export}",
        )


def top_level_number(file: LogFile, key: str, export: str) -> int | None:
    """Return the whole number under a key of the outermost object, ``None`` if there is none.

    Raises
    ------
    InputError
        As ``records`` does for what is no JSON.
    """
    depth, at = 0, None
    try:
        for event, value in _events(file):
            if event in _OPENING:
                depth += 1
            elif event in _CLOSING:
                depth -= 1
            elif event == "map_key":
                at = value if depth == 1 else None
            elif event == "number" and depth == 1 and at == key and isinstance(value, int):
                return value
    except _BrokenJsonError as error:
        raise _broken(file, 0, str(error), export) from None
    return None


class _BrokenJsonError(Exception):
    """What was being parsed is no JSON, and why."""


class _Builder:
    """A value from the events of a parser."""

    def __init__(self) -> None:
        self.value: Any = None
        self.is_done = False
        self._open: list[tuple[Any, Any]] = []  # containers around, each with the key that waits in the one before
        self._key: Any = None

    def take(self, event: str, value: Any) -> None:
        if event == "map_key":
            self._key = value
        elif event in _OPENING:
            new: Any = {} if event == "start_map" else []
            self._open.append((new, self._key))
        elif event in _CLOSING:
            done, self._key = self._open.pop()
            self._put(done)
        else:
            self._put(value)

    def _put(self, value: Any) -> None:
        if not self._open:
            self.value, self.is_done = value, True
            return
        around = self._open[-1][0]
        if isinstance(around, dict):
            around[self._key] = value
        else:
            around.append(value)


def _events(file: LogFile) -> Iterator[tuple[str, Any]]:
    import ijson

    depth = 0
    with file.binary() as stream:
        try:
            # as floats: where it makes integers and decimals itself, a number that Python refuses (5,000 digits, an
            # exponent of 20) goes unnoticed by ijson's compiled parser, which then reads on and ends the process
            for event, value in ijson.basic_parse(stream, use_float=True):
                # what nests without end costs memory: a path of each value in ijson itself, a container each here
                depth += (event in _OPENING) - (event in _CLOSING)
                if depth > DEEPEST:
                    raise _BrokenJsonError(f"nested more than {DEEPEST} deep")
                yield event, value
        except (ijson.JSONError, ValueError) as error:
            # the parser's message has the place on lines of its own, and is of bytes where the text is no UTF-8
            reason = str(error).removeprefix("b'").split("\n")[0].split("\\n")[0]
            raise _BrokenJsonError(reason or type(error).__name__) from None


def _broken(file: LogFile, records_read: int, reason: str, export: str) -> InputError:
    return InputError(
        f"this JSON is broken or cut: {reason}",
        file=file.name,
        row=f"after record {records_read}" if records_read else None,
        expected="one whole JSON document",
        fix=f"export again, and check that the command ends without an error: {export}",
    )
