"""One allocation decision on nodes of several types, and its exact solver.

A multiple-choice knapsack with one row a type: each job chooses a type and a count, or nothing. As with one type
(``milp.exact``) nodes get prices, now one for each type (``prices``), at which what the jobs would choose for
themselves bounds every answer; a good answer is made from that, and a dynamic program over what little
is left open finds the optimum or proves that the known answer is it (``solver``). Where that would grow too large, as
it may beyond four types or a thousand nodes of each, HiGHS decides what is left open.
"""
