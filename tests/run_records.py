"""Runs with records of which a test says only what it is about."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache

from bfreplay import replay_log
from bfreplay.policies import EqualSharePolicy
from bfreplay.result_folders.records import RUN, parse_record
from bfreplay.runs import RunResult
from bfreplay.runs.run_record import RunRecord, Session
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log

_WHERE_THERE_IS_ONE = {
    "efficiency": {
        "equivalent_nodes": 1.0, "t_fwd_s": 120.0, "samples": 0.0, "dedicated_samples": 0.0, "last_finish_us": None,
        "dedicated_last_finish_us": None, "dedicated_jobs": {}, "dedicated_best_score": None, "u": None,
    },
    "bound": {
        "samples": 0.0, "kind": "priced", "free_rescaling_samples": None, "earliest_finish_us": None, "share": None,
    },
    "learning": {
        "samples": 0.0, "known_samples": 0.0, "last_finish_us": None, "known_last_finish_us": None, "known_jobs": {},
        "known_best_score": None, "lost": None,
    },
}  # fmt: skip


@cache
def _nothing() -> RunResult:
    """A run of one idle node, whose only job is submitted after it."""
    events = log(1, [], 60, idle_first=[0])
    return replay_log(events, JobSet([job(submit_s=10_000)]), EqualSharePolicy(), efficiency=False, bound=False)


def run_of(record=None, tables=None, session=None) -> RunResult:
    """A run in memory: the entries of ``record`` and ``session``, and for all others those of an empty run."""
    found = _nothing()
    document = _merged(found.record.to_json(), record or {})
    measured = Session.nest_more(_merged(found.session.to_json(), session or {}))
    return RunResult(
        parse_record(document, RunRecord, RUN, "run.json"),
        None,
        tables or {},
        session=parse_record(measured, Session, RUN, "session.json"),
    )


def changed(run: RunResult, change) -> RunResult:
    """The run after ``change`` of its record as a document."""
    document = copy.deepcopy(run.record.to_json())
    change(document)
    return replace(run, record=parse_record(document, RunRecord, RUN, "run.json"))


def setting(path: str, value):
    """Return a change for ``changed``: the entry at ``"summary.jobs"`` becomes ``value``."""

    def change(document):
        *way, last = path.split(".")
        for key in way:
            document = document[key]
        document[last] = value

    return change


def _merged(document, changes, name=""):
    if not (isinstance(document, dict) and isinstance(changes, dict)) or name in ("fallbacks", "decisions", "jobs_"):
        return changes
    found = dict(document)
    for key, value in changes.items():
        below = found.get(key)
        if below is None and isinstance(value, dict):
            below = _WHERE_THERE_IS_ONE.get(key, {})
        found[key] = _merged(below, value, key)
    return found
