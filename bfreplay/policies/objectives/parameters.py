"""What the spec sets: parameters of a function or class, checked before anything is replayed."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable
from typing import Any

from bfreplay.errors import InputError
from bfreplay.policies.objectives.spec import TermSpec

T_FWD_S = "t_fwd_s"
"""The parameter that the policy sets."""


def parameters_of(function: Callable[..., Any], n_given: int) -> dict[str, inspect.Parameter]:
    """Parameters that a spec can set, but for the first ``n_given``, which the caller passes by position.

    One whose default is neither a number nor text is the function's own business.
    """
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    kept, skipped = {}, 0
    for name, parameter in inspect.signature(function).parameters.items():
        if skipped < n_given and parameter.kind in by_place:
            skipped += 1
        elif parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            default = parameter.default
            if default is inspect.Parameter.empty or default is None or isinstance(default, bool | int | float | str):
                kept[name] = parameter
    return kept


def settings_of(part: TermSpec, known: dict[str, inspect.Parameter], kind: str = "objective") -> dict[str, Any]:
    """Every parameter with its value: what ``part`` sets, and the defaults of the others; without ``t_fwd_s``.

    ``kind`` is what messages call the thing.

    Raises
    ------
    InputError
        ``part`` sets what there is not, or text where the default is a number, or leaves out what has no default.
    """
    known = {name: parameter for name, parameter in known.items() if name != T_FWD_S}
    given = dict(part.parameters)
    for key, value in given.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            the_policys = "the policy's forward-looking time is used: --t-fwd" if key == T_FWD_S else None
            raise InputError(
                f"the {kind} {part.name!r} has no parameter {key!r}",
                column=key,
                value=str(part),
                expected=f"one of {', '.join(known)}" if known else f"{part.name}, without brackets",
                fix=f"did you mean {near[0]!r}?" if near else the_policys,
            )
        default = known[key].default
        if _is_number(default) and not _is_number(value):
            raise InputError(
                f"{key!r} of the {kind} {part.name!r} is no number", column=key, value=value,
                expected=f"a number, such as the default {default!r}",
            )  # fmt: skip
    settings = {}
    for name, parameter in known.items():
        if name not in given and parameter.default is inspect.Parameter.empty:
            raise InputError(
                f"the {kind} {part.name!r} needs {name!r}",
                column=name,
                value=str(part),
                expected=f"{part.name}({name}=VALUE)",
            )
        settings[name] = given.get(name, parameter.default)
    return settings


def json_ready(settings: dict[str, Any]) -> dict[str, Any]:
    """``settings`` as JSON takes them: numbers that are not finite as text."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in settings.items()
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
