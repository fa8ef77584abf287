"""The exact solver: proven optimal counts by a Lagrangian bound and a dynamic program over what it leaves open.

The problem is a multiple-choice knapsack with unit weights. Its Lagrangian relaxation prices a node at ``price`` and
lets every job choose for itself; the best price is the slope at which the concave hulls of the f_j, filled in order of
slope, use up the capacity (``relaxation``). With that price

``objective = relaxation - price * (unused nodes) - sum_j loss_j(n_j)``,

``loss_j(n) = max_m (f_j(m) - price * m) - (f_j(n) - price * n) >= 0``, so a count whose loss alone exceeds the gap
between the relaxation and the best known answer (its incumbent) is in no better answer: reduced-cost fixing. (Dyer,
Riha and Walker, "A hybrid dynamic programming/branch-and-bound algorithm for the multiple-choice knapsack problem",
1995, and Pisinger, "A minimal algorithm for the multiple-choice knapsack problem", 1995, are the sources of the idea.)
Few counts survive; a dynamic program over them finds the optimum or proves that the known answer is it (``search``).

Everything below the solver is loops over arrays, compiled by numba. Non-concave f_j are the normal case: the charge for
rescaling puts a spike at the current count of every job.
"""

from bfreplay.milp.exact.solver import ExactSolver

__all__ = ["ExactSolver"]
