"""Laws by name. One line here (or an entry point elsewhere) makes a law known to files, fits and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

from bfreplay.errors import InputError
from bfreplay.registry import Registry
from bfreplay.scalability.law import Law, Scaling

LAWS = Registry(
    kind="scalability law",
    group="bfreplay.curves",
    needs=("law", "scaling", "can_fall", "formula", "parameters", "shape", "starts", "table"),
    built_in={
        "amdahl": "bfreplay.scalability.amdahl:Amdahl",
        "gustafson": "bfreplay.scalability.gustafson:Gustafson",
        "usl": "bfreplay.scalability.universal:UniversalScalability",
        "power": "bfreplay.scalability.power:PowerLaw",
        "communication-weak": "bfreplay.scalability.communication:CommunicationWeak",
        "communication-strong": "bfreplay.scalability.communication:CommunicationStrong",
    },
)


def law_named(name: str, *, allow_code: bool = True) -> type[Law]:
    """Return the law called ``name``, or at ``package.module:Class``; the latter not from a file, with ``allow_code``.

    Raises
    ------
    InputError
        There is no such law, or it may not or cannot be imported; the message lists those there are.
    """
    return cast(type[Law], LAWS.load(name, allow_code=allow_code))


@cache
def name_of(law: type[Law]) -> str:
    """Return the name that `law_named` finds this law by: its own where it is registered, else its place."""
    try:
        if law_named(law.law, allow_code=False) is law:
            return law.law
    except InputError:
        pass  # its name is not registered, or is that of a law which cannot be imported here
    return f"{law.__module__}:{law.__qualname__}"


def laws_for(scaling: Scaling) -> Sequence[type[Law]]:
    """Every registered law that describes this scaling; all of them for ``EITHER``."""
    laws = [law_named(name) for name in LAWS.names()]
    return [law for law in laws if scaling in (Scaling.EITHER, law.scaling) or law.scaling is Scaling.EITHER]
