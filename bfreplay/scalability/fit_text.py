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
from bfreplay.wording import aligned_lines, count, digits, percent

WIDTH = 100
_wrapped = partial(textwrap.wrap, width=WIDTH, break_on_hyphens=False)
_LARGE_SCATTER = 0.10
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


def render(name: str, choice: Choice, scaling: Scaling = Scaling.EITHER) -> str:
    """Lay out the fits to one curve, ending in a newline.

    Parameters
    ----------
    name
        Name of the curve.
    choice
        The fits.
    scaling
        Scaling of the measurements, if known.
    """
    blocks = [_warning(f"{name}: {each}") for each in of_outliers(choice)]
    blocks.append(_wrapped(f"{name}: {headline(choice)}"))
    if choice.fits:
        blocks.append(_table(choice))
    if choice.best is not None:
        means = scaling if choice.best.curve.scaling is Scaling.EITHER else choice.best.curve.scaling
        blocks.append(_wrapped(_MEANING[means]))
    blocks += [_wrapped(f"{each.law} is left out: {each.reason}.") for each in choice.left_out]
    blocks += [_warning(each) for each in warnings(choice)]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def headline(choice: Choice) -> str:
    """Return the measurements and the recommended law in a sentence."""
    counts = choice.measurements.counts
    number = count(len(choice.measurements.nodes), "measurement")
    measured = f"{number} at {count(len(counts), 'node count')} from {counts[0]:,} to {counts[-1]:,}"
    if choice.best is None:
        why = "no law fits" if choice.least_needs is None else f"too few for any law ({_least(choice.least_needs)})"
        return f"{measured}; {why}: the means as points are used"
    law = choice.best.curve
    values = ", ".join(f"{each.name} {digits(value)}" for each, value in zip(law.parameters, law.values, strict=True))
    return f"{measured}; {name_of(type(law))} is used, {law.formula} with {values}"


def remarks(choice: Choice) -> list[str]:
    """Return the comments on a curve in a file of curves: origin, intervals and warnings."""
    lines = [headline(choice)]
    if choice.best is not None:
        law = choice.best.curve
        lines.append(f"residual scatter {percent(choice.best.scatter)}; 95 % intervals of all parameters together:")
        lines += [
            f"{each.name}: {digits(low)} to {digits(high)} ({each.meaning})"
            for each, (low, high) in zip(law.parameters, choice.best.intervals, strict=True)
        ]
    return [*lines, *(f"warning: {each}" for each in [*of_outliers(choice), *warnings(choice)])]


def of_outliers(choice: Choice) -> list[str]:
    """Return warnings of measurements far from their repeats, count by count, before a law is chosen."""
    sentences = []
    for nodes in dict.fromkeys(each.nodes for each in choice.outliers):
        bad = [each for each in choice.outliers if each.nodes == nodes]
        if len(bad[0].siblings) == 1:
            low, high = sorted(bad, key=lambda each: each.rate)
            what = (
                f"the two measurements at {count(nodes, 'node')} lie far apart, {digits(low.rate)} samples/s "
                f"(row {low.row}) and {digits(high.rate)} (row {high.row}), {high.rate / low.rate:.1f} times that"
            )
            again = "Measure a third time there to see which one is wrong"
        else:
            what = f"at {count(nodes, 'node')} " + ", ".join(
                f"{digits(each.rate)} samples/s (row {each.row}) is {_off(each.rate, each.middle)} the "
                f"{digits(each.middle)} of its repeats"
                for each in bad
            )
            again = "Measure there again"
        sentences.append(
            f"{what}; repeats scatter by {percent(bad[0].scatter)} here. {again}, or drop the row of a run that was "
            "disturbed: the fits hold it, and it sways the choice."
        )
    return sentences


def warnings(choice: Choice) -> list[str]:
    """Return warnings to read before the curve is used, each in a sentence or two; empty if all is well.

    Those of `of_outliers` come before and are not repeated.
    """
    sentences = [_of_no_law(choice)] if choice.best is None else [*_of_best(choice, choice.best), *_of_tie(choice)]
    sentences += _of_counts_below(choice)
    if choice.measurements.pure_error[1] == 0:
        sentences.append(
            "no node count was measured twice, so nothing tests whether a law fits. Repeat the measurements, best on "
            "other days and nodes."
        )
    return sentences


def _of_no_law(choice: Choice) -> str:
    last = int(choice.measurements.counts[-1])
    if choice.fits:
        why = "every law misses the means by more than the repeats scatter"
    elif choice.least_needs is None:
        why = "no law can follow the measurements"
    else:
        measured = choice.measurements
        why = (
            f"there are too few measurements for any law: {len(measured.nodes)} at "
            f"{count(len(measured.counts), 'node count')}, and {_least(choice.least_needs)}. Measure 1, 2, 4, 8, ... "
            "nodes, each at least twice"
        )
    ends = ""
    if choice.max_nodes > last:
        ends = f" They end at {count(last, 'node')}: jobs cannot have more. Measure at {choice.max_nodes:,} nodes."
    return f"{why}. The curve is the mean at each measured count, with straight lines between.{ends}"


