"""Options declared once: default, check, help, group, and conditions without effect.

A frozen dataclass with fields made by ``option`` is the only list of its options. The command line, files, saved
records and the documentation are made from ``options_of`` that class.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from bfreplay import checks

_KEY = "option"
"""Key of the ``Option`` in the metadata of a dataclass field."""

REQUIRED: Any = object()
"""Default of an option that must be given."""

_Value = TypeVar("_Value")
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Whole:
    """Check of a whole number, from ``least`` to ``most``."""

    least: int
    most: int = checks.LARGEST

    def __call__(self, name: str, value: object) -> int:
        """Return the value; ``InputError`` for anything else."""
        return checks.whole(name, value, self.least, self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """Check of a finite number: at least ``least`` or above ``above``, at most ``most`` or below ``below``."""

    least: float | None = None
    above: float | None = None
    most: float = math.inf
    below: float | None = None

    def __call__(self, name: str, value: object) -> float:
        """Return the value; ``InputError`` for anything else."""
        most = self.most if self.below is None else math.nextafter(self.below, -math.inf)
        return checks.number(name, value, least=self.least, above=self.above, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """Check of a length of time in seconds, 0 or more and below ``below``; a command takes units: ``"2min"``."""

    below: float

    def __call__(self, name: str, value: object) -> float:
        """Return the seconds; ``InputError`` for anything else."""
        return checks.number(name, value, least=0.0, most=math.nextafter(self.below, -math.inf))


@dataclass(frozen=True, slots=True)
class OneOf:
    """Check of one of several words."""

    words: tuple[str, ...]

    def __call__(self, name: str, value: object) -> str:
        """Return the value; ``InputError`` for anything else."""
        return checks.one_of(name, value, self.words)


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A condition on all options under which one of them changes nothing.

    Parameters
    ----------
    holds
        Function of the options.
    when
        The condition in words, a format of the options: ``"with --policy {0.policy}"``.
    """

    holds: Callable[[Any], bool]
    when: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Declaration of one option.

    Parameters
    ----------
    check
        Function of the option's name and a value that returns the checked value, or raises ``InputError``.
    group, help
        Heading and text in ``--help`` and in the documentation; empty for a policy's, which its docstring explains.
    default
        ``REQUIRED`` for an option that must be given. ``None`` is not checked.
    usual
        Meaning of ``None``, in words.
    metavar, n_values
        Name of a value in ``--help``, and its number of words.
    flag
        Name on the command line where it is not that of the field: ``"--tz"``.
    unit_s
        Unit of a ``Duration`` on the command line, in seconds.
    is_mapping
        True for a mapping whose items are given one by one, by an option that is repeatable.
    parse
        Function that converts a word of the command line; ``ValueError`` for a bad one. By default from ``check``.
    is_argument
        True for a positional argument.
    is_rare
        ``--help`` shows it with the rarely needed options, whatever its group.
    is_permission
        True for an option that only the user may give; never read from files, or written to them.
    loads
        ``"log"`` or ``"jobs"`` if loading these depends on it, also for caches.
    only_writes
        True if it only adds a table to the run folder.
    no_effect
        Conditions under which it has no effect.
    not_on_cluster
        Reason for which it cannot be combined with ``--cluster``, and the fix; ``None`` if it can.
    passed_as
        Keyword of the MILP solver that it sets.
    accepts
        Type of the values that it accepts in Python, where that is wider than the type of the field.
    names
        Words that complete a value on the command line, or ``"module:REGISTRY"`` for the names in a registry.
    """

    check: Callable[[str, Any], Any]
    group: str
    help: str
    default: Any = REQUIRED
    usual: str | None = None
    metavar: str | None = None
    n_values: int = 1
    flag: str = ""
    unit_s: float = 1.0
    is_mapping: bool = False
    parse: Callable[[str], Any] | None = None
    is_argument: bool = False
    is_rare: bool = False
    is_permission: bool = False
    loads: str | None = None
    only_writes: bool = False
    no_effect: tuple[NoEffect, ...] = ()
    not_on_cluster: tuple[str, str] | None = None
    passed_as: str | None = None
    accepts: str = ""
    names: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Help, with the default if that is not a plain value."""
        return self.help if self.usual is None or self.default is not None else f"{self.help}  [default: {self.usual}]"

    def reason_without_effect(self, options: object) -> str | None:
        """Return why it has no effect with the other options, such as ``"with --solver exact"``; else ``None``."""
        return next((condition.when.format(options) for condition in self.no_effect if condition.holds(options)), None)


