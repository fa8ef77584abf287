"""Options of Shockwave's planner, and the defects of the published program that it can repeat."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.options import Number, Whole, option
from bfreplay.policies.policy import PolicyOptions
from bfreplay.saved_state import restorable


@restorable
@dataclass(frozen=True, slots=True)
class PlannerQuirks:
    """Defects of the published program to repeat. None by default; all of them give the recorded inputs of its planner.

    Parameters
    ----------
    whole_second_epochs
        Epoch times of the profile are rounded to whole seconds, at least one: an epoch of 1.3 s counts as 1 s.
        Otherwise they are as measured.
    calibrates_over_waiting
        Measured and profiled progress are compared over all rounds since round 0: rounds before a job arrived or in
        which it waited count at the rate measured next. Otherwise only rounds in which it ran count.
    calibrates_each_use
        Epoch times are calibrated anew before each use of a prediction, several times for one plan. Since the profile's
        progress counts its last, partial epoch at the calibrated time, each calibration can move them again. Otherwise
        they are calibrated once for a plan, against the profile as it was measured.
    clock_times
        Finish-time fairness compares times on the clock, so a job that arrives late seems punctual. Otherwise it
        compares durations since the job was admitted.
    """

    whole_second_epochs: bool = False
    calibrates_over_waiting: bool = False
    calibrates_each_use: bool = False
    clock_times: bool = False

    @classmethod
    def published(cls) -> PlannerQuirks:
        """Return all of them: the program as published."""
        return cls(whole_second_epochs=True, calibrates_over_waiting=True, calibrates_each_use=True, clock_times=True)


def _ascending_knots(name: str, knots: tuple[float, ...]) -> tuple[float, ...]:
    for knot in knots:
        checks.number(name, knot, least=0, most=1)
    if list(knots[:1]) != [0.0] or knots[-1] != 1.0 or list(knots) != sorted(set(knots)):
        raise InputError(
            "log_knots do not ascend from 0 to 1",
            column=name,
            value=knots,
            expected="ascending numbers, the first 0 and the last 1",
            fix="write 0, 0.2, 0.4, 0.6, 0.8, 1",
        )
    return knots


@dataclass(frozen=True)
class PlannerOptions(PolicyOptions):
    """Options of a ``ShockwavePlanner``.

    Parameters
    ----------
    round_s
        Nominal length of a round, seconds > 0.
    future_rounds
        Rounds that a plan covers (F).
    k
        Weight of the longest remaining time in the objective (the published ``k``, its makespan regulariser).
    priority_power
        Exponent of the weights of jobs about to be late (the published ``lambda``).
    rhomax
        Largest finish-time fairness of a job that is in time.
    log_knots
        Ascending from 0 to 1: the logarithm of progress is interpolated between them.
    backend
        Name of a registered back end (``bfreplay solvers`` lists them), or ``package.module:Class``.
    time_limit_s
        Limit of each solve. A plan cut off by it depends on the machine and may differ between runs.
    relative_gap
        Largest gap that counts as solved, relative to the plan's gain over one that runs nothing.
    published_weights
        One weighted sum, with weights up to 1e75, as published; otherwise jobs about to be late that need less than a
        round come first, see ``PlanProblem.levels``.
    replan_every
        Replan in rounds whose number is a multiple of it.
    quirks
        Defects of the published program to repeat.

    Raises
    ------
    InputError
        A value out of range.
    """

    round_s: float = option(120.0, checks.round_length)
    future_rounds: int = option(20, Whole(1, 1000))
    k: float = option(1e-3, Number(least=0))
    priority_power: float = option(12.0, Number(least=0, most=100))
    rhomax: float = option(1.0, Number(above=0))
    log_knots: tuple[float, ...] = option((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), _ascending_knots)
    backend: str = option("highs", checks.text)
    time_limit_s: float = option(15.0, Number(above=0))
    relative_gap: float = option(1e-3, Number(least=0, most=1))
    published_weights: bool = option(False, checks.truth)
    replan_every: int = option(8, Whole(1))
    quirks: PlannerQuirks = PlannerQuirks()
