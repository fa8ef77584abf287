from bfreplay.milp.exact.optimum import PROOF_TOLERANCE, optimal_counts  # noqa: D100, F401
from bfreplay.milp.exact.relaxation import concave_hulls, critical_price  # noqa: F401
