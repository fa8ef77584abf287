"""Options declared once: default, check, help, group, and when one has no effect.

A frozen dataclass whose fields are made by ``option`` is the only list of its options. The command line, files,
saved records and the documentation are made from ``options_of`` that class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from bfreplay import checks

_KEY = "option"
"""Where a dataclass field keeps its ``Option``."""

REQUIRED = object()
"""The default of an option that must be given."""

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number, ``least`` or more."""

    least: int

    def __call__(self, name: str, value: object) -> int:
        """Return the value; ``InputError`` for anything else."""
        return checks.whole(name, value, self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A finite number within bounds: at least ``least`` or above ``above``, at most ``most`` or below ``below``."""

    least: float | None = None
    above: float | None = None
    most: float = math.inf
    below: float | None = None

    def __call__(self, name: str, value: object) -> float:
        """Return the value; ``InputError`` for anything else."""
        most = self.most if self.below is None else math.nextafter(self.below, -math.inf)
        return checks.number(name, value, least=self.least, above=self.above, most=most)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words."""

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
        Tells it from the options.
    when
        The condition in words, a format of the options: ``"with --policy {0.policy}"``.
    """

    holds: Callable[[Any], bool]
    when: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What is known of one option.

    Parameters
    ----------
    check
        Called with the option's name and a value: returns the value as it is kept, or raises ``InputError``.
    group, help
        Heading and text in ``--help`` and in the documentation.
    default
        ``REQUIRED`` for an option that must be given. ``None`` is not checked.
    usual
        What ``None`` stands for, in words.
    metavar, n_values
        How ``--help`` calls a value, and how many words it takes.
    parse
        Makes a value of a word on the command line; ``ValueError`` for what is none. By default ``check`` tells.
    is_argument
        The command line takes it by its place, without dashes.
    is_rare
        ``--help`` shows it with the other rarely needed options, whatever its group.
    is_permission
        Only the user may give it: it is no option in files, and not written to any.
    loads
        ``"log"`` or ``"jobs"``, where loading these depends on it; then whoever keeps what was loaded looks at it.
    only_writes
        It adds a table to the run folder, and changes nothing in the others.
    no_effect
        Conditions under which it changes nothing.
    not_on_cluster
        Why it does not go with ``--cluster``, and what to do; ``None`` if it does.
    passed_as
        Keyword of the MILP solver that it sets.
    """

    check: Callable[[str, Any], Any]
    group: str
    help: str
    default: Any = REQUIRED
    usual: str | None = None
    metavar: str | None = None
    n_values: int = 1
    parse: Callable[[str], Any] | None = None
    is_argument: bool = False
    is_rare: bool = False
    is_permission: bool = False
    loads: str | None = None
    only_writes: bool = False
    no_effect: tuple[NoEffect, ...] = ()
    not_on_cluster: tuple[str, str] | None = None
    passed_as: str | None = None

    @property
    def text(self) -> str:
        """The help, and what the option is when it is not given, unless that is a plain value."""
        return self.help if self.usual is None or self.default is not None else f"{self.help}  [default: {self.usual}]"

    def reason_without_effect(self, options: object) -> str | None:
        """Return why it changes nothing beside the others, such as ``"with --solver exact"``; else ``None``."""
        return next((each.when.format(options) for each in self.no_effect if each.holds(options)), None)


def option(default: _Value, check: Callable[[str, Any], Any], group: str, text: str, **more: Any) -> _Value:
    """Return the dataclass field of an option; ``more`` as for ``Option``."""
    declared: _Value = field(default=default, metadata=required(check, group, text, default=default, **more))
    return declared


def required(check: Callable[[str, Any], Any], group: str, text: str, **more: Any) -> Mapping[str, Option]:
    """Return the metadata of the field of an option that must be given."""
    return {_KEY: Option(check=check, group=group, help=text, **more)}


def options_of(made: type) -> Mapping[str, Option]:
    """Return the options that a dataclass declares, by field, in their order."""
    return {each.name: each.metadata[_KEY] for each in fields(made) if _KEY in each.metadata}


def option_name(field: str) -> str:
    """``"max_parallel"`` as the command line and TOML files call it: ``"max-parallel"``."""
    return field.replace("_", "-")
