"""A forward-looking time from what a user gives."""

from __future__ import annotations

from typing import cast

import numpy as np

from bfreplay.errors import InputError
from bfreplay.policies.forward_time.auto import AUTO, AutoForwardTime
from bfreplay.policies.forward_time.fixed import FixedForwardTime
from bfreplay.policies.forward_time.forward_time import ForwardTime


def forward_time_of(given: float | str | ForwardTime) -> ForwardTime:
    """``given`` as a ``ForwardTime``: a number of seconds, the word 'auto', or an object that says.

    Raises
    ------
    InputError
        It is none of these, or the number is not positive.
    """
    if isinstance(given, str):
        if given != AUTO:
            raise InputError(
                "this is no forward-looking time",
                column="t_fwd_s",
                value=given,
                expected=f"seconds > 0, or {AUTO!r}",
                fix=f"give a number, such as 120, or {AUTO!r} to let it be learnt from the events as they come",
            )
        return AutoForwardTime()
    if isinstance(given, int | float | np.number) or not hasattr(given, "seconds"):
        return FixedForwardTime(cast(float, given))
    return given
