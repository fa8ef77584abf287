"""How an objective is written: ``0.7*throughput + 0.3*cost(price=0.4)``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from bfreplay.errors import InputError
from bfreplay.scalability.law import LARGEST_RATE

GRAMMAR = "NAME, NAME(key=value, ...), package.module:function(...), or a sum: 0.7*NAME + 0.3*NAME(key=value)"

Value = float | int | bool | str

_NAME = r"[A-Za-z_][\w.\-]*(?::[A-Za-z_][\w.]*)?"
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>{_NAME})"
    r"|(?P<text>'[^']*'|\"[^\"]*\")|(?P<sign>\S)|(?P<end>$))"
)
_WORDS: dict[str, Value] = {"true": True, "false": False, "True": True, "False": False}
_FIXES = {
    "-": "weights are positive: what less of is better is an objective of its own (cost, energy)",
    "*": "the weight stands before the name: 0.7*NAME",
    "(": "brackets hold parameters; each term of a sum has a weight of its own",
}


@dataclass(frozen=True, slots=True)
class TermSpec:
    """One term of an objective: ``weight*name(key=value, ...)``; a weight that is not written is ``None``."""

    name: str
    parameters: tuple[tuple[str, Value], ...] = ()
    weight: float | None = None

    def __str__(self) -> str:
        text = self.name
        if self.parameters:
            text += f"({', '.join(f'{key}={_value_text(value)}' for key, value in self.parameters)})"
        return text if self.weight is None else f"{_value_text(self.weight)}*{text}"


def written(parts: tuple[TermSpec, ...]) -> str:
    """The spec of ``parts``, which ``parsed`` reads back."""
    return " + ".join(map(str, parts))


def parsed(text: str) -> tuple[TermSpec, ...]:
    """Read the terms of an objective.

    Raises
    ------
    InputError
        The text does not follow the grammar; the message shows where.
    """
    if not isinstance(text, str):
        raise InputError("an objective is named by a text", value=text, expected=GRAMMAR)
    return _Reader(text).parts()


def _value_text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return repr(value)
    if re.fullmatch(_NAME, value) and value not in _WORDS:
        return value
    return f'"{value}"' if "'" in value else f"'{value}'"


class _Reader:
    """Goes from left to right, one token at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._next()

    def parts(self) -> tuple[TermSpec, ...]:
        found = [self._part()]
        while self._kind != "end":
            if self._token != "+":
                one_name = f"did you mean '{found[-1].name}-{self._token}'?" if self._kind == "name" else None
                self._refuse(f"there is no '+' before {self._token!r}", one_name)
            self._next()
            found.append(self._part())
        return tuple(found)

    def _part(self) -> TermSpec:
        weight: float | None = None
        if self._kind == "number":
            weight = self._number()
            if weight == 0:
                self._refuse("a weight of 0 leaves nothing of its term", "leave the term out")
            self._next()
            if self._token != "*":
                self._refuse("there is no '*' after a weight", f"write {weight:g}*NAME")
            self._next()
        if self._kind != "name":
            self._refuse(f"a name is missing {f'before {self._token!r}' if self._token else 'at the end'}")
        name = self._token
        self._next()
        return TermSpec(name, self._parameters() if self._token == "(" else (), weight)

    def _parameters(self) -> tuple[tuple[str, Value], ...]:
        found: dict[str, Value] = {}
        separator = "("
        while separator != ")":
            self._next()
            if self._kind != "name" or not self._token.isidentifier():
                self._refuse("a parameter is missing in the brackets", "write NAME(key=value), or NAME alone")
            key = self._token
            if key in found:
                self._refuse(f"{key!r} is set twice")
            self._next()
            if self._token != "=":
                self._refuse(f"there is no '=' after {key!r}", f"write {key}=VALUE")
            self._next()
            found[key] = self._value(key)
            self._next()
            separator = self._token
            if separator not in (",", ")"):
                self._refuse(f"there is no ',' before {separator!r}" if separator else "a ')' is missing at the end")
        self._next()
        return tuple(found.items())

    def _value(self, key: str) -> Value:
        is_negative = self._token == "-"
        if is_negative:
            self._next()
        if self._kind == "number":
            return -self._number() if is_negative else self._number()
        if is_negative:
            self._refuse(f"the value of {key!r} is no number", f"write {key}=-NUMBER")
        if self._kind == "text":
            return self._token[1:-1]
        if self._kind == "name":
            return _WORDS.get(self._token, self._token)
        self._refuse(f"the value of {key!r} is missing", f"write {key}=VALUE")

    def _number(self) -> float | int:
        number: float | int = int(self._token) if self._token.isdecimal() else float(self._token)
        if not number <= LARGEST_RATE:
            self._refuse("a number is too large")
        return number

    def _next(self) -> None:
        match = _TOKEN.match(self._text, self._end)
        assert match is not None  # whatever stands there is a sign, or the end
        self._kind, self._end = str(match.lastgroup), match.end()
        self._token = match.group(self._kind)
        self._start = match.start(self._kind)

    def _refuse(self, problem: str, fix: str | None = None) -> NoReturn:
        raise InputError(
            f"the objective cannot be read: {problem}",
            column=f"character {self._start + 1}" if self._token else "the end",
            value=self._text,
            expected=GRAMMAR,
            fix=fix or _FIXES.get(self._token),
        )
