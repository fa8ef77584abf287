"""Options of Shockwave's planner, and the defects of the published program that it can repeat."""

from __future__ import annotations

from dataclasses import dataclass, field

from bfreplay import checks
from bfreplay.errors import InputError
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


@dataclass(frozen=True, slots=True)
class PlannerOptions:
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

    round_s: float = 120.0
    future_rounds: int = 20
    k: float = 1e-3
    priority_power: float = 12.0
    rhomax: float = 1.0
    log_knots: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    backend: str = "highs"
    time_limit_s: float = 15.0
    relative_gap: float = 1e-3
    published_weights: bool = False
    replan_every: int = 8
    quirks: PlannerQuirks = field(default_factory=PlannerQuirks)

    def __post_init__(self) -> None:
        checks.round_length("round_s", self.round_s)
        checks.whole("future_rounds", self.future_rounds, 1, 1000)
        checks.number("k", self.k, least=0)
        checks.number("priority_power", self.priority_power, least=0, most=100)
        checks.number("rhomax", self.rhomax, above=0)
        checks.text("backend", self.backend)
        checks.number("time_limit_s", self.time_limit_s, above=0)
        checks.number("relative_gap", self.relative_gap, least=0, most=1)
        checks.truth("published_weights", self.published_weights)
        checks.whole("replan_every", self.replan_every, 1)
        for knot in self.log_knots:
            checks.number("log_knots", knot, least=0, most=1)
        knots = list(self.log_knots)
        if knots[:1] != [0.0] or knots[-1] != 1.0 or knots != sorted(set(knots)):
            raise InputError(
                "log_knots do not ascend from 0 to 1",
                column="log_knots",
                value=self.log_knots,
                expected="ascending numbers, the first 0 and the last 1",
                fix="write 0, 0.2, 0.4, 0.6, 0.8, 1",
            )
