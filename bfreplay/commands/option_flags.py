"""Options of commands, made from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click
from click.core import ParameterSource

from bfreplay import checks
from bfreplay.commands.inputs import note
from bfreplay.experiments.declared_options import OPTIONS
from bfreplay.experiments.option_checks import amount, jobs, log, path
from bfreplay.experiments.run_options import RunOptions
from bfreplay.options import REQUIRED, Duration, Number, OneOf, Option, Whole, option_name, options_of
from bfreplay.registry import built_in

PLACE = click.Path(path_type=Path)
"""A file or a folder."""

RARE = "Rarely needed"
"""Heading of rarely needed options."""

MILP_OPTIONS = tuple(name for name, declaration in OPTIONS.items() if declaration.passed_as and name != "fallback")
"""Options of a MILP back end."""

_OBJECTIVE_OF_RUN = {
    "help": "The run's objective, needed if it is package.module:function: code named only by the run is not imported.",
    "usual": "that of the run",
    "metavar": "SPEC",
}

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Options = TypeVar("_Options")


class Parsed(click.ParamType[Any]):
    """Parameter type of a value parsed by a function."""

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self._parse = parse
        self.name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a word; return a default unchanged."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class ListOf(click.ParamType[list[Any]]):
    """Parameter type of a comma-separated list."""

    name = "list"

    def __init__(self, item_type: click.ParamType[Any]) -> None:
        self._of = item_type

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """Return the values, each converted as by the option itself."""
        item_texts = [item_text.strip() for item_text in value.split(",")]
        if not all(item_texts):
            self.fail(f"the list {value!r} has an empty value; remove the extra comma.", param, ctx)
        return [self._of.convert(item_text, param, ctx) for item_text in item_texts]


def completing(*names: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return the completion of a value by words, and by the names in a registry, ``"module:REGISTRY"``."""

    def complete(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
        words = [word for name in names for word in (built_in(name).names() if ":" in name else [name])]
        return [word for word in words if word.startswith(incomplete)]

    return complete


def adding(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds options to a command, in their order in its help."""

    def add(function: _Command) -> _Command:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def declared_options(
    made: type, *names: str, is_grouped: bool = False, **changes: Mapping[str, Any]
) -> Callable[[_Command], _Command]:
    """Add options that a dataclass declares to a command.

    Parameters
    ----------
    made
        The dataclass.
    *names
        Fields of the options; all by default.
    is_grouped
        Show each under its heading.
    **changes
        Field to changed attributes of its ``Option``: ``max_parallel={"default": 10}``.
    """
    options = options_of(made)
    return adding(
        *(
            _click_option(
                field_name, replace(options[field_name], **changes.get(field_name, {})), is_grouped=is_grouped
            )
            for field_name in names or options
        )
    )


run_options = partial(declared_options, RunOptions)
"""Adds options of a run."""


def run_inputs(whose: str = "run's", *, poses: str | None = None) -> Callable[[_Command], _Command]:
    """Add --events, --jobs and --curves for moved inputs of a saved run, and --allow-code.

    ``poses`` describes --t-fwd of a command that poses a decision again, which also gets --objective.
    """
    options: list[Callable[[Any], Any]] = []
    for input_kind in ("events", "jobs", "curves"):
        help_text = f"The {whose} {'log' if input_kind == 'events' else input_kind}.  [default: the recorded path]"
        callback = None if input_kind == "curves" else _resolve_bundled
        options.append(click.option(f"--{input_kind}", type=PLACE, help=help_text, callback=callback))
    if poses is not None:
        help_text = f"{poses}  [default: that of the run's policy]"
        options += [
            run_options("objective", objective=_OBJECTIVE_OF_RUN),
            click.option("--t-fwd", "t_fwd_s", metavar="TIME", type=Parsed(amount), help=help_text),
        ]
    return adding(*options, run_options("allow_code"))


def _resolve_bundled(_context: click.Context, option: click.Parameter, value: Path | None) -> Path | None:
    if value is None:
        return None
    from bfreplay.datasets.named_inputs import resolve_sample  # imports numpy

    return resolve_sample(value, option.name or "")


def option_lists(**usual: str) -> Callable[[_Command], _Command]:
    """Add options of ``RunOptions`` that take a list of values here; ``usual`` are the values by default, in words."""
    return adding(
        *(
            click.option(
                f"--{option_name(field_name)}",
                field_name,
                type=ListOf(_click_type(OPTIONS[field_name])),
                metavar="LIST",
                help=f"Comma-separated values to try. {OPTIONS[field_name].help}  [default: {usual_values}]",
            )
            for field_name, usual_values in usual.items()
        )
    )


def save_failures_option(panel: str | None = None) -> Callable[[_Command], _Command]:
    """Add --save-failures, under a heading if given."""
    return click.option(
        "--save-failures",
        metavar="FOLDER",
        type=click.Path(path_type=Path, file_okay=False),
        panel=panel,
        help="Folder for the model (MPS) and the decision (JSON) of every rejected answer.",
    )


def note_options_without_effect(context: click.Context, options: RunOptions) -> None:
    """Print a note for each given option of ``bfreplay replay`` without effect."""
    reasons = options.without_effect()
    if context.params["out"] is None:
        tables = [field_name for field_name, declaration in OPTIONS.items() if declaration.only_writes]
        reasons |= dict.fromkeys(["force", *tables], "without --out")
    if MILP_OPTIONS[0] in reasons:
        reasons["save_failures"] = reasons[MILP_OPTIONS[0]]
    for option in context.command.params:
        field_name = option.name or ""
        if field_name in reasons and context.get_parameter_source(field_name) is ParameterSource.COMMANDLINE:
            is_negative = context.params[field_name] is False and option.secondary_opts
            flag_names = option.secondary_opts if is_negative else option.opts
            note(f"{flag_names[0]} has no effect {reasons[field_name]}.")


def made_from(made: type[_Options], parameters: dict[str, Any]) -> _Options:
    """Return the dataclass from the options of a command, which are removed from ``parameters``."""
    values = {}
    for field_name, declaration in options_of(made).items():
        option_value = parameters.pop(field_name)
        if declaration.is_mapping:
            option_value = dict(option_value)
        elif isinstance(declaration.check, Duration):
            option_value *= declaration.unit_s
        if option_value is not None:
            values[field_name] = option_value
    return made(**values)


def _click_option(field_name: str, declaration: Option, *, is_grouped: bool) -> Callable[[_Command], _Command]:
    if declaration.is_argument:
        return click.argument(field_name, type=_click_type(declaration), required=declaration.default is REQUIRED)
    is_switch, is_required = declaration.check is checks.truth, declaration.default is REQUIRED
    flag_text = declaration.flag or f"--{option_name(field_name)}"
    default = None if is_required or declaration.is_mapping else declaration.default
    if isinstance(declaration.check, Duration):
        default = declaration.default / declaration.unit_s
    return click.option(
        f"{flag_text}/--no-{option_name(field_name)}" if is_switch and declaration.default else flag_text,
        field_name,
        default=default,
        show_default="required" if is_required else None,
        is_flag=is_switch or None,
        nargs=declaration.n_values,
        multiple=declaration.is_mapping,
        type=None if is_switch else _click_type(declaration),
        metavar=declaration.metavar,
        shell_complete=completing(*declaration.names) if declaration.names else None,
        help=declaration.text,
        panel=(RARE if declaration.is_rare else declaration.group) if is_grouped else None,
    )


def _click_type(declaration: Option) -> click.ParamType[Any]:
    if declaration.parse is not None:
        return Parsed(declaration.parse)
    match declaration.check:
        case Duration():
            return Parsed(partial(amount, unit_s=declaration.unit_s))
        case Whole(least, most):
            return click.IntRange(min=least, max=None if most == checks.LARGEST else most)
        case Number(least=least, above=above, most=most, below=below):
            upper = most if below is None else below
            return click.FloatRange(
                min=least if above is None else above,
                min_open=above is not None,
                max=None if upper == float("inf") else upper,
                max_open=below is not None,
            )
        case OneOf(words):
            return click.Choice(words)
    # as text: a Path made of a URL drops a slash
    return PLACE if declaration.check is path else click.Path() if declaration.check in (log, jobs) else click.STRING


def log_parts(panel: str | None = None) -> Callable[[_Command], _Command]:
    """Add the options that choose a part of a log and describe it by part, under a heading if given."""
    names = ("window", "pool", "partition", "only_nodes", "without")
    under = {name: {"group": panel} for name in names} if panel else {}
    return adding(
        run_options(*names, **under, is_grouped=panel is not None),
        click.option(
            "--by",
            type=click.Choice(["partition", "type", "month", "weekday", "node"]),
            panel=panel,
            help="Also show the idle time by partition (nodes in several are a part of their own), type, month, "
            "weekday or node.",
        ),
        click.option(
            "--batch-jobs",
            type=PLACE,
            multiple=True,
            panel=panel,
            help="The batch jobs of EVENTS, as 'bfreplay ingest --batch-jobs' wrote them: also say why no job ran. Of "
            "several logs in their order.",
        ),
        time_zone_option(panel),
    )


def time_zone_option(panel: str | None = None) -> Callable[[_Command], _Command]:
    """Add --tz, under a heading if given."""
    return click.option(
        "--tz",
        metavar="ZONE",
        panel=panel,
        help="IANA name of the time zone for hours, weekdays and months, e.g. Europe/Paris.  "
        "[default: that of the log's source where it is known, else UTC]",
    )
