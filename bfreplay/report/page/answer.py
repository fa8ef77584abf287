"""Sentences at the top of the page: samples, batch jobs, waiting, decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from bfreplay.datasets.log.log_warnings import Verdict
from bfreplay.report.page.templates import template
from bfreplay.runs.metrics import KeyFigure
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import cluster_of, is_about_scheduling
from bfreplay.runs.shown_values import is_one, number, show, show_count
from bfreplay.runs.summary_text import BOUND_WORDS, policy_words

_SENTENCES = ("worth", "harmed", "waited", "decided")


def answer(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """Return the worth of the samples, the delay of batch jobs, the waiting, and the proofs, a sentence each."""
    known = {
        each.__name__: each for each in (are_done, cluster_of, show_count, is_about_scheduling, is_one, number, show)
    }
    macros = template("answer.html.j2").make_module({**known, "BOUND_WORDS": BOUND_WORDS, "policy_words": policy_words})
    sentences = (getattr(macros, name)(run, facts) for name in _SENTENCES)
    return [*filter(None, sentences)]


def not_credible(runs: Sequence[RunResult]) -> list[Markup]:
    """Return the verdicts of logs whose idle nodes are not credible: all figures of the page depend on them."""
    logs = [run.record.inputs.events.metadata.log_warnings for run in runs]
    wrong = dict.fromkeys(log.verdict_sentence() for log in logs if log.verdict is Verdict.NOT_CREDIBLE)
    return [Markup("<strong data-verbatim>{}</strong>").format(each) for each in wrong]


def are_done(facts: Mapping[str, KeyFigure], baseline: str) -> bool:
    """Return whether all jobs were done in the run and in the baseline, so that times are compared."""
    return facts["done_s"].value is not None and facts[f"{baseline}.done_s"].value is not None
