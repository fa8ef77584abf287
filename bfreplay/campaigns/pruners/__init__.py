"""Pruners, one a module. A new one is one file, and one line here (or an entry point elsewhere)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from bfreplay import checks
from bfreplay.campaigns.parts import Pruner
from bfreplay.documents import Cell
from bfreplay.registry import Registry, made

PRUNERS = Registry(
    kind="pruner",
    group="bfreplay.pruners",
    needs=("begin", "report_epochs", "advise", "ended", "released", "describe"),
    built_in={
        "none": "bfreplay.campaigns.pruners.no_pruner:NoPruner",
        "asha": "bfreplay.campaigns.pruners.asha:Asha",
        "successive-halving": "bfreplay.campaigns.pruners.successive_halving:SuccessiveHalving",
        "median": "bfreplay.campaigns.pruners.median:Median",
    },
)


def pruner_of(kind: str, options: Mapping[str, Cell] | None = None, *, allow_code: bool = True) -> Pruner:
    """Make the pruner called ``kind``, or at ``package.module:Class``.

    Parameters
    ----------
    kind
        Its name.
    options
        Keyword arguments of its class.
    allow_code
        Whether ``kind`` may be code to import; give false for a name that was read from a file.

    Raises
    ------
    InputError
        No such pruner, one that may not be imported, an argument that it does not have, or a value that it cannot use.
    """
    found = PRUNERS.load(kind, allow_code=allow_code)
    given = dict(options or {})
    known = inspect.signature(found).parameters.values()
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known):
        checks.known_keys(given, [parameter.name for parameter in known], f"the pruner {kind!r}")
    pruner: Pruner = made(
        lambda: found(**given), f"the pruner {kind!r}", value=given,
        expected=f"keyword arguments of {PRUNERS.location(kind)}", fix="correct the keys of [pruner], or the class",
    )  # fmt: skip
    return pruner
