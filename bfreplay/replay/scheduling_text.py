"""What a run was to those who wait for their jobs, as lines that a person can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT
from bfreplay.datasets.times import iso_utc
from bfreplay.wording import amount, count, duration

_COUNTED = ("n_rounds", "n_recomputations", "lease_extensions", "lease_opportunities")
"""Of a policy that decides in rounds."""


def cluster_of(record: Mapping[str, Any]) -> str | None:
    """``v100=36,k80=36`` of a run on a cluster that was all the jobs' own; ``None`` for one on the log of a machine."""
    metadata = record["inputs"]["events"]["metadata"]
    notes = metadata.get("notes")
    if metadata.get("source_format") != SOURCE_FORMAT or not isinstance(notes, Mapping):
        return None
    return str(notes.get("cluster", ""))


def is_about_scheduling(record: Mapping[str, Any]) -> bool:
    """Whether people look at a run for what became of the jobs rather than for what was made of idle nodes.

    It has its own cluster, nodes of types that are told apart, or a policy that decides in rounds; it ends with its
    jobs, or is about some of them.
    """
    config = record["config"]
    return bool(
        cluster_of(record) is not None
        or record["inputs"]["events"]["metadata"].get("node_types")
        or config.get("until_done")
        or config.get("measured")
        or rounds_of(record)
    )


def rounds_of(record: Mapping[str, Any]) -> dict[str, int] | None:
    """Rounds and leases, where the policy counted them."""
    own = record["summary"].get("policy") or {}
    found = {name: own[name] for name in _COUNTED if isinstance(own.get(name), int)}
    return found if len(found) == len(_COUNTED) else None


def window_words(record: Mapping[str, Any]) -> str:
    """``2021-02-10T00:48:48Z to ...``; of a log without a calendar ``0 to 2 h after its start``."""
    start_us, end_us = (record["config"][f"window_{edge}_us"] for edge in ("start", "end"))
    if record["inputs"]["events"]["metadata"].get("time_origin") != "relative":
        return f"{iso_utc(start_us)} to {iso_utc(end_us)}"
    return f"{duration(start_us / 1e6) if start_us else '0'} to {duration(end_us / 1e6)} after the start of the log"


def instant_words(record: Mapping[str, Any], time_us: int) -> str:
    """A time, or how long after the start of the log where that has no calendar."""
    if record["inputs"]["events"]["metadata"].get("time_origin") != "relative":
        return iso_utc(time_us)
    return f"{duration(time_us / 1e6)} after the start of the log"


def scheduling_lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Label and text of each line; none for a run of an older version."""
    told = record["summary"].get("scheduling")
    if told is None:
        return
    yield from _jct(told)
    if told["makespan_s"] is not None:
        yield "Makespan", duration(told["makespan_s"])
    if told["utilisation"] is not None:
        yield "Utilisation", f"{told['utilisation']:.1%} of the node-hours"
    yield from _held(told, record["config"].get("prices", {}))
    yield from _fairness(told["finish_time_fairness"])
    rounds = rounds_of(record)
    if rounds is not None:
        yield "Rounds", f"{rounds['n_rounds']:,}; shares computed {count(rounds['n_recomputations'], 'time')}"
        if rounds["lease_opportunities"]:
            extended, of = rounds["lease_extensions"], rounds["lease_opportunities"]
            yield "Leases", f"a job kept its nodes for another round {extended:,} times of {of:,} ({extended / of:.1%})"


def _jct(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    done = count(told["n_jobs"], "job")
    if told["n_completed"] < told["n_jobs"]:
        done = f"{told['n_completed']:,} of {done}"
    if told["average_jct_s"] is None:
        yield "JCT", f"{done} completed"
        return
    yield "JCT", f"{duration(told['average_jct_s'])} on average, submit to finish, {done} completed"
    if len(told["average_jct_s_by_weight"]) > 1:
        by_weight = sorted(told["average_jct_s_by_weight"].items(), key=lambda each: float(each[0]))
        yield "", ", ".join(f"{duration(jct_s)} of weight {weight}" for weight, jct_s in by_weight)


def _held(told: Mapping[str, Any], prices: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    hours = told["node_hours_by_type"]
    if len(hours) > 1:
        yield "Node-hours", "held: " + ", ".join(f"{amount(held)} of {name}" for name, held in hours.items())
    if told["cost"] is not None:
        at = ", ".join(f"{prices[name]:g} for {name}" for name in hours if name in prices)
        yield "Cost", f"{amount(told['cost'])} dollars of the held node-hours ({at})"


def _fairness(told: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if told is None:
        return
    if told["average_rho"] is None:
        yield "Fairness", f"no job was done both here and under {told['policy']}"
        return
    yield (
        "Fairness",
        (
            f"a job took {told['average_rho']:.3g} times as long as under {told['policy']} on average, "
            f"{told['largest_rho']:.3g} times at most, {told['share_above_1']:.1%} of the jobs longer"
        ),
    )
