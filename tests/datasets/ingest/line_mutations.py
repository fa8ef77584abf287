"""One line of a log spoilt, as disks, editors, scripts and people spoil lines."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

FIELDS = {
    "json": re.compile(rb'"[^"]*"|-?\d[\d.eE+\-]*|true|false|null|[{}\[\]:,]'),
    "pipes": re.compile(rb"[^|]+"),
    "pbs": re.compile(rb"[^ ;]+"),
    "blanks": re.compile(rb"[^ ]+"),
    "colons": re.compile(rb"[^:]+"),
    "commas": re.compile(rb'"[^"]*"|[^,]+'),
}
"""What a field is, by what separates them."""

_LIKELY = b"0123456789-:|;,. []{}\"'#/*+=TZen \t"
_JUNK = (
    b"",
    b"0",
    b"-1",
    b"1",
    b"nan",
    b"NaN",
    b"inf",
    b"-Infinity",
    b"1e999",
    b"1e9",
    b"1.5",
    b"99999999999999999999",
    b"9" * 400,
    b"1_0",
    b" 12 ",
    b"+5",
    b"0x10",
    b"Unknown",
    b"None",
    b"null",
    b"true",
    b"(null)",
    b"None assigned",
    b"RUNNING",
    b"PENDING",
    b"[]",
    b"{}",
    b'"7"',
    b'["a"]',
    b'{"set": false}',
    b"n[1-999999999]",
    b"cn[1-",
    b"cn[3-1]",
    b"9999-12-31T23:59:59",
    b"0001-01-01T00:00:00",
    b"2024-02-30T00:00:00",
    b"2024-06-01T02:60:00",
    b"-2147483648",
    b"4294967294",
    b"18446744073709551615",
    "２".encode(),
    "١٢".encode(),
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b'"',
    b"#",
)


@dataclass(frozen=True)
class Mutated:
    """Lines of the spoilt log.

    Attributes
    ----------
    kind
        What was done.
    lines
        All of them, without their ends.
    at
        The line (from 0) that is spoilt, where the others are as they were and in their places; else ``None``.
    """

    kind: str
    lines: tuple[bytes, ...]
    at: int | None


def mutated(lines: Sequence[bytes], fields: re.Pattern[bytes], rng: random.Random) -> Mutated:
    """Spoil one line."""
    at = rng.randrange(len(lines))
    line = lines[at]
    before, after = tuple(lines[:at]), tuple(lines[at + 1 :])
    kind = rng.choice(_KINDS)
    if kind == "line doubled":
        return Mutated(kind, (*before, line, line, *after), None)
    if kind == "line joined with the next":
        return Mutated(kind, (*before, line + b"".join(after[:1]), *after[1:]), None)
    if kind == "line moved":
        rest = [*before, *after]
        rest.insert(rng.randrange(len(lines)), line)
        return Mutated(kind, tuple(rest), None)
    if kind == "line broken in two":
        cut = rng.randrange(len(line) + 1)
        return Mutated(kind, (*before, line[:cut], line[cut:], *after), None)
    spoilt = _SPOIL[kind](line, fields, rng, lines).replace(b"\n", b"")
    return Mutated(kind, (*before, spoilt, *after), at)


def _character_changed(line: bytes, _: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    i = rng.randrange(max(1, len(line)))
    return line[:i] + _character(rng) + line[i + 1 :]


def _character_inserted(line: bytes, _: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    i = rng.randrange(len(line) + 1)
    return line[:i] + _character(rng) + line[i:]


def _characters_deleted(line: bytes, _: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    i = rng.randrange(max(1, len(line)))
    return line[:i] + line[i + rng.choice([1, 1, 1, 2, 5, 20]) :]


def _digit_changed(line: bytes, _: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    digits = list(re.finditer(rb"\d", line))
    if not digits:
        return line
    i = rng.choice(digits).start()
    new = rng.choice([*b"0123456789"])
    return line[:i] + (bytes([new]) if rng.random() < 0.9 else chr(0xFF10 + new - 48).encode()) + line[i + 1 :]


def _cut(line: bytes, _: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    return line[: rng.randrange(len(line) + 1)]


def _binary_inserted(line: bytes, _: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    i = rng.randrange(len(line) + 1)
    return line[:i] + rng.randbytes(rng.randint(1, 12)) + line[i + rng.choice([0, 4]) :]


def _field_replaced(line: bytes, fields: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    begin, end = _field(line, fields, rng)
    return line[:begin] + rng.choice(_JUNK) + line[end:]


def _field_blanked(line: bytes, fields: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    begin, end = _field(line, fields, rng)
    return line[:begin] + line[end:]


def _field_doubled(line: bytes, fields: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    begin, end = _field(line, fields, rng)
    # with what separates it from the next, where that is one character
    return line[: end + 1] + line[begin : end + 1] + line[end + 1 :]


def _fields_swapped(line: bytes, fields: re.Pattern[bytes], rng: random.Random, __: Sequence[bytes]) -> bytes:
    (a, b), (c, d) = sorted((_field(line, fields, rng), _field(line, fields, rng)))
    return line if b > c else line[:a] + line[c:d] + line[b:c] + line[a:b] + line[d:]


def _field_of_another_line(line: bytes, fields: re.Pattern[bytes], rng: random.Random, lines: Sequence[bytes]) -> bytes:
    begin, end = _field(line, fields, rng)
    other = rng.choice(lines)
    # of the same place, mostly: then it is what such a field can be
    place = len([match for match in fields.finditer(line) if match.start() < begin])
    there = [match.span() for match in fields.finditer(other)]
    c, d = there[place] if place < len(there) and rng.random() < 0.8 else _field(other, fields, rng)
    return line[:begin] + other[c:d] + line[end:]


def _character(rng: random.Random) -> bytes:
    return bytes([rng.choice(_LIKELY) if rng.random() < 0.8 else rng.randrange(256)])


def _field(line: bytes, fields: re.Pattern[bytes], rng: random.Random) -> tuple[int, int]:
    spans = [match.span() for match in fields.finditer(line)]
    return rng.choice(spans) if spans else (0, len(line))


_SPOIL: dict[str, Callable[[bytes, re.Pattern[bytes], random.Random, Sequence[bytes]], bytes]] = {
    "character changed": _character_changed,
    "character inserted": _character_inserted,
    "characters deleted": _characters_deleted,
    "digit changed": _digit_changed,
    "line cut": _cut,
    "binary inserted": _binary_inserted,
    "field replaced": _field_replaced,
    "field blanked": _field_blanked,
    "field doubled": _field_doubled,
    "fields swapped": _fields_swapped,
    "field of another line": _field_of_another_line,
}
_KINDS = (
    *_SPOIL,
    "digit changed",
    "field replaced",
    "line doubled",
    "line joined with the next",
    "line moved",
    "line broken in two",
)
