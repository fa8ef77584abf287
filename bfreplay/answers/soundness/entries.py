"""What a record and a session have to have, and of which kind each entry has to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bfreplay.answers.soundness.damage import damaged
from bfreplay.answers.soundness.kinds import (
    AMOUNT,
    AMOUNTS,
    COUNT,
    COUNTS,
    FILES,
    LISTS_OF_NAMES,
    NAMES,
    NUMBER,
    OBJECT,
    RANGE,
    TEXT,
    TIME,
    TRUTH,
    Kind,
    one_of,
    or_null,
)
from bfreplay.datasets.log.log_warnings import LogWarnings
from bfreplay.errors import InputError
from bfreplay.replay.accounting import Semantics
from bfreplay.replay.result import RunResult
from bfreplay.replay.summary_text import BOUND_WORDS


@dataclass(frozen=True, slots=True)
class _Part:
    """An object of a document, wherever it is there.

    Parameters
    ----------
    path
        Where it is; empty for the document itself.
    needed
        Entries that it must have.
    perhaps
        Entries that may be left out, as older versions did not write them.
    """

    path: str
    needed: Mapping[str, Kind]
    perhaps: Mapping[str, Kind] = field(default_factory=dict)


_NODE_TIME = (
    "idle_node_us", "useful_node_us", "rescaling_node_us", "preempted_node_us", "stalled_node_us", "free_node_us",
    "allocated_node_us",
)  # fmt: skip
_NODE_HOURS = ("idle", "useful", "rescaling", "lost_to_preemption", "unused", "unused_free", "unused_stalled")
_RECORD = (
    _Part("", {"versions": OBJECT, "config": OBJECT, "inputs": OBJECT, "summary": OBJECT}),
    _Part(
        "config",
        {
            "policy": OBJECT,
            "window_start_us": TIME,
            "window_end_us": TIME,
            "max_parallel": COUNT,
            "semantics": one_of(*Semantics),
        },
        {
            "unlimited_work": TRUTH,
            "decides_in_rounds": TRUTH,
            "until_done": TRUTH,
            "measured": or_null(RANGE),
            "prices": AMOUNTS,
        },
    ),
    _Part("config.policy", {"name": TEXT}),
    _Part("inputs", {"events": OBJECT, "jobs": OBJECT}),
    _Part("inputs.events", {"files": FILES, "metadata": OBJECT, "n_nodes": COUNT}),
    _Part(
        "inputs.events.metadata",
        {"node_inventory": one_of("metadata", "seen"), "source_files": FILES},
        {
            "cluster": or_null(TEXT),
            "allocator": or_null(OBJECT),
            "dropped": AMOUNTS,
            "time_origin": one_of("epoch", "relative"),
            "node_types": LISTS_OF_NAMES,
        },
    ),
    _Part("inputs.jobs", {"files": FILES}, {"source": or_null(OBJECT), "n_jobs": or_null(COUNT)}),
    _Part(
        "summary",
        {
            "duration_s": AMOUNT,
            "n_pool_events": COUNT,
            "n_decisions": COUNT,
            "decisions": COUNTS,
            "fallbacks": COUNTS,
            "n_preemptions": COUNT,
            "n_grown": COUNT,
            "n_shrunk": COUNT,
            "equivalent_nodes": AMOUNT,
            "jobs": COUNTS,
            "last_finish_us": or_null(TIME),
            "ledger": OBJECT,
        },
        {
            "fallback_examples": OBJECT,
            "n_jobs_wider_than_the_pool": COUNT,
            "widest_job": or_null(OBJECT),
            "log_warnings": OBJECT,
            "most_idle_nodes": COUNT,
            "deadlines": COUNTS,
            "job_times": OBJECT,
            "efficiency": or_null(OBJECT),
            "bound": or_null(OBJECT),
            "reason_without_baselines": or_null(TEXT),
            "learning": or_null(OBJECT),
            "scores": or_null(OBJECT),
            "scheduling": OBJECT,
            "policy": or_null(OBJECT),
            "extrapolation": NAMES,
        },
    ),
    _Part("summary.widest_job", {"name": TEXT, "min_nodes": COUNT}),
    _Part(
        "summary.scheduling",
        {
            "n_jobs": COUNT,
            "n_completed": COUNT,
            "average_jct_s": or_null(AMOUNT),
            "average_jct_s_by_weight": AMOUNTS,
            "makespan_s": or_null(AMOUNT),
            "utilisation": or_null(AMOUNT),
            "node_hours_by_type": AMOUNTS,
            "cost": or_null(AMOUNT),
            "finish_time_fairness": or_null(OBJECT),
        },
    ),
    _Part(
        "summary.scheduling.finish_time_fairness",
        {
            "average_rho": or_null(AMOUNT),
            "largest_rho": or_null(AMOUNT),
            "share_above_1": or_null(AMOUNT),
            "policy": TEXT,
        },
    ),
    _Part(
        "summary.ledger",
        {
            **dict.fromkeys(_NODE_TIME, COUNT),
            **dict.fromkeys(("gross_samples", "rescale_samples", "preempt_samples"), AMOUNT),
            # the published clock charges samples that were not made
            **dict.fromkeys(("samples", "samples_by_job", "trimmed_samples"), NUMBER),
            "node_hours": OBJECT,
        },
    ),
    _Part("summary.ledger.node_hours", dict.fromkeys(_NODE_HOURS, AMOUNT)),
    _Part("summary.job_times", {"submit_to_start": OBJECT, "submit_to_finish": OBJECT}),
    *(
        _Part(f"summary.job_times.{name}", {"n_jobs": COUNT, "median_s": or_null(AMOUNT), "p95_s": or_null(AMOUNT)})
        for name in ("submit_to_start", "submit_to_finish")
    ),
    _Part(
        "summary.efficiency",
        {
            "samples": NUMBER,
            "dedicated_samples": AMOUNT,
            "equivalent_nodes": AMOUNT,
            "u": or_null(NUMBER),
            "last_finish_us": or_null(TIME),
            "dedicated_last_finish_us": or_null(TIME),
        },
        {"dedicated_jobs": COUNTS, "dedicated_best_score": or_null(NUMBER)},
    ),
    _Part(
        "summary.bound",
        {
            "samples": AMOUNT,
            "kind": one_of(*BOUND_WORDS),
            "share": or_null(NUMBER),
            "earliest_finish_us": or_null(TIME),
        },
        {"free_rescaling_samples": or_null(AMOUNT)},
    ),
    _Part(
        "summary.learning",
        {
            "samples": NUMBER,
            "known_samples": NUMBER,
            "lost": or_null(NUMBER),
            "last_finish_us": or_null(TIME),
            "known_last_finish_us": or_null(TIME),
        },
        {"known_jobs": COUNTS, "known_best_score": or_null(NUMBER)},
    ),
    _Part(
        "summary.scores",
        {
            "n_reports": COUNT,
            "best_score": or_null(NUMBER),
            "best_job": or_null(TEXT),
            "best_time_us": or_null(TIME),
        },
        {
            "best_params": or_null(OBJECT),
            "best_finished_score": or_null(NUMBER),
            "best_finished_job": or_null(TEXT),
        },
    ),
)
_SESSION = (
    _Part(
        "",
        {},
        {
            "command": TEXT,
            "started": TEXT,
            "files": OBJECT,
            "seconds": AMOUNTS,
            "load_s": AMOUNT,
            "slowest_decision": or_null(OBJECT),
        },
    ),
    _Part("slowest_decision", {"decide_s": AMOUNT}, {"time_us": TIME, "n_idle": COUNT, "n_jobs": COUNT}),
)
_OF_A_POLICY: Mapping[tuple[str, ...], Kind] = {
    ("t_fwd_s",): Kind("a number", lambda value: isinstance(value, bool) or NUMBER.holds(value)),
    ("forward_time", "name"): TEXT,
    ("solver", "name"): TEXT,
    ("objective", "spec"): TEXT,
}
"""What is read of a policy's description where it is there; a policy may say anything else of itself."""


