"""Fits as plain text for people: a table of laws, what the chosen one describes, and warnings."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from functools import partial

import numpy as np

from bfreplay.scalability.choice import TIED_WITHIN, Choice
from bfreplay.scalability.fitting import FittedLaw
from bfreplay.scalability.law import Scaling, name_of
from bfreplay.scalability.measurements import UNIT_DOUBT, Measurements
from bfreplay.wording import aligned_lines, count, digits, percent

WIDTH = 100
_wrap = partial(textwrap.wrap, width=WIDTH, break_on_hyphens=False)
_LARGE_SCATTER = 0.10
_HARDLY_RISES = 0.2
"""Exponent of the gain in rate over that in nodes below which rates hardly rise: 15 % for twice the nodes."""
_FAR_ABOVE_LINEAR = 1.25
"""The same exponent, above which rates rise too much: 2.4 times for twice the nodes."""
_RATE_DOUBT = (
    "is the batch that of all GPUs together (global_batch), or are the rates those of all GPUs together "
    "(samples_per_s)?"
)
_HEAD = ("law", "scaling", "parameter", "value", "95 % interval", "scatter", "AICc", "verdict")
_MEANING = {
    Scaling.STRONG: "Strong scaling: the global batch is the same at every node count, each node gets a smaller part "
    "of it, and a step trains the same whatever the count.",
    Scaling.WEAK: "Weak scaling: the batch of each node is the same, so the global batch grows with the nodes. "
    "samples/s count its samples alike; whether those of a larger batch teach as much (learning rate, warm-up) is for "
    "you to judge.",
    Scaling.EITHER: "This law describes weak and strong scaling alike; which one it is here is how you measured. "
    "Strong: the global batch is the same at every count. Weak: it grows with the nodes, and samples of a larger batch "
    "may teach less.",
}


def render(curve_name: str, choice: Choice, scaling: Scaling = Scaling.EITHER) -> str:
    """Lay out the fits to one curve, ending in a newline.

    Parameters
    ----------
    curve_name
        Name of the curve.
    choice
        The fits.
    scaling
        Scaling of the measurements, if known.
    """
    blocks = [_warning(f"{curve_name}: {sentence}") for sentence in of_outliers(choice)]
    blocks.append(_wrap(f"{curve_name}: {headline(choice)}"))
    if choice.fits:
        blocks.append(_table(choice))
    if choice.best is not None:
        scaling_of_law = scaling if choice.best.curve.scaling is Scaling.EITHER else choice.best.curve.scaling
        blocks.append(_wrap(_MEANING[scaling_of_law]))
    blocks += [_wrap(f"{sentence.law} is left out: {sentence.reason}.") for sentence in choice.left_out]
    blocks += [_warning(sentence) for sentence in warnings(choice)]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def headline(choice: Choice) -> str:
    """Return the measurements and the recommended law in a sentence."""
    counts = choice.measurements.counts
    extent_words = count(len(choice.measurements.nodes), "measurement")
    extent = f"{extent_words} at {count(len(counts), 'node count')} from {counts[0]:,} to {counts[-1]:,}"
    if choice.best is None:
        reason = "no law fits" if choice.least_needs is None else f"too few for any law ({_least(choice.least_needs)})"
        return f"{extent}; {reason}: the means as points are used"
    law = choice.best.curve
    values = ", ".join(
        f"{parameter.name} {digits(value)}" for parameter, value in zip(law.parameters, law.values, strict=True)
    )
    return f"{extent}; {name_of(type(law))} is used, {law.formula} with {values}"


def remarks(choice: Choice) -> list[str]:
    """Return the comments on a curve in a file of curves: origin, intervals and warnings."""
    lines = [headline(choice)]
    if choice.best is not None:
        law = choice.best.curve
        lines.append(f"residual scatter {percent(choice.best.scatter)}; 95 % intervals of all parameters together:")
        lines += [
            f"{entry.name}: {digits(low)} to {digits(high)} ({entry.meaning})"
            for entry, (low, high) in zip(law.parameters, choice.best.intervals, strict=True)
        ]
    return [*lines, *(f"warning: {entry}" for entry in [*of_outliers(choice), *warnings(choice)])]


def of_outliers(choice: Choice) -> list[str]:
    """Return warnings of measurements far from their repeats, count by count, before a law is chosen."""
    sentences = []
    for nodes in dict.fromkeys(outlier.nodes for outlier in choice.outliers):
        at_count = [outlier for outlier in choice.outliers if outlier.nodes == nodes]
        if len(at_count[0].siblings) == 1:
            lower, upper = sorted(at_count, key=lambda outlier: outlier.rate)
            finding = (
                f"the two measurements at {count(nodes, 'node')} lie far apart, {digits(lower.rate)} samples/s "
                f"(row {lower.row}) and {digits(upper.rate)} (row {upper.row}), {upper.rate / lower.rate:.1f} times "
                "that"
            )
            advice = "Measure a third time there to see which one is wrong"
        else:
            finding = f"at {count(nodes, 'node')} " + ", ".join(
                f"{digits(outlier.rate)} samples/s (row {outlier.row}) is {_off(outlier.rate, outlier.middle)} the "
                f"{digits(outlier.middle)} of its repeats"
                for outlier in at_count
            )
            advice = "Measure there again"
        sentences.append(
            f"{finding}; repeats scatter by {percent(at_count[0].scatter)} here. {advice}, or drop the row of a run "
            "that was disturbed: the fits hold it, and it sways the choice."
        )
    return sentences


def warnings(choice: Choice) -> list[str]:
    """Return warnings to read before the curve is used, each in a sentence or two; empty if all is well.

    Those of `of_outliers` come before and are not repeated.
    """
    sentences = _of_flat_rates(choice.measurements)
    sentences += [_of_no_law(choice)] if choice.best is None else [*_of_best(choice, choice.best), *_of_tie(choice)]
    sentences += _of_counts_below(choice)
    if choice.measurements.pure_error[1] == 0:
        sentences.append(
            "no node count was measured twice, so nothing tests whether a law fits. Repeat the measurements, best on "
            "other days and nodes."
        )
    return sentences


def _of_no_law(choice: Choice) -> str:
    last_count = int(choice.measurements.counts[-1])
    if choice.fits:
        reason = "every law misses the means by more than the repeats scatter"
    elif choice.least_needs is None:
        reason = "no law can follow the measurements"
    else:
        measurements = choice.measurements
        reason = (
            f"there are too few measurements for any law: {len(measurements.nodes)} at "
            f"{count(len(measurements.counts), 'node count')}, and {_least(choice.least_needs)}. Measure 1, 2, 4, "
            "8, ... nodes, each at least twice"
        )
    sentences = f"{reason}. The curve is the mean at each measured count, with straight lines between."
    if choice.max_nodes > last_count:
        sentences += f" They end at {count(last_count, 'node')}: jobs cannot have more."
        sentences += f" Measure at {choice.max_nodes:,} nodes."
    return sentences


def _of_best(choice: Choice, best: FittedLaw) -> list[str]:
    sentences = []
    name, last_count = name_of(type(best.curve)), int(choice.measurements.counts[-1])
    if not best.fits:
        sentences.append(
            f"{name} does not fit: it misses the means by more than the repeats scatter "
            f"(p = {best.lack_of_fit_p:.2g}). It is used because it was asked for; without --law the choice is free."
        )
    if best.lack_of_fit_p is None and best.scatter > _LARGE_SCATTER:
        sentences.append(
            f"the measurements scatter by {100 * best.scatter:.0f} % around {name}: it may not fit. Repeats would tell "
            "scatter from a lack of fit."
        )
    free_parameters = [
        parameter.name
        for parameter, (low, high) in zip(best.curve.parameters, best.intervals, strict=True)
        if high >= parameter.high or (parameter.low == 0 and low == 0 and parameter.name == "rate_1")
    ]
    if free_parameters:
        sentences.append(
            f"the measurements do not limit {' and '.join(free_parameters)} of {name}: its interval ends at the "
            "parameter's own bound. Fewest nodes tell the rate of one node, most nodes the limits."
        )
    if choice.max_nodes > last_count:
        low, high = best.band(np.array([float(choice.max_nodes)]))
        predicted_rate = float(best.curve.rates([choice.max_nodes])[0])
        sentences.append(
            f"{choice.max_nodes:,} nodes lie beyond the {last_count:,} measured: {name} gives {digits(predicted_rate)} "
            f"samples/s there (95 % band {digits(float(low[0]))} to {digits(float(high[0]))}) if it holds that far. "
            f"Measure at {choice.max_nodes:,} nodes to know."
        )
    return sentences


def _of_flat_rates(measurements: Measurements) -> list[str]:
    counts, means = measurements.counts, measurements.means
    last = int(np.argmax(means)) or len(counts) - 1
    gain = means[last] / means[0]
    slope, linear = math.log(gain), math.log(counts[last] / counts[0])
    if _HARDLY_RISES * linear <= slope <= _FAR_ABOVE_LINEAR * linear:
        return []
    how, doubt = ("hardly rise", UNIT_DOUBT) if slope < linear else ("rise far more than the nodes", _RATE_DOUBT)
    return [
        f"the rates {how}: {digits(means[last])} samples/s on {count(int(counts[last]), 'node')} are {gain:.3g} "
        f"times the {digits(means[0])} on {counts[0]:,}; {doubt}"
    ]


def _of_counts_below(choice: Choice) -> list[str]:
    first_count = choice.min_nodes
    if first_count == 1:
        return []
    rate_by_count = choice.curve.table(first_count)
    name = "a straight line to (0, 0)" if choice.best is None else name_of(type(choice.best.curve))
    consequence = ""
    if rate_by_count[:-1].max() > rate_by_count[-1]:
        consequence = (
            f", and on some count more than the {digits(rate_by_count[-1])} on {first_count:,}: it cannot be right"
        )
    return [
        f"nothing was measured below {count(first_count, 'node')}: jobs that name no min_nodes begin there. On 1 node "
        f"{name} gives {digits(rate_by_count[1])} samples/s{consequence}. Measure at fewer nodes before jobs get them."
    ]


def _of_tie(choice: Choice) -> list[str]:
    tie, best = choice.tie, choice.best
    if tie is None or best is None:
        return []
    names = f"{', '.join(tie.laws[:-1])} and {tie.laws[-1]}"
    too_few = "these are too few measurements to choose a law by AICc"
    reason = too_few if math.isinf(best.aicc) else f"their AICc lie within {TIED_WITHIN:g}"
    difference = "" if tie.measure_at == tie.max_nodes else f", where they differ by {percent(tie.apart_there)}"
    advice = "First settle what lies far from its repeats, then measure" if choice.outliers else "Measure next"
    return [
        f"{names} cannot be told apart: {reason}. At {count(tie.max_nodes, 'node')} they differ by up to "
        f"{percent(tie.apart)}. {advice} at {count(tie.measure_at, 'node')}{difference}: that tells them apart best."
    ]


def _table(choice: Choice) -> list[str]:
    table_rows: list[Sequence[str]] = [_HEAD]
    for result in choice.fits:
        fitted_curve = result.curve
        head_cells = (name_of(type(fitted_curve)), fitted_curve.scaling.value)
        aicc_text = "-" if math.isinf(result.aicc) else f"{result.aicc:.1f}"
        tail_cells = (f"{100 * result.scatter:.2g} %", aicc_text, _verdict(choice, result))
        for position, (parameter, parameter_value, (low, high)) in enumerate(
            zip(fitted_curve.parameters, fitted_curve.values, result.intervals, strict=True)
        ):
            middle = (parameter.name, digits(parameter_value), f"{digits(low)} to {digits(high)}")
            table_rows.append((*head_cells, *middle, *tail_cells) if position == 0 else ("", "", *middle, "", "", ""))
    return aligned_lines(table_rows, left=(0, 1, 2, 4, 7))


def _verdict(choice: Choice, result: FittedLaw) -> str:
    best, law_name = choice.best, name_of(type(result.curve))
    if not result.fits:
        return f"does not fit (p = {result.lack_of_fit_p:.1g})"
    if best is None or result is best:
        return "best"
    if law_name in choice.same_curve:
        return "the same curve"
    if choice.tie is not None and law_name in choice.tie.laws:
        return "as good"
    return "worse"


def _least(needs: tuple[int, int]) -> str:
    return f"{needs[1]} at {needs[0]} counts or more are needed"


def _off(rate: float, middle: float) -> str:
    deviation = rate / middle - 1.0
    return f"{100 * abs(deviation):.0f} % {'below' if deviation < 0 else 'above'}"


def _warning(text: str) -> list[str]:
    return _wrap(f"Warning: {text}", subsequent_indent="  ")
