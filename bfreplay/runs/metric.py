"""Definition of a metric of a run (words, value, format), and its numbers in the sentences of a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bfreplay.runs.run_record import RunRecord
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import ISOLATED_POLICY
from bfreplay.wording import Kind, amount, count, value_text

ValueOfRun = Callable[[RunResult], Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """One number or name of a run.

    Parameters
    ----------
    figure_key
        Its key among the key figures of the page (``data-key`` there) and of notebooks; empty for a metric that these
        do not show.
    words
        Description; ``{best}``, ``{others}``, ``{under}`` and ``{whom}`` depend on the run.
    kind
        Format of the value.
    value
        Value for a run (``None`` for none), or path of an entry of its summary, such as ``bound.share``. Of a time at
        such a path, a metric in seconds is the time from the start of the window.
    column
        Its name, with the unit, in the table of results of a sweep and in ``bfreplay compare runs``; empty for a metric
        that neither has.
    """

    figure_key: str
    words: str
    kind: Kind
    value: ValueOfRun | str
    column: str = ""

    def of(self, result: RunResult) -> Any:
        """Return the value for a run; ``None`` for none, or where a part of the path is ``None``."""
        if not isinstance(self.value, str):
            return self.value(result)
        entry: Any = result.summary
        for name in self.value.split("."):
            entry = entry.get(name) if isinstance(entry, Mapping) else getattr(entry, name, None)
        return result.record.config.after_s(entry) if self.kind == "seconds" and self.value.endswith("_us") else entry

    def words_for(self, result: RunResult | None = None) -> str:
        """Return the description, for this run or in general."""
        return self.words.format(**(_IN_GENERAL if result is None else words_of_run(result)))

    @property
    def type(self) -> str:
        """Name of the pyarrow type of its column."""
        return {"text": "string", "count": "int64", "time": "timestamp[us, tz=UTC]"}.get(self.kind, "double")


BOUND_WORDS = {
    "priced": "the upper bound",
    "free_rescaling": "the upper bound with free rescaling",
    "work": "the upper bound with free rescaling and free choice among the jobs",
}
"""Words for an upper bound, by its kind."""


def bound_words(record: RunRecord) -> str:
    """Return the words for the upper bound of a run; where its jobs have other costs than BFTrainer's, which it knows.

    Empty for a run without a bound.
    """
    bound = record.summary.bound
    if bound is None or not record.inputs.jobs.costs:
        return "" if bound is None else BOUND_WORDS[bound.kind]
    known = "knows rescale costs, not starts" if bound.kind == "priced" else "knows no starts"
    return f"{BOUND_WORDS[bound.kind]} (which {known}, pauses or lost work)"


_IN_GENERAL = {"best": "best", "others": "", "under": f"under {ISOLATED_POLICY}", "whom": "all jobs", "repeated": ""}


def words_of_run(result: RunResult) -> dict[str, str]:
    """Return the words for a run that stand in descriptions of metrics by name."""
    fairness, efficiency = result.summary.scheduling.finish_time_fairness, result.summary.efficiency
    jobs = result.record.inputs.jobs
    return {
        "bound": bound_words(result.record),
        "dedicated": "" if efficiency is None else f"{amount(efficiency.equivalent_nodes)} dedicated nodes",
        "best": f"{'highest' if jobs.higher_is_better else 'lowest'} {'recorded' if jobs.is_recorded else 'simulated'}",
        "others": " (other trials may be pruned there)" if jobs.of_source and not jobs.is_recorded else "",
        "under": _IN_GENERAL["under"] if fairness is None else f"under {fairness.policy}",
        "repeated": ", was repeated" if result.summary.ledger.repeated_node_us else _IN_GENERAL["repeated"],
        "whom": "the measured jobs" if result.record.config.measured else _IN_GENERAL["whom"],
    }


def why_u_is_undefined(dedicated_samples: float, equivalent_nodes: float) -> str:
    """Return why a run of a job set has no U, from its ``Efficiency``."""
    if dedicated_samples:
        return f"one dedicated node, more than {amount(equivalent_nodes)}, does all the work"
    return f"the same jobs process nothing on {amount(equivalent_nodes)} dedicated nodes"


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A metric of one run: name, description, value (``None`` for none) and format."""

    key: str
    words: str
    value: Any
    kind: Kind


def exact(value: Any) -> str:
    """Return the value to the last digit; empty for ``None`` and nan."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def show(fact: KeyFigure) -> Markup:
    """Return a key figure for a sentence."""
    return number(fact.key, fact.value, fact.kind)


def show_count(fact: KeyFigure, word: str) -> Markup:
    """Return a key figure with its noun: ``1 node``, ``392.1 nodes``."""
    return number_of(fact.key, fact.value, fact.kind, word)


def number(key: str, value: Any, kind: Kind) -> Markup:
    """Return ``<data>`` with the exact value, and its text."""
    return Markup('<data value="{exact}" data-key="{key}">{text}</data>').format(
        exact=exact(value), key=key, text=value_text(value, kind)
    )


def number_of(key: str, value: Any, kind: Kind, word: str) -> Markup:
    """Return ``number`` with its noun, in the plural unless the text is 1."""
    noun = count(1 if is_one(value, kind) else 2, word).partition(" ")[2]
    return Markup("{} {}").format(number(key, value, kind), noun)


def is_one(value: Any, kind: Kind) -> bool:
    """Return whether the text is 1, so that the verb is in the singular."""
    return value_text(value, kind) == "1"