def check_record(run: RunResult) -> None:
    """Raise ``InputError`` unless the record has every entry that it must have, each of its kind."""
    file = run.kind.record_file
    _check(run, file, run.record, _RECORD)
    LogWarnings.of_metadata(run.record["inputs"]["events"]["metadata"], run.folder and run.folder / file)
    policy = run.record["config"]["policy"]
    for path, kind in _OF_A_POLICY.items():
        if path[0] in policy and not kind.holds(found := _found(policy, path)):
            raise _wrong(run, file, ".".join(("config.policy", *path)), found, kind)


def check_session(run: RunResult) -> None:
    """Raise ``InputError`` where an entry of the session is no such thing; it may lack any."""
    (file,) = run.kind.more_documents
    _check(run, file, run.session, _SESSION)


def _check(run: RunResult, file: str, document: Any, parts: Sequence[_Part]) -> None:
    for part in parts:
        found = _found(document, part.path.split(".") if part.path else ())
        if found is None:  # the object that it belongs to says whether it may be
            continue
        for name, kind in (*part.needed.items(), *part.perhaps.items()):
            is_left_out = name in part.perhaps and name not in found
            if not (is_left_out or (name in found and kind.holds(found[name]))):
                raise _wrong(run, file, f"{part.path}.{name}".lstrip("."), found.get(name), kind)


def _found(document: Any, path: Sequence[str]) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _wrong(run: RunResult, file: str, path: str, value: Any, kind: Kind) -> InputError:
    document = "record" if file == run.kind.record_file else "session"
    problem = f"the {document} of the run is {'not complete' if value is None else 'damaged'}"
    return damaged(run, problem, file=file, column=path, value=value, expected=kind.words)
