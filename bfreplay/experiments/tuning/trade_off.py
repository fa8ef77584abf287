"""Trade-off between what training gets and what batch jobs lose, over idle nodes that are left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep import SweepResult
from bfreplay.experiments.tuning.grid import Grid, LogPart, check_values, surface_of
from bfreplay.experiments.tuning.recommendation import Recommendation, worse
from bfreplay.result_folders.tuning import PARTS, TUNED_ON, VALIDATED_ON, TradeOff, TradeOffPoint
from bfreplay.wording import amount, duration, percent

_LEAST = 0.02
"""Distance above the straight line, in shares of its ends, from which a point is a knee: less differs by chance."""


def weigh(
    base_options: RunOptions,
    parts: tuple[LogPart, LogPart],
    recommendation: Recommendation,
    reserve: Sequence[int] | None,
    min_age: Sequence[float] | None,
    sweep_runs: Callable[[list[RunOptions]], SweepResult],
) -> TradeOff:
    """Replay both parts with every reserve and minimum age, and find the knee of the part tuned on.

    Parameters
    ----------
    base_options, parts, recommendation
        Options, parts of the log, and the recommended T_fwd and number of jobs at once, which all runs use.
    reserve, min_age
        Values to try; ``None`` for none but 0. Nothing left alone is always tried.
    sweep_runs
        Makes the runs: those of the first part, then those of the second.

    Raises
    ------
    InputError
        A list is empty, or has a duplicate or an invalid value.
    """
    reserves = sorted({0, *check_values("reserve", reserve, (0,))})
    ages = sorted({0.0, *check_values("min_age", min_age, (0.0,))})
    pairs = [(nodes, seconds) for nodes in reserves for seconds in ages]
    recommended_run = replace(base_options, t_fwd=recommendation.t_fwd, max_parallel=recommendation.max_parallel)
    sweep_result = sweep_runs(
        [
            replace(recommended_run, window=log_part.window, reserve=nodes, min_age=seconds)
            for log_part in parts
            for nodes, seconds in pairs
        ]
    )
    pair_grid = Grid((recommendation.t_fwd,), tuple(range(1, len(pairs) + 1)))  # a column for each pair
    share, measure, hours = {}, {}, {}
    for index, (part_name, log_part) in enumerate(zip(PARTS, parts, strict=True)):
        rows = sweep_result.results.slice(index * len(pairs), len(pairs))
        surface = surface_of(rows, pair_grid, unlimited_work=base_options.unlimited_work, start_us=log_part.start_us)
        share[part_name], measure[part_name] = surface.share[0], surface.measure
        hours[part_name] = np.array(rows["batch_delay_node_hours"].to_pylist(), np.float64)
    knee = knee_of(share[TUNED_ON], hours[TUNED_ON])
    points = [
        TradeOffPoint(
            reserve=nodes,
            min_age_s=seconds,
            share={part_name: float(share[part_name][index]) for part_name in PARTS},
            delay_node_hours={part_name: float(hours[part_name][index]) for part_name in PARTS},
        )
        for index, (nodes, seconds) in enumerate(pairs)
    ]
    return TradeOff(clear_s=float(base_options.clear), measure=measure, points=points, knee=knee)


def knee_of(share: NDArray[np.float64], delay: NDArray[np.float64]) -> int:
    """Return the point that spares batch jobs most beyond what it costs training.

    The curve of training against delay has two natural ends: no node left alone, and no training at all. The knee is
    the point farthest above the straight line between them (Kneedle: Satopää et al., 2011): where the delay falls by a
    larger share than the training. The first point, if none is above the line.

    Parameters
    ----------
    share, delay : (P,)
        Training, more is better, and delay to batch jobs, less is better; first with no node left alone.
    """
    if not share[0] or not delay[0]:
        return 0  # nothing to lose, or nothing to spare
    above = share / share[0] - delay / delay[0]
    knee = int(above.argmax())
    return knee if above[knee] > _LEAST else 0


def trade_off_sentence(trade_off: TradeOff) -> str:
    """Return the recommendation of the knee, with its cost and its worth in both parts."""
    knee, nothing = trade_off.points[trade_off.knee], trade_off.points[0]
    if not nothing.delay_node_hours[TUNED_ON]:
        return "No batch job is late in the part tuned on, with no idle node left alone: there is nothing to spare."
    if trade_off.knee == 0:
        return "Of the values of --reserve and --min-age tried, none spares batch jobs more than it costs training."
    hours = {name: (point.delay_node_hours[TUNED_ON]) for name, point in (("with", knee), ("without", nothing))}
    saving = {name: _fall(knee.delay_node_hours[name], nothing.delay_node_hours[name]) for name in PARTS}
    cost = worse(knee.share[TUNED_ON] / nothing.share[TUNED_ON], trade_off.measure[TUNED_ON])
    elsewhere = worse(knee.share[VALIDATED_ON] / nothing.share[VALIDATED_ON], trade_off.measure[VALIDATED_ON])
    return (
        f"To spare batch jobs, add {_flags(knee)}: they start {amount(hours['with'])} node-hours late, not "
        f"{amount(hours['without'])} ({percent(saving[TUNED_ON])} less), and trainings {cost}; on the rest of the log "
        f"{percent(saving[VALIDATED_ON])} less, and they {elsewhere}."
    )


def trade_off_cautions(trade_off: TradeOff) -> list[str]:
    """Return warnings of a knee at the largest value tried."""
    knee = trade_off.points[trade_off.knee]
    largest = trade_off.points[-1]
    pairs = (
        ("--reserve", knee.reserve, largest.reserve, f"{knee.reserve:,}"),
        ("--min-age", knee.min_age_s, largest.min_age_s, f"{knee.min_age_s:g} s"),
    )
    return [
        f"{value_text} is the largest {option} tried, and the best to spare batch jobs: try more."
        for option, value, most, value_text in pairs
        if trade_off.knee and value == most > 0
    ]


def _fall(after: float, before: float) -> float:
    return 1 - after / before if before else 0.0


def _flags(point: TradeOffPoint) -> str:
    flags = [f"--reserve {point.reserve}"] if point.reserve else []
    return " ".join([*flags, f"--min-age {point.min_age_s:g}s"] if point.min_age_s else flags)


def trade_off_rows(trade_off: TradeOff) -> list[list[str]]:
    """Return the table of the points as texts, the header first: ``*`` marks the knee."""
    head = ["reserve", "min age", "share of the best, %", "delay to batch jobs, node-hours"]
    return [
        head,
        *(
            [
                f"{point.reserve:,}",
                duration(point.min_age_s) if point.min_age_s else "0",
                " / ".join(f"{100 * point.share[part_name]:.2f}" for part_name in PARTS),
                " / ".join(amount(point.delay_node_hours[part_name]) for part_name in PARTS)
                + (" *" if index == trade_off.knee else "  "),
            ]
            for index, point in enumerate(trade_off.points)
        ),
    ]
