"""Syntax of objectives, policies and generated workloads: ``0.7*throughput + 0.3*cost(price=0.4)``."""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.scalability.law import LARGEST_RATE

GRAMMAR = "NAME, NAME(key=value, ...), package.module:function(...), or a sum: 0.7*NAME + 0.3*NAME(key=value)"

Value = float | int | bool | str

_NAME = r"[A-Za-z_][\w.\-]*(?::[A-Za-z_][\w.]*)?"
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>{_NAME})"
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
            text += f"({', '.join(f'{parameter}={_value_text(value)}' for parameter, value in self.parameters)})"
        return text if self.weight is None else f"{_value_text(self.weight)}*{text}"


def write_spec(terms: tuple[TermSpec, ...]) -> str:
    """The spec of ``terms``, which ``parse`` reads back."""
    return " + ".join(map(str, terms))


def parse(text: str) -> tuple[TermSpec, ...]:
    """Read the terms of an objective.

    Raises
    ------
    InputError
        The text does not follow the grammar; the message shows where.
    """
    if not isinstance(text, str):
        raise InputError("an objective is named by a text", value=text, expected=GRAMMAR)
    return _Reader(text).parts()


def parse_one(text: str, kind: str, grammar: str, *, column: str | None = None, fix: str | None = None) -> TermSpec:
    """Read the one term, without a weight, that names a policy or the like.

    Parameters
    ----------
    text
        As a user wrote it.
    kind
        What it names, for messages: ``"policy"``.
    grammar, column, fix
        For the error.

    Raises
    ------
    InputError
        It is not ``NAME`` or ``NAME(key=value, ...)``.
    """
    if not isinstance(text, str):
        raise InputError(f"a {kind} is named by a text", column=column, value=text, expected=grammar)
    try:
        terms = parse(text)
    except InputError as error:  # the grammar is that of an objective, and so are its messages
        problem = error.problem.replace("the objective", f"the {kind}", 1)
        raise InputError(problem, column=error.column, value=text, expected=grammar, fix=fix) from error
    if len(terms) != 1 or terms[0].weight is not None:
        raise InputError(f"there is one {kind}, without a weight", column=column, value=text, expected=grammar, fix=fix)
    return terms[0]


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
        terms = [self._part()]
        while self._kind != "end":
            if self._token != "+":
                one_name = f"did you mean '{terms[-1].name}-{self._token}'?" if self._kind == "name" else None
                self._refuse(f"there is no '+' before {self._token!r}", one_name)
            self._next()
            terms.append(self._part())
        return tuple(terms)

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
        parameters: dict[str, Value] = {}
        separator = "("
        while separator != ")":
            self._next()
            if self._kind != "name" or not self._token.isidentifier():
                self._refuse("a parameter is missing in the brackets", "write NAME(key=value), or NAME alone")
            parameter = self._token
            if parameter in parameters:
                self._refuse(f"{parameter!r} is set twice")
            self._next()
            if self._token != "=":
                self._refuse(f"there is no '=' after {parameter!r}", f"write {parameter}=VALUE")
            self._next()
            parameters[parameter] = self._value(parameter)
            self._next()
            separator = self._token
            if separator not in (",", ")"):
                self._refuse(f"there is no ',' before {separator!r}" if separator else "a ')' is missing at the end")
        self._next()
        return tuple(parameters.items())

    def _value(self, parameter: str) -> Value:
        is_negative = self._token == "-"
        if is_negative:
            self._next()
        if self._kind == "number":
            return -self._number() if is_negative else self._number()
        if is_negative:
            self._refuse(f"the value of {parameter!r} is no number", f"write {parameter}=-NUMBER")
        if self._kind == "text":
            return self._token[1:-1]
        if self._kind == "name":
            return _WORDS.get(self._token, self._token)
        self._refuse(f"the value of {parameter!r} is missing", f"write {parameter}=VALUE")

    def _number(self) -> float | int:
        number = float(self._token)
        if not number <= LARGEST_RATE:
            self._refuse("a number is too large")
        return int(self._token) if self._token.isdecimal() else number

    def _next(self) -> None:
        token_match = _TOKEN.match(self._text, self._end)
        assert token_match is not None  # whatever stands there is a sign, or the end
        self._kind, self._end = str(token_match.lastgroup), token_match.end()
        self._token = token_match.group(self._kind)
        self._start = token_match.start(self._kind)

    def _refuse(self, problem: str, fix: str | None = None) -> NoReturn:
        raise InputError(
            f"the objective cannot be read: {problem}",
            column=f"character {self._start + 1}" if self._token else "the end",
            value=self._text,
            expected=GRAMMAR,
            fix=fix or _FIXES.get(self._token),
        )


T_FWD_S = "t_fwd_s"
"""The parameter that the policy sets."""


def parameters_of(function: Callable[..., Any], n_by_position: int) -> dict[str, inspect.Parameter]:
    """Parameters that a spec can set, but for the first ``n_by_position``, which the caller passes by position.

    One whose default is neither a number nor text is the function's own business.
    """
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    settable, n_skipped = {}, 0
    for name, parameter in inspect.signature(function).parameters.items():
        if n_skipped < n_by_position and parameter.kind in by_place:
            n_skipped += 1
        elif parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            default = parameter.default
            if default is inspect.Parameter.empty or default is None or isinstance(default, bool | int | float | str):
                settable[name] = parameter
    return settable


def settings_of(term: TermSpec, parameters: dict[str, inspect.Parameter], kind: str = "objective") -> dict[str, Any]:
    """Every parameter with its value: what ``term`` sets, and the defaults of the others; without ``t_fwd_s``.

    ``kind`` is what messages call the thing.

    Raises
    ------
    InputError
        ``term`` sets what there is not, or something else where the default is a number, true or false, or leaves out
        what has no default.
    """
    parameters = {name: parameter for name, parameter in parameters.items() if name != T_FWD_S}
    arguments = dict(term.parameters)
    for argument, value in arguments.items():
        if argument not in parameters:
            near_names = difflib.get_close_matches(argument, parameters, n=1, cutoff=0.5)
            the_policys = "the policy's forward-looking time is used: --t-fwd" if argument == T_FWD_S else None
            raise InputError(
                f"the {kind} {term.name!r} has no parameter {argument!r}",
                column=argument,
                value=str(term),
                expected=f"one of {', '.join(parameters)}" if parameters else f"{term.name}, without brackets",
                fix=f"did you mean {near_names[0]!r}?" if near_names else the_policys,
            )
        default = parameters[argument].default
        if isinstance(default, bool):
            checks.truth(argument, value)
        if _is_number(default) and not _is_number(value):
            raise InputError(
                f"{argument!r} of the {kind} {term.name!r} is no number",
                column=argument,
                value=value,
                expected=f"a number, such as the default {default!r}",
            )
    settings = {}
    for name, parameter in parameters.items():
        if name not in arguments and parameter.default is inspect.Parameter.empty:
            raise InputError(
                f"the {kind} {term.name!r} needs {name!r}",
                column=name,
                value=str(term),
                expected=f"{term.name}({name}=VALUE)",
            )
        settings[name] = arguments.get(name, parameter.default)
    return settings


def json_ready(settings: dict[str, Any]) -> dict[str, Any]:
    """``settings`` as JSON takes them: numbers that are not finite as text."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in settings.items()
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
