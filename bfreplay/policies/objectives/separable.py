"""Objectives that are sums over jobs: one rate function, or a weighted sum of several."""

from __future__ import annotations

import numpy as np

from bfreplay.milp.problem import AllocationProblem
from bfreplay.policies.objectives.objective import Rates, problem_from
from bfreplay.policies.objectives.parameters import json_ready
from bfreplay.policies.objectives.spec import written
from bfreplay.policies.objectives.terms import Term
from bfreplay.policies.policy import PolicyState


class SeparableObjective:
    """``gain_j(n) = t_fwd_s x V_j(n)``, with ``V`` the function of the only term, or a weighted sum of several.

    In a sum every term is divided by its largest absolute value over the decision's jobs and their counts up to
    ``max_nodes``, so that weights are relative importances whatever the terms' units; a term that is 0 everywhere adds
    nothing. One term alone keeps its unit.

    While it rescales, a job gives up what it makes now: its value at the nodes that it holds (what ``Rates.given_up``
    says), never less than 0, and nothing if it holds fewer than ``min_nodes``.
    """

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self.spec = written(tuple(term.part for term in terms))

    def problem(self, state: PolicyState, t_fwd_s: float) -> AllocationProblem:
        """Gains over ``t_fwd_s`` seconds, and what rescaling gives up."""
        rates = self.rates(state, t_fwd_s)
        given_up = np.maximum(rates.given_up[np.arange(state.n_jobs), state.current], 0.0)
        return problem_from(state, t_fwd_s * rates.value, given_up)

    def rates(self, state: PolicyState, t_fwd_s: float) -> Rates:
        """``V (J, K + 1)``, and what of it a rescaling job gives up."""
        counts = np.arange(state.throughput.shape[1])
        if len(self.terms) == 1:
            only = self.terms[0].rates(state, counts, t_fwd_s)
            weight = self.terms[0].weight
            return only if weight == 1.0 else Rates(weight * only.value, weight * only.given_up)
        value, given_up = np.zeros((2, state.n_jobs, counts.size))
        is_read = counts <= state.max_nodes[:, None]
        for term in self.terms:
            rates = term.rates(state, counts, t_fwd_s)
            largest = float(np.abs(rates.value).max(where=is_read, initial=0.0))
            if largest > 0.0:
                factor = term.weight / largest
                value += factor * rates.value
                given_up += factor * rates.given_up
        return Rates(value, given_up)

    def describe(self) -> dict[str, object]:
        """Spec, and every term with its weight and all its parameters."""
        return {
            "spec": self.spec,
            "terms": [
                {"name": term.part.name, "weight": term.weight, "parameters": json_ready(term.settings)}
                for term in self.terms
            ],
        }
