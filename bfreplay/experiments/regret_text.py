"""Regret as a table that a person can read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bfreplay.datasets.times import iso_utc
from bfreplay.experiments.regret import Regret
from bfreplay.replay.run_warnings import distinct_warnings, warning_lines

_KINDS = {
    "priced": "rescaling paid, the future known",
    "free_rescaling": "free rescaling, the future known",
    "work": "free rescaling, the future known, free to choose among the jobs",
}


def render(found: Sequence[Regret]) -> str:
    """Warnings, a line for each run, best first, and what the bounds take into account."""
    ordered = sorted(found, key=lambda each: -(each.share or 0.0))
    width = max(len("run"), *(len(each.run) for each in found))
    warnings = warning_lines(distinct_warnings([(each.run, each.warnings) for each in found]))
    lines = [
        *warnings,
        *([""] if warnings else []),
        f"{'run':<{width}}  {'samples':>10}  {'of the bound':>12}  {'left to gain':>12}  jobs at once, policy",
    ]
    for each in ordered:
        share = "-" if each.share is None else f"{each.share:.2%}"
        left = "-" if each.regret is None else f"<= {_rounded_up(each.regret):.2%}"
        lines.append(
            f"{each.run:<{width}}  {each.samples:>10.4g}  {share:>12}  {left:>12}  {each.max_parallel}, {each.policy}"
        )
    lines.append("")
    for bound in dict.fromkeys(each.bound for each in found):
        text = f"Bound: {bound.samples:.4g} samples ({_KINDS[bound.kind]})"
        if bound.free_rescaling_samples is not None and bound.kind == "priced":
            text += f"; {bound.free_rescaling_samples:.4g} with free rescaling"
        if bound.earliest_finish_us is not None:
            text += f"; nobody could be done before {iso_utc(bound.earliest_finish_us)}"
        lines.append(text)
    return "\n".join(lines)


def _rounded_up(regret: float) -> float:
    """To a hundredth of a percent: what is told holds."""
    return max(math.ceil(regret * 1e4), 0) / 1e4
