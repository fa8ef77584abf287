"""Warnings about a run that every answer made from it repeats first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from bfreplay.datasets.log.log_warnings import LogWarnings
from bfreplay.replay.extrapolation import shown_warnings
from bfreplay.wording import count

_Text = TypeVar("_Text", bound=str)

DEADLINE_OBJECTIVE, DEADLINE_POLICIES = "deadline", "_SLOs"
"""Name of the objective that goes by deadlines, and how the names of such policies end."""


def log_warnings_of(record: Mapping[str, Any]) -> LogWarnings:
    """Warnings about the log of a run, or of another result with its ``inputs``."""
    return LogWarnings.of_metadata(record["inputs"]["events"]["metadata"])


def run_warnings(record: Mapping[str, Any]) -> list[str]:
    """Sentences on the log, jobs that could never run, missing deadlines, and curves beyond their data."""
    summary = record["summary"]
    return [
        *log_warnings_of(record).sentences(), *_wide_jobs(record), *_no_deadlines(record), *shown_warnings(summary)
    ]  # fmt: skip


def warning_lines(warnings: Sequence[str]) -> list[str]:
    """One line of text for each warning."""
    return [f"Warning: {each}" for each in warnings]


def distinct_warnings(by_run: Sequence[tuple[str, Sequence[str]]], most_named: int = 3) -> list[str]:
    """Warnings of several labelled runs, each once; where not all have it with their labels, or how many there are."""
    found = labels_by_text((label, each) for label, warnings in by_run for each in warnings)
    return [
        text if len(labels) == len(by_run)
        else f"{', '.join(labels)}: {text}" if len(labels) <= most_named
        else f"{len(labels):,} of {count(len(by_run), 'run')}: {text}"
        for text, labels in found.items()
    ]  # fmt: skip


def labels_by_text(labelled: Iterable[tuple[str, _Text]]) -> dict[_Text, list[str]]:
    """Return the labels of each distinct text, in order of first appearance."""
    labels: dict[_Text, dict[str, None]] = {}
    for label, text in labelled:
        labels.setdefault(text, {})[label] = None
    return {text: list(those) for text, those in labels.items()}


def _wide_jobs(record: Mapping[str, Any]) -> Iterator[str]:
    summary = record["summary"]
    n_wide, widest = summary.get("n_jobs_wider_than_the_pool"), summary.get("widest_job")
    if n_wide:
        why = "too few nodes were ever idle at once"
        if widest is not None:  # not recorded by earlier versions
            needed = (
                f"{widest['name']}{', the widest,' if n_wide > 1 else ''} needs {count(widest['min_nodes'], 'node')}"
            )
            idle = f"{summary['most_idle_nodes']:,} of {record['inputs']['events']['n_nodes']:,}"
            why = f"{needed}, and at most {idle} were ever idle at once"
            if record["inputs"]["events"]["metadata"].get("node_types"):
                why += ", all types together"
        yield f"{n_wide:,} of {count(sum(summary['jobs'].values()), 'job')} could never run: {why}."


def _no_deadlines(record: Mapping[str, Any]) -> Iterator[str]:
    policy, summary = record["config"]["policy"], record["summary"]
    objective = policy.get("objective", {})
    terms = objective.get("terms")  # an objective from outside may say anything here
    names = [term.get("name") for term in terms if isinstance(term, Mapping)] if isinstance(terms, list) else []
    if DEADLINE_OBJECTIVE in names:
        goes_by_them = f"The objective {objective['spec']}"
    elif policy["name"].endswith(DEADLINE_POLICIES):
        goes_by_them = f"The policy {policy['name']}"
    else:
        return
    n_jobs, deadlines = sum(summary["jobs"].values()), summary.get("deadlines")
    # of a run about some of its jobs only their deadlines are recorded
    if n_jobs and deadlines is not None and not any(deadlines.values()) and not record["config"].get("measured"):
        yield f"{goes_by_them} goes by deadlines, and none of {count(n_jobs, 'job')} has one."
