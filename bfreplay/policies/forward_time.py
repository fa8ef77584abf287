"""Expected duration of a decision: a fixed time, or one that is learnt from the events as they come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks, defaults
from bfreplay.errors import InputError
from bfreplay.policies.shadows import Shadows
from bfreplay.policies.state import LONG_AGO_US, PolicyState


class ForwardTime(Protocol):
    """Expected duration of each decision, perhaps learnt from earlier ones.

    The same states and decisions give the same times. When the clock goes back another replay has begun: what was
    learnt is forgotten.
    """

    def seconds(self, state: PolicyState) -> float:
        """Forward-looking time of the decision on ``state``: seconds, finite and > 0."""
        ...

    def note_decision(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """Note that the jobs of ``state``, the argument of ``seconds``, hold ``counts`` (J,) from now on."""
        ...

    def describe(self) -> dict[str, object]:
        """``name``, and every parameter with its value, JSON-ready, for the run's record."""
        ...

    def close(self) -> None:
        """Forget what was learnt; harmless when called twice."""
        ...


def is_number(value: object) -> bool:
    """Return whether it is a number of Python or numpy, and not a truth value."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def positive_seconds(t_fwd_s: float | str, expected: str, fix: str) -> float:
    """Return a forward-looking time as a float; ``InputError`` with ``expected`` unless it is a positive number."""
    seconds = float(t_fwd_s) if is_number(t_fwd_s) else math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(
            "the forward-looking time is not a positive number",
            column="t_fwd_s",
            value=t_fwd_s,
            expected=expected,
            fix=fix,
        )
    return seconds


class FixedForwardTime:
    """The same time for every decision.

    Parameters
    ----------
    t_fwd_s
        Seconds, > 0. Small values make rescaling dear.

    Raises
    ------
    InputError
        It is no positive number.
    """

    def __init__(self, t_fwd_s: float) -> None:
        self.t_fwd_s = positive_seconds(
            t_fwd_s,
            "seconds > 0, or 'auto'",
            "120 s is a good start; the best value depends on how often nodes are reclaimed, and 'auto' learns it from "
            "the events as they come",
        )

    def seconds(self, state: PolicyState) -> float:
        """Return the fixed time."""
        return self.t_fwd_s

    def note_decision(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """Do nothing: there is nothing to learn."""

    def describe(self) -> dict[str, object]:
        """Its name and the seconds."""
        return {"name": "fixed", "t_fwd_s": self.t_fwd_s}

    def close(self) -> None:
        """Do nothing: there is nothing to forget."""


AUTO = "auto"
"""Its name, and what stands for it in options."""

CANDIDATES_S = (7.5, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)
"""From below the time that a rescale takes to where longer makes hardly a difference; their mean is the default."""

MEMORY = 200
"""Decisions."""

SHARPNESS = 600.0
"""A shadow that gains 0.5 % less weighs e^-3 as much."""

_JOBS_PER_TURN = 16
"""With more jobs than this the shadows rest every other turn, with more than twice as many two turns of three, ..."""

_TURN = 32
"""Decisions."""

_SETTLING = 4
"""Decisions after a rest that do not count: until then all shadows have what the real jobs had."""

_FIRST = 20
"""Decisions made before anything is concluded."""


class AutoForwardTime:
    """The geometric mean of candidates, each weighted by what its shadow has gained over the last decisions.

    What a shadow (``Shadows``) gained counts the less the longer ago, by a factor ``1 - 1/memory`` at each decision:
    decisions and not hours, so that nothing depends on how fast the log runs. With the discounted gain ``g_i`` of
    candidate i its weight is ``exp(sharpness * (g_i / max g - 1))``: the exponentially weighted average forecaster of
    Cesa-Bianchi and Lugosi, "Prediction, Learning, and Games", 2006, sections 2.1 and 2.11. The first 20 decisions are
    made with ``start_s``, and all as long as no shadow has gained anything.

    It knows what the policy has seen and decided, and nothing of the future. Candidates are judged by the jobs' own
    objective curves, as far as the policy knows them, whatever it maximises. Nine shadows of many jobs would cost more
    than the replay itself, so beyond 16 jobs they follow part of the time only.

    Parameters
    ----------
    start_s
        Before anything is known, seconds.
    candidates_s
        Forward-looking times to choose from, seconds, ascending.
    memory
        Decisions that count; >= 1.
    sharpness
        Of the weights, > 0; large values take the best candidate alone.

    Raises
    ------
    InputError
        A time or ``sharpness`` is not positive, there is no candidate, or they are not ascending.
    """

    def __init__(
        self,
        start_s: float = defaults.T_FWD_S,
        candidates_s: Sequence[float] = CANDIDATES_S,
        memory: int = MEMORY,
        sharpness: float = SHARPNESS,
    ) -> None:
        candidates = np.array([FixedForwardTime(each).t_fwd_s for each in candidates_s])
        if not candidates.size or (np.diff(candidates) <= 0).any():
            raise InputError(
                "the forward-looking times to choose from are not in order",
                column="candidates_s",
                value=list(candidates_s),
                expected="one or more, ascending, none twice",
            )
        self.start_s = FixedForwardTime(start_s).t_fwd_s
        self.memory = checks.whole("memory", memory, 1)
        self.sharpness = checks.number("sharpness", sharpness, above=0)
        self._candidates_s = candidates
        self._log_s = np.log(candidates)
        self._forget()

    def _forget(self) -> None:
        self._shadows = Shadows(self._candidates_s)
        self._gained = np.zeros(self._candidates_s.size)
        self._n_seen = 0
        self._last_us = LONG_AGO_US

    def seconds(self, state: PolicyState) -> float:
        """The weighted mean, after learning from what happened since the last decision."""
        if state.time_us < self._last_us:
            self._forget()
        self._last_us = state.time_us
        self._learn(state)
        most = float(self._gained.max())
        if self._n_seen <= _FIRST or not most > 0.0:
            return self.start_s
        weight = np.exp(self.sharpness * (self._gained / most - 1.0))
        return math.exp(float(weight @ self._log_s) / float(weight.sum()))

    def _learn(self, state: PolicyState) -> None:
        n_turns = -(-state.n_jobs // _JOBS_PER_TURN)
        turn, position = divmod(self._n_seen, _TURN)
        self._n_seen += 1
        if turn % n_turns:
            self._shadows.rest()
            return
        gained = self._shadows.follow(state)
        if n_turns == 1 or turn == 0 or position >= _SETTLING:
            self._gained *= 1.0 - 1.0 / self.memory
            self._gained += gained

    def note_decision(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """Note the counts, from which the next decision tells the nodes that were reclaimed in between."""
        self._shadows.note_decision(counts)

    def describe(self) -> dict[str, object]:
        """Name and parameters."""
        return {
            "name": AUTO,
            "start_s": self.start_s,
            "candidates_s": self._candidates_s.tolist(),
            "memory_decisions": self.memory,
            "sharpness": self.sharpness,
        }

    def close(self) -> None:
        """Forget what was learnt."""
        self._forget()


def forward_time_of(given: float | str | ForwardTime) -> ForwardTime:
    """Return ``given`` as a ``ForwardTime``: a number of seconds, the word 'auto', or such an object.

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
