"""Options of ``RunOptions`` on the command line, the same for every command that has some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click
from click.core import ParameterSource

from bfreplay import checks
from bfreplay.commands.inputs import or_bundled
from bfreplay.experiments.option_checks import path
from bfreplay.experiments.run_options import GROUPS, OPTIONS, RunOptions
from bfreplay.options import REQUIRED, Number, OneOf, Option, Whole, option_name

RARE = "Rarely needed"
"""Heading of the options that most people never use."""

MILP_OPTIONS = tuple(name for name, declared in OPTIONS.items() if declared.passed_as and name != "fallback")
"""Options of a MILP back end, whatever it is asked for."""

_OBJECTIVE_OF_RUN = {
    "help": "The run's objective, if it is package.module:function: what only the run names is not imported.",
    "usual": "that of the run", "metavar": "SPEC",
}  # fmt: skip

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Parsed(click.ParamType[Any]):
    """What a function makes of a word."""

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self._parse = parse
        self.name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a default as it is."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Listed(click.ParamType[list[Any]]):
    """Values of one option with commas between them."""

    name = "list"

    def __init__(self, of: click.ParamType[Any]) -> None:
        self._of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """Return the values, each as the option itself has it."""
        words = [word.strip() for word in value.split(",")]
        if not all(words):
            self.fail(f"there is an empty place in the list {value!r}; drop the comma that is too many.", param, ctx)
        return [self._of.convert(word, param, ctx) for word in words]


def run_options(*names: str, **changed: Mapping[str, Any]) -> Callable[[_Command], _Command]:
    """Add options of ``RunOptions`` to a command; in groups where it has all of them.

    Parameters
    ----------
    *names
        Their fields; all by default.
    **changed
        Field to attributes of its ``Option`` that are others here: ``max_parallel={"default": 10}``.
    """

    def add(command: _Command) -> _Command:
        for name in reversed(names or tuple(OPTIONS)):
            declared = replace(OPTIONS[name], **changed.get(name, {}))
            command = _click_option(name, declared, is_grouped=not names)(command)
        for group in () if names else reversed((*GROUPS, RARE)):
            command = click.option_panel(group)(command)
        return command

    return add


def run_inputs(whose: str = "run's", *, poses: str | None = None) -> Callable[[_Command], _Command]:
    """Add --events, --jobs and --curves, for where those of a saved run have moved to, and --allow-code.

    ``poses`` is the decision that the command poses again, in words; --t-fwd and --objective then say how.
    """

    def add(command: _Command) -> _Command:
        if poses is not None:
            text = f"{poses}  [default: that of the run's policy]"
            command = click.option("--t-fwd", "t_fwd_s", metavar="SECONDS", type=float, help=text)(command)
        own = () if poses is None else ("objective",)
        command = run_options(*own, "allow_code", objective=_OBJECTIVE_OF_RUN)(command)
        for name, was in (("curves", "they were"), ("jobs", "they were"), ("events", "it was")):
            text = f"The {whose} {'log' if name == 'events' else name}.  [default: where {was}]"
            callback = None if name == "curves" else _bundled
            command = click.option(f"--{name}", type=click.Path(path_type=Path), help=text, callback=callback)(command)
        return command

    return add


def _bundled(_context: click.Context, option: click.Parameter, given: Path | None) -> Path | None:
    return given and or_bundled(given, option.name or "")


def option_lists(**usual: str) -> Callable[[_Command], _Command]:
    """Add options of ``RunOptions`` that take a list of values here; ``usual`` are the values by default, in words."""

    def add(command: _Command) -> _Command:
        for name, text in reversed(usual.items()):
            of = _click_type(OPTIONS[name])
            command = click.option(
                f"--{option_name(name)}", name, type=_Listed(of), metavar="LIST",
                help=f"Values to try, with commas between them. {OPTIONS[name].help}  [default: {text}]",
            )(command)  # fmt: skip
        return command

    return add


def save_failures_option(command: _Command) -> _Command:
    """Add --save-failures."""
    return click.option(
        "--save-failures", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False), panel=RARE,
        help="Keep the model (MPS) and the decision (JSON) of every answer that was rejected.",
    )(command)  # fmt: skip


def note_options_without_effect(context: click.Context, run: RunOptions) -> None:
    """Say on stderr which options of ``bfreplay replay`` were given and have no effect beside the others."""
    reasons = run.without_effect()
    if context.params["out"] is None:
        tables = [name for name, declared in OPTIONS.items() if declared.only_writes]
        reasons |= dict.fromkeys(["force", *tables], "without --out")
    if MILP_OPTIONS[0] in reasons:
        reasons["save_failures"] = reasons[MILP_OPTIONS[0]]
    for option in context.command.params:
        name = option.name or ""
        if name in reasons and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            was_refused = context.params[name] is False and option.secondary_opts
            words = option.secondary_opts if was_refused else option.opts
            click.echo(f"Note: {words[0]} has no effect {reasons[name]}.", err=True)


def _click_option(name: str, declared: Option, *, is_grouped: bool) -> Callable[[_Command], _Command]:
    if declared.is_argument:
        return click.argument(name, type=_click_type(declared), required=declared.default is REQUIRED)
    words = f"--{option_name(name)}"
    of_value: dict[str, Any] = {}
    if declared.check is not checks.truth:
        of_value = {"type": _click_type(declared), "metavar": declared.metavar, "nargs": declared.n_values}
    elif declared.default:
        words += f"/--no-{option_name(name)}"
    else:
        of_value = {"is_flag": True}
    is_needed = declared.default is REQUIRED
    return click.option(
        words, name, default=None if is_needed else declared.default, required=is_needed, help=declared.text,
        panel=(RARE if declared.is_rare else declared.group) if is_grouped else None, **of_value,
    )  # fmt: skip


def _click_type(declared: Option) -> click.ParamType[Any]:
    if declared.parse is not None:
        return _Parsed(declared.parse)
    match declared.check:
        case Whole(least):
            return click.IntRange(min=least)
        case Number(least=least, above=above, most=most, below=below):
            upper = most if below is None else below
            return click.FloatRange(
                min=least if above is None else above, min_open=above is not None,
                max=None if upper == float("inf") else upper, max_open=below is not None,
            )  # fmt: skip
        case OneOf(words):
            return click.Choice(words)
    return click.Path(path_type=Path) if declared.check is path else click.STRING
