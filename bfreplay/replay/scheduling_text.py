"""Scheduling metrics of a run as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT
from bfreplay.datasets.times import iso_utc
from bfreplay.replay.run_record import Fairness, RunRecord, Scheduling
from bfreplay.wording import amount, count, duration

_COUNTED = ("n_rounds", "n_recomputations", "lease_extensions", "lease_opportunities")
"""Of a policy that decides in rounds."""


def cluster_of(record: RunRecord) -> str | None:
    """``v100=36,k80=36`` of a run on a cluster that was all the jobs' own; ``None`` for one on the log of a machine."""
    metadata = record.inputs.events.metadata
    return str(metadata.notes.get("cluster", "")) if metadata.source_format == SOURCE_FORMAT else None


def is_about_scheduling(record: RunRecord) -> bool:
    """Whether people look at a run for what became of the jobs rather than for what was made of idle nodes.

    It has its own cluster, nodes of types that are told apart, or a policy that decides in rounds; it ends with its
    jobs, or is about some of them.
    """
    config = record.config
    return bool(
        cluster_of(record) is not None
        or record.inputs.events.metadata.node_types
        or config.until_done
        or config.measured
        or rounds_of(record)
    )


def rounds_of(record: RunRecord) -> dict[str, int] | None:
    """Rounds and leases, where the policy counted them."""
    own = record.summary.policy or {}
    found = {name: own[name] for name in _COUNTED if isinstance(own.get(name), int)}
    return found if len(found) == len(_COUNTED) else None


def window_words(record: RunRecord) -> str:
    """``2021-02-10T00:48:48Z to ...``; of a log without a calendar ``0 to 2 h after its start``."""
    start_us, end_us = record.config.window_start_us, record.config.window_end_us
    if record.inputs.events.metadata.time_origin != "relative":
        return f"{iso_utc(start_us)} to {iso_utc(end_us)}"
    return f"{duration(start_us / 1e6) if start_us else '0'} to {duration(end_us / 1e6)} after the start of the log"


def instant_words(record: RunRecord, time_us: int) -> str:
    """A time, or how long after the start of the log where that has no calendar."""
    if record.inputs.events.metadata.time_origin != "relative":
        return iso_utc(time_us)
    return f"{duration(time_us / 1e6)} after the start of the log"


def scheduling_lines(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Label and text of each line."""
    found = record.summary.scheduling
    yield from _completion(found)
    if found.makespan_s is not None:
        yield "Makespan", duration(found.makespan_s)
    if found.utilisation is not None:
        yield "Utilisation", f"{found.utilisation:.1%} of the node-hours"
    yield from _held(found, record.config.prices)
    yield from _fairness(found.finish_time_fairness)
    rounds = rounds_of(record)
    if rounds is not None:
        yield "Rounds", f"{rounds['n_rounds']:,}; shares computed {count(rounds['n_recomputations'], 'time')}"
        if rounds["lease_opportunities"]:
            extended, of = rounds["lease_extensions"], rounds["lease_opportunities"]
            yield "Leases", f"a job kept its nodes for another round {extended:,} times of {of:,} ({extended / of:.1%})"


def _completion(found: Scheduling) -> Iterator[tuple[str, str]]:
    done = count(found.n_jobs, "job")
    if found.n_completed < found.n_jobs:
        done = f"{found.n_completed:,} of {done}"
    if found.average_jct_s is None:
        yield "JCT", f"{done} completed"
        return
    yield "JCT", f"{duration(found.average_jct_s)} on average, submit to finish, {done} completed"
    if len(found.average_jct_s_by_weight) > 1:
        by_weight = sorted(found.average_jct_s_by_weight.items(), key=lambda each: float(each[0]))
        yield "", ", ".join(f"{duration(jct_s)} of weight {weight}" for weight, jct_s in by_weight)


def _held(found: Scheduling, prices: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    hours = found.node_hours_by_type
    if len(hours) > 1:
        yield "Node-hours", "held: " + ", ".join(f"{amount(held)} of {name}" for name, held in hours.items())
    if found.cost is not None:
        at = ", ".join(f"{prices[name]:g} for {name}" for name in hours if name in prices)
        yield "Cost", f"{amount(found.cost)} dollars of the held node-hours ({at})"


def _fairness(found: Fairness | None) -> Iterator[tuple[str, str]]:
    if found is None:
        return
    if found.average_rho is None:
        yield "Fairness", f"no job was done both here and under {found.policy}"
        return
    yield (
        "Fairness",
        f"a job took {found.average_rho:.3g} times as long as under {found.policy} on average, "
        f"{found.largest_rho:.3g} times at most, {found.share_above_1:.1%} of the jobs longer",
    )
