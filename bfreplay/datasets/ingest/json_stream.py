"""Records of a long JSON file one at a time, in bounded memory for any length and nesting."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.documents import DEEPEST, is_too_deep
from bfreplay.errors import InputError

LONGEST_RECORD = 1 << 26
"""Most characters of a record."""

_CHUNK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")


def records(log_file: LogFile, array: str, export: str, *, are_several: bool = False) -> Iterator[tuple[int, Any]]:
    """Yield the elements of ``{"array": [...]}``, each with its number from 1; other keys are ignored.

    Whole numbers are ``int``, others finite ``float``. Bytes that are not UTF-8 become surrogates.

    Parameters
    ----------
    export
        Command that writes a correct file, for messages.
    are_several
        True if several documents may follow each other; their elements are numbered in one series.

    Raises
    ------
    InputError
        The text is not JSON, cut, or nested more than 64 deep; a number has thousands of digits or is too large for a
        float; a record has more than 64 Mi characters; or the array is missing.
    """
    record_number = 0
    has_array = False
    with log_file.binary() as stream:
        json_text = _Text(stream.read)
        try:
            while json_text.next_character() is not None:
                for member_name, member_value, in_list in _members(json_text):
                    if member_name == array and in_list:
                        has_array = True
                        if member_value is not _NO_ELEMENT:
                            record_number += 1
                            yield record_number, member_value
                if not are_several and json_text.next_character() is not None:
                    raise _BrokenJsonError("something follows the document")
        except _BrokenJsonError as error:
            raise _parse_error(log_file, record_number, str(error), export) from None
    if not has_array:
        raise log_file.error(
            f'there is no list "{array}" in this JSON', expected=f'{{"{array}": [...]}}', fix=f"export again: {export}"
        )


def top_level_number(log_file: LogFile, key: str, export: str) -> int | None:
    """Return the whole number under a key of the outermost object, ``None`` if there is none.

    Raises
    ------
    InputError
        Invalid JSON, as for ``records``.
    """
    with log_file.binary() as stream:
        json_text = _Text(stream.read)
        try:
            for member_name, member_value, in_list in _members(json_text):
                if member_name == key and not in_list and type(member_value) is int:
                    return member_value
        except _BrokenJsonError as error:
            raise _parse_error(log_file, 0, str(error), export) from None
    return None


class _BrokenJsonError(Exception):
    """Reason why a text is not JSON."""


_NO_ELEMENT = object()


def _members(json_text: _Text) -> Iterator[tuple[str, Any, bool]]:
    """Yield key and value of each member of the outermost object; a list element by element, marked ``True``.

    ``_NO_ELEMENT`` comes before the elements, so that empty lists show.
    """
    if json_text.next_character() != "{":
        json_text.value()
        return
    json_text.skip()
    if json_text.next_character() == "}":
        json_text.skip()
        return
    while True:
        member_name = json_text.value()
        if not isinstance(member_name, str):
            raise _BrokenJsonError("a key of an object is not a string")
        json_text.take(":")
        if json_text.next_character() == "[":
            yield member_name, _NO_ELEMENT, True
            for element in _elements(json_text):
                yield member_name, element, True
        else:
            yield member_name, json_text.value(), False
        if json_text.take(",}") == "}":
            return


def _elements(json_text: _Text) -> Iterator[Any]:
    json_text.skip()
    if json_text.next_character() == "]":
        json_text.skip()
        return
    while True:
        yield json_text.value()
        if json_text.take(",]") == "]":
            return


class _Text:
    """Document as text, partly in memory."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._json = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
        self._buffer, self._at, self._is_whole = "", 0, False

    def next_character(self) -> str | None:
        """Return the first character that is not a space, without consuming it; ``None`` at the end."""
        while True:
            space_match = _SPACE.match(self._buffer, self._at)
            self._at = self._at if space_match is None else space_match.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if self._is_whole:
                return None
            self._more()

    def skip(self) -> None:
        """Consume that character."""
        self._at += 1

    def take(self, expected: str) -> str:
        """Consume the first character that is not a space; it must be one of ``expected``."""
        character = self.next_character()
        if character is None or character not in expected:
            raise _BrokenJsonError(f"{' or '.join(expected)} is missing")
        self._at += 1
        return character

    def value(self) -> Any:
        """Consume and return a value of any kind."""
        self.next_character()
        while True:
            try:
                json_value, value_end = self._json.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if self._is_whole or len(self._buffer) - self._at > LONGEST_RECORD:
                    raise _BrokenJsonError(error.msg) from None
            except RecursionError:
                _too_deep()
            except ValueError as error:
                # errors of int() for thousands of digits, and of _finite and _no_constant
                raise _BrokenJsonError(str(error).partition(";")[0]) from None
            else:
                if value_end + 2 < len(self._buffer) or self._is_whole:  # a number may go on: 1 with .5, 1 with e+5
                    self._at = value_end
                    if is_too_deep(json_value):
                        _too_deep()
                    return json_value
            self._more()

    def _more(self) -> None:
        remainder = self._buffer[self._at :]
        # read as much again: parsing a partial record costs at most twice its length
        data = self._read(max(_CHUNK, len(remainder)))
        self._is_whole = not data
        self._buffer, self._at = remainder + self._decoder.decode(data, self._is_whole), 0


def _finite(number_text: str) -> float:
    finite_number = float(number_text)
    if not math.isfinite(finite_number):
        raise ValueError("a number is too large")
    return finite_number


def _no_constant(constant_text: str) -> NoReturn:
    raise ValueError(f"{constant_text} is not a number")


def _too_deep() -> NoReturn:
    raise _BrokenJsonError(f"nested more than {DEEPEST} deep") from None


def _parse_error(log_file: LogFile, records_read: int, fault_text: str, export: str) -> InputError:
    return log_file.error(
        f"this JSON is broken or cut: {fault_text}",
        row=f"after record {records_read}" if records_read else None,
        expected="one whole JSON document",
        fix=f"export again, and check that the command ends without an error: {export}",
    )
