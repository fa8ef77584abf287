"""Defaults that the command line and the Python API share."""

BUNDLED = "sample"
"""The word for the bundled log, for its jobs, and for made-up throughputs."""

T_FWD_S = 120.0
"""Forward-looking time: near the best value on the Summit log, and flat around it."""

MAX_PARALLEL = 10
"""Jobs at once."""

TIME_LIMIT_S = 10.0
"""For a MILP back end, per decision; the published program's."""

MILP_FORMULATION = "choices_reduced"
"""For a MILP back end: the fastest on nearly all of them."""

NODE_PRICES = {"v100": 0.74, "p100": 0.43, "k80": 0.135}
"""Dollars for an hour of one GPU, by type: the spot prices that Gavel's program counts with."""
