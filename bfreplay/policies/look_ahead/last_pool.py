"""How long the last pool in sight is expected to last."""

from __future__ import annotations

import math

import numpy as np

from bfreplay.errors import InputError


def last_pool_s(policy: str, t_fwd_s: object) -> float:
    """``t_fwd_s`` of the policy of this name, checked.

    Raises
    ------
    InputError
        It is no positive number: ``"auto"``, say, or a ``ForwardTime``.
    """
    expected = "seconds > 0"
    fix = "120 s is a good start: --t-fwd 120"
    if isinstance(t_fwd_s, bool) or not isinstance(t_fwd_s, int | float | np.integer | np.floating):
        raise InputError(
            f"the policy {policy!r} looks ahead itself and takes a number for --t-fwd: how long the last pool in sight "
            "is expected to last",
            column="t_fwd_s", value=t_fwd_s, expected=expected, fix=fix,
        )  # fmt: skip
    seconds = float(t_fwd_s)
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(
            "the forward-looking time is not a positive number",
            column="t_fwd_s", value=t_fwd_s, expected=expected, fix=fix,
        )  # fmt: skip
    return seconds
