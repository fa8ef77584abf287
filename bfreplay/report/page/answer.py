"""The question answered: what training on the idle nodes of this log would have been worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from bfreplay.datasets.log.log_warnings import Verdict
from bfreplay.report.page.templates import template
from bfreplay.report.shown_values import counted, is_one, number, shown
from bfreplay.runs.metrics import KeyFigure
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import cluster_of, is_about_scheduling
from bfreplay.runs.summary_text import BOUND_WORDS, policy_words

_SENTENCES = ("worth", "waited", "decided")


def answer(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """Return the worth of the samples, the waiting of the jobs, and the proofs of the decisions, a sentence each."""
    known = {
        each.__name__: each for each in (are_done, cluster_of, counted, is_about_scheduling, is_one, number, shown)
    }
    macros = template("answer.html.j2").make_module({**known, "BOUND_WORDS": BOUND_WORDS, "policy_words": policy_words})
    sentences = (getattr(macros, name)(run, facts) for name in _SENTENCES)
    return [*filter(None, sentences)]


def not_credible(runs: Sequence[RunResult]) -> list[Markup]:
    """Why the idle nodes cannot be believed, where that is so: whatever the page answers rests on them."""
    logs = [run.record.inputs.events.metadata.log_warnings for run in runs]
    wrong = dict.fromkeys(log.verdict_sentence() for log in logs if log.verdict is Verdict.NOT_CREDIBLE)
    return [Markup("<strong data-verbatim>{}</strong>").format(each) for each in wrong]


def are_done(facts: Mapping[str, KeyFigure], baseline: str) -> bool:
    """Whether all jobs were done in the run and in the baseline, so that times tell the difference."""
    return facts["done_s"].value is not None and facts[f"{baseline}.done_s"].value is not None
