"""Policies that a user names, and their parameters; the names are in ``names``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from bfreplay.errors import InputError
from bfreplay.milp.solution import Solver
from bfreplay.options import options_of
from bfreplay.policies.names import POLICIES
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.policy import Policy, PolicyCapabilities, PolicyWithOptions, not_a_policy
from bfreplay.policies.spec import TermSpec, parameters_of, parse_one, settings_of
from bfreplay.registry import make_from_code

_OF_THE_RUN = ("t_fwd_s", "solver", "objective", "prices")


def policy_of(
    spec: str,
    *,
    t_fwd_s: float | str,
    solver: Solver,
    objective: Objective | str | None = None,
    round_s: float | None = None,
    prices: Mapping[str, float] | None = None,
) -> Policy:
    """Make the policy that ``spec`` names: ``"bftrainer"``, ``"foresight(events=3)"``, ``"package.module:Class"``.

    Parameters
    ----------
    spec
        Name and own parameters.
    t_fwd_s, solver, objective
        For those that optimise.
    round_s
        Length of a round in seconds, for those that decide in rounds; ``None``: the policy's own.
    prices
        Dollars for an hour of a node by its type; those that do not look at prices are not told.

    Raises
    ------
    InputError
        There is no such policy; the message lists those there are. It has no such parameter. Or it takes no
        ``objective`` or ``round_s``, and one is given.
    """
    term = parse_policy(spec)
    factory = _class_of(term)
    settings: Any = dict(_settings(term, factory))
    if objective is not None:
        if not _takes(factory, "objective"):
            raise InputError(
                f"the policy {term.name!r} takes no objective",
                column="objective",
                value=objective if isinstance(objective, str) else objective.spec,
                expected="none with this policy: it decides by a rule of its own",
                fix="leave --objective out, or choose --policy bftrainer; a class of your own takes one when its "
                "from_options has a parameter 'objective'",
            )
        settings["objective"] = objective
    if round_s is not None:
        _check_round(term, factory, round_s)
        settings["round_s"] = round_s
    if prices and _takes(factory, "prices"):
        settings["prices"] = prices
    if not _has_from_options(factory):
        missing = ", ".join(f"{name}()" for name in sorted(getattr(factory, "__abstractmethods__", ())))
        fix = "let __init__ take parameters by name only, or write from_options (see bfreplay.Policy)"
        if missing:
            fix = f"write its {missing} (see bfreplay.Policy)"
        return make_from_code(lambda: factory(**settings), f"the policy {term.name!r}", fix=fix)
    return make_from_code(
        lambda: factory.from_options(t_fwd_s=t_fwd_s, solver=solver, **settings), f"the policy {term.name!r}"
    )


def capabilities_of(spec: str) -> PolicyCapabilities:
    """Return the capabilities that the class of the policy in ``spec`` declares.

    Raises
    ------
    InputError
        There is no such policy.
    """
    return _class_of(parse_policy(spec)).capabilities


def learns(spec: str) -> bool:
    """Return whether the policy that ``spec`` names learns what others know (``PolicyCapabilities.learns_with``).

    Raises
    ------
    InputError
        As ``policy_settings``.
    """
    parameter = capabilities_of(spec).learns_with
    return parameter is not None and policy_settings(spec)[1].get(parameter) is not None


def _class_of(term: TermSpec) -> type[Policy]:
    policy_class: type = POLICIES.load(term.name, allow_code=True)
    if not issubclass(policy_class, Policy):
        raise not_a_policy(f"{POLICIES.location(term.name)} is no policy", term.name)
    return policy_class


def _check_round(term: TermSpec, factory: type[Policy], round_s: float) -> None:
    if not _takes(factory, "round_s"):
        raise InputError(
            f"the policy {term.name!r} does not decide in rounds",
            column="round",
            value=round_s,
            expected="--round with a policy that does, such as gavel.max_min_fairness_perf",
            fix="leave --round out; a class of your own has rounds when its from_options has a parameter 'round_s'",
        )
    if "round_s" in dict(term.parameters):
        raise InputError(
            "the length of a round is set twice",
            column="round",
            value=round_s,
            expected=f"--round, or round_s in {term}",
            fix="leave one of the two out",
        )


def policy_of_record(described: Mapping[str, Any]) -> PolicyWithOptions | None:
    """Make the policy again that described itself so in a run's record, if it ``decides_again``; ``None`` if not.

    Only built-in policies: a record does not have code imported.

    Raises
    ------
    InputError
        It has no such options.
    """
    name = described["name"]
    factory = POLICIES.load(name, allow_code=False) if name in POLICIES.built_in else None
    if factory is None or not factory.capabilities.decides_again:
        return None
    options = {option: described[option] for option in options_of(factory.options_type) if option in described}
    return cast(PolicyWithOptions, factory(factory.options_type(**options)))


def policy_settings(spec: str) -> tuple[str, Mapping[str, object]]:
    """Name and own parameters of the policy that ``spec`` names: those it sets, and the defaults of the others.

    Raises
    ------
    InputError
        There is no such policy, or it has no such parameter.
    """
    term = parse_policy(spec)
    return term.name, _settings(term, _class_of(term))


def parse_policy(spec: str) -> TermSpec:
    """Name and parameters of a policy as a user wrote them.

    Raises
    ------
    InputError
        It is not ``NAME`` or ``NAME(key=value, ...)``.
    """
    return parse_one(spec, "policy", "NAME, NAME(key=value, ...), or package.module:Class", column="policy")


def _settings(term: TermSpec, factory: type[Policy]) -> Mapping[str, object]:
    parameters = parameters_of(_function_with_parameters(factory) if _has_from_options(factory) else factory, 0)
    return settings_of(term, {name: parameters[name] for name in parameters if name not in _OF_THE_RUN}, "policy")


def _has_from_options(factory: type[Policy]) -> bool:
    """Return whether the policy has a ``from_options`` of its own; otherwise ``__init__`` takes its parameters."""
    return getattr(factory.from_options, "__func__", None) is not getattr(Policy.from_options, "__func__", None)


def _function_with_parameters(factory: type[Policy]) -> Callable[..., Any]:
    return factory.options_type if issubclass(factory, PolicyWithOptions) else factory.from_options


def _takes(factory: type[Policy], keyword: str) -> bool:
    parameters = inspect.signature(_function_with_parameters(factory)).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    return keyword in parameters or inspect.Parameter.VAR_KEYWORD in kinds
