"""Proportional fairness: who has got little gains much."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.objectives.curves import best_rate
from bfreplay.policies.objectives.service import log_service, service
from bfreplay.policies.policy import PolicyState


def proportional_fairness(state: PolicyState, counts: NDArray[np.int64], *, t_fwd_s: float) -> NDArray[np.float64]:
    """``weight x (log s(n) - log s(0)) / t_fwd``, per second, with ``s`` the service since admission.

    ``s(n) = (progress + t_fwd P(n)) / (best rate x (now + t_fwd - admitted))`` is what the job will have got as a share
    of what dedicated nodes at its best count would have given it; ``log s`` is ``log(s + 0.001)``, so that a job which
    has got nothing can ask for much, but not for everything. The sum of logarithms is alpha-fairness at alpha = 1
    (Kelly, Maulloo, Tan 1998; Mo, Walrand 2000): a decision is changed only if the jobs that gain gain more, in per
    cent, than the others lose. Use it to share fairly without giving up much throughput.
    """
    share = service(state, t_fwd_s * state.throughput, best_rate(state, counts), t_fwd_s)
    value = log_service(share)
    return state.weight[:, None] * (value - value[:, :1]) / t_fwd_s
