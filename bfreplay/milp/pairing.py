"""Checks that a formulation, a back end and the options of a solve fit, before anything is solved."""

from __future__ import annotations

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.milp.backends import Backend
from bfreplay.milp.formulations import Formulation

MAX_SEED = 2**31 - 2
"""Solvers take 32-bit seeds, and CBC needs one more."""

MAX_TIME_LIMIT_S = 1e6
"""Eleven days: waiting times are counted in 32-bit milliseconds."""


def pairing_fault(formulation: Formulation, backend: Backend, *, reformulate_sets: bool = False) -> str:
    """Return why ``backend`` cannot take the models of ``formulation``; empty when it can."""
    able = backend.capabilities
    if formulation.needs_sos and not able.sos and not reformulate_sets:
        return (
            f"{backend.name} takes no special ordered sets, which {formulation.name} needs; take another formulation "
            "(choices_reduced needs none), another back end (cbc takes them), or have the sets posed by binaries "
            "(--reformulate-sets)"
        )
    if formulation.needs_continuous and not able.continuous:
        return (
            f"{backend.name} takes integer columns only, and {formulation.name} has continuous ones; take another "
            "formulation (choices_reduced has none) or another back end"
        )
    return ""


def check_options(time_limit_s: float, relative_gap: float, threads: int, seed: int) -> None:
    """Raise ``InputError`` for an option of ``SolveOptions`` that is out of range."""
    checks.number("time_limit_s", time_limit_s, above=0, most=MAX_TIME_LIMIT_S)
    if not 0 <= relative_gap < 1:
        raise InputError("the gap is out of range", value=relative_gap, expected="0 <= gap < 1, relative")
    checks.whole("threads", threads, 1, checks.MOST_THREADS)
    checks.whole("seed", seed, 0, MAX_SEED)


def location_of(backend: Backend) -> str:
    """``"package.module:Class"`` of an instance; ``InputError`` where a worker could not import it."""
    kind = type(backend)
    if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        raise InputError(
            "a worker process cannot import this back end",
            value=kind.__qualname__,
            expected="a class in an importable module",
            fix="move it to a module of its own, or pass isolated=False",
        )
    return f"{kind.__module__}:{kind.__qualname__}"