def option(
    default: _Value, check: Callable[[str, Any], Any], group: str = "", text: str = "", **attributes: Any
) -> _Value:
    """Return the dataclass field of an option; ``attributes`` as for ``Option``."""
    metadata = option_metadata(check, group, text, default=default, **attributes)
    return field(metadata=metadata) if default is REQUIRED else field(default=default, metadata=metadata)


def switch(group: str, text: str, **attributes: Any) -> bool:
    """Return the dataclass field of an option that is false unless given; ``attributes`` as for ``Option``."""
    return option(False, checks.truth, group, text, **attributes)


def option_metadata(check: Callable[[str, Any], Any], group: str, text: str, **attributes: Any) -> Mapping[str, Option]:
    """Return the metadata of the field of an option; without ``default`` it must be given."""
    return {_KEY: Option(check=check, group=group, help=text, **attributes)}


def options_of(dataclass_type: type) -> Mapping[str, Option]:
    """Return the options that a dataclass declares, by field, in their order."""
    return {field.name: field.metadata[_KEY] for field in fields(dataclass_type) if _KEY in field.metadata}


def flag_of(made: type, field: str) -> str:
    """Return the name of a declared option on the command line: ``"--tz"`` for ``"timezone"``."""
    return options_of(made)[field].flag or f"--{option_name(field)}"


def check_options(made: Any, named: Callable[[str], str] = str, *, keep_equal: bool = False) -> None:
    """Replace the options of a frozen dataclass by their checked values; a ``None`` for which nothing is assumed stays.

    ``named`` returns the name of a field in messages. With ``keep_equal`` values that are equal to the checked ones
    stay too: 360 for 360.0, as the user wrote it.
    """
    for name, declaration in options_of(type(made)).items():
        value = getattr(made, name)
        if value is not None or declaration.default not in (None, REQUIRED):
            checked = declaration.check(named(name), value)
            if not (keep_equal and checked == value):
                object.__setattr__(made, name, checked)


class CheckedOptions:
    """Base of frozen dataclasses of declared options: they are checked as one is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_options(self)


def add_options(doc: str | None, options: Mapping[str, Option]) -> str:
    """Return the docstring with these options added to its parameters."""
    head, raises, tail = (doc or "").partition("\n    Raises\n")
    lines = [] if "    Parameters\n" in head else ["", "Parameters", "----------"]
    for name, declaration in options.items():
        lines += [name, textwrap.indent(textwrap.fill(declaration.text, 112), "    ")]
    return f"{head.rstrip()}\n{textwrap.indent(chr(10).join(lines), '    ')}\n{raises}{tail}"


def checked_keywords(taken: type | None = None, without: Collection[str] = ()) -> Callable[[_Function], _Function]:
    """Return a decorator of functions that refuses an unknown keyword, naming the nearest known one.

    The ``**options`` of a function are those that the dataclass ``taken`` declares, but for its own parameters and
    those ``without``; its signature and its docstring then have them too.
    """

    def decorate(function: _Function) -> _Function:
        own, declared = signature(function).parameters, fields(taken) if taken else ()
        options = {option.name: option for option in declared if option.name not in {*own, *without}}
        parameters = [each for each in own.values() if each.kind is not each.VAR_KEYWORD]
        for name, option in options.items():
            accepts = option.metadata[_KEY].accepts or option.type
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=option.default, annotation=accepts))
        known = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL and each.name != "self"]

        @wraps(function)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            checks.known_keys(keywords, known, function.__qualname__.removesuffix(".__init__"), "option")
            return function(*arguments, **keywords)

        checked.__signature__ = signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]  # help
        if options:
            checked.__doc__ = add_options(function.__doc__, {name: options[name].metadata[_KEY] for name in options})
        return cast(_Function, checked)

    return decorate


def option_name(field: str) -> str:
    """Return the name on the command line and in TOML files: ``"max-parallel"`` for ``"max_parallel"``."""
    return field.replace("_", "-")


def field_name(option: str) -> str:
    """Return the name as a field and as a column: ``"max_parallel"`` for ``"max-parallel"``."""
    return option.replace("-", "_")
