"""Objectives that a user names, with parameters and weights; the names are in ``policies.names``."""

from __future__ import annotations

import inspect
from typing import Any

from bfreplay.errors import InputError
from bfreplay.policies.names import OBJECTIVES, OWN
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.objectives.own import OwnObjective
from bfreplay.policies.objectives.separable import SeparableObjective, Term, WholeObjective
from bfreplay.policies.spec import T_FWD_S, TermSpec, parameters_of, parse, settings_of
from bfreplay.registry import make_from_code, one_line


def objective_of(spec: str, *, allow_code: bool = True) -> Objective:
    """Make the objective that ``spec`` names: ``"own"``, ``"cost(price=0.4)"``, ``"mine:function"``, or a weighted sum.

    Parameters
    ----------
    spec
        Its names, parameters and weights.
    allow_code
        Whether it may name code; give false for a spec that was read from a file.

    Raises
    ------
    InputError
        Invalid syntax, or an objective that is unknown or may not be imported; or a sum has a term that is no sum over
        jobs.
    """
    terms = parse(spec)
    if terms == (TermSpec(OWN),):
        return OwnObjective()
    implementations = [OBJECTIVES.load(term.name, allow_code=allow_code) for term in terms]
    if len(terms) == 1 and isinstance(implementations[0], type):
        return _whole(terms[0], implementations[0])
    return SeparableObjective(
        tuple(_term(term, implementation) for term, implementation in zip(terms, implementations, strict=True))
    )


def _term(term: TermSpec, function: Any) -> Term:
    if isinstance(function, type):
        raise _not_in_a_sum(term)
    parameters = _known_parameters(term, function, 2)
    return Term(term, function, settings_of(term, parameters), T_FWD_S in parameters)


def _whole(term: TermSpec, joint: type[Any]) -> WholeObjective:
    if term.weight is not None:
        raise _not_in_a_sum(term)
    settings = settings_of(term, _known_parameters(term, joint, 0))
    objective = make_from_code(lambda: joint(**settings), f"the objective {term.name!r}", value=str(term))
    return WholeObjective(term, objective, settings)


def _known_parameters(term: TermSpec, implementation: Any, n_given: int) -> dict[str, inspect.Parameter]:
    try:
        return parameters_of(implementation, n_given)
    except ValueError as error:  # some functions written in C do not say
        raise InputError(
            f"the parameters of the objective {term.name!r} cannot be told: {one_line(error)}",
            value=term.name,
            expected="a Python function of (state, counts)",
        ) from error


def _not_in_a_sum(term: TermSpec) -> InputError:
    return InputError(
        f"the objective {term.name!r} has no weight and is no term of a sum: it looks at all jobs together, and does "
        "not say what one of them is worth by itself",
        value=str(term),
        expected=f"{term.name!r} alone, or a sum of other objectives",
    )