def _of_best(choice: Choice, best: FittedLaw) -> list[str]:
    sentences = []
    name, last = name_of(type(best.curve)), int(choice.measurements.counts[-1])
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
    loose = [
        each.name
        for each, (low, high) in zip(best.curve.parameters, best.intervals, strict=True)
        if high >= each.high or (each.low == 0 and low == 0 and each.name == "rate_1")
    ]
    if loose:
        sentences.append(
            f"the measurements do not limit {' and '.join(loose)} of {name}: its interval ends at the parameter's own "
            "bound. Fewest nodes tell the rate of one node, most nodes the limits."
        )
    if choice.max_nodes > last:
        low, high = best.band(np.array([float(choice.max_nodes)]))
        rate = float(best.curve.rates([choice.max_nodes])[0])
        sentences.append(
            f"{choice.max_nodes:,} nodes lie beyond the {last:,} measured: {name} gives {digits(rate)} samples/s "
            f"there (95 % band {digits(float(low[0]))} to {digits(float(high[0]))}) if it holds that far. "
            f"Measure at {choice.max_nodes:,} nodes to know."
        )
    return sentences


def _of_counts_below(choice: Choice) -> list[str]:
    first = choice.min_nodes
    if first == 1:
        return []
    rates = choice.curve.table(first)
    name = "a straight line to (0, 0)" if choice.best is None else name_of(type(choice.best.curve))
    exceeds = rates[:-1].max() > rates[-1]
    then = f", and on some count more than the {digits(rates[-1])} on {first:,}: it cannot be right" if exceeds else ""
    return [
        f"nothing was measured below {count(first, 'node')}: jobs that name no min_nodes begin there. On 1 node {name} "
        f"gives {digits(rates[1])} samples/s{then}. Measure at fewer nodes before jobs get them."
    ]


def _of_tie(choice: Choice) -> list[str]:
    tie, best = choice.tie, choice.best
    if tie is None or best is None:
        return []
    names = f"{', '.join(tie.laws[:-1])} and {tie.laws[-1]}"
    why = f"their AICc lie within {TIED_WITHIN:g}"
    if math.isinf(best.aicc):
        why = "these are too few measurements to choose a law by AICc"
    there = "" if tie.measure_at == tie.max_nodes else f", where they differ by {percent(tie.apart_there)}"
    first = "First settle what lies far from its repeats, then measure" if choice.outliers else "Measure next"
    return [
        f"{names} cannot be told apart: {why}. At {count(tie.max_nodes, 'node')} they differ by up to "
        f"{percent(tie.apart)}. {first} at {count(tie.measure_at, 'node')}{there}: that tells them apart best."
    ]


def _table(choice: Choice) -> list[str]:
    rows: list[Sequence[str]] = [_HEAD]
    for fitted in choice.fits:
        law = fitted.curve
        first = (name_of(type(law)), law.scaling.value)
        aicc = "-" if math.isinf(fitted.aicc) else f"{fitted.aicc:.1f}"
        last = (f"{100 * fitted.scatter:.2g} %", aicc, _verdict(choice, fitted))
        for i, (each, value, (low, high)) in enumerate(zip(law.parameters, law.values, fitted.intervals, strict=True)):
            middle = (each.name, digits(value), f"{digits(low)} to {digits(high)}")
            rows.append((*first, *middle, *last) if i == 0 else ("", "", *middle, "", "", ""))
    return aligned_lines(rows, left=(0, 1, 2, 4, 7))


def _verdict(choice: Choice, fitted: FittedLaw) -> str:
    best, name = choice.best, name_of(type(fitted.curve))
    if not fitted.fits:
        return f"does not fit (p = {fitted.lack_of_fit_p:.1g})"
    if best is None or fitted is best:
        return "best"
    if name in choice.same_curve:
        return "the same curve"
    if choice.tie is not None and name in choice.tie.laws:
        return "as good"
    return "worse"


def _least(needs: tuple[int, int]) -> str:
    return f"{needs[1]} at {needs[0]} counts or more are needed"


def _off(rate: float, middle: float) -> str:
    apart = rate / middle - 1.0
    return f"{100 * abs(apart):.0f} % {'below' if apart < 0 else 'above'}"


def _warning(text: str) -> list[str]:
    return _wrapped(f"Warning: {text}", subsequent_indent="  ")
