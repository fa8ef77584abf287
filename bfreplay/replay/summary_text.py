"""The summary of a run as text that a person can read."""

from __future__ import annotations

from typing import Any

from bfreplay.datasets.times import iso_utc
from bfreplay.replay.result import RunResult

_BAR_WIDTH = 30
_US_PER_HOUR = 3_600_000_000
_DECISION_WORDS = {
    "proven": "proven optimal",
    "proven_trivially": "no job or no node to decide on",
    "feasible": "feasible, not proven optimal",
    "wrong": "kept as it was although that breaks a bound",
    "none": "without an answer, so all stayed as it was",
    "not_asked": "policy not asked",
    "unproven_by_design": "by a rule that proves nothing",
}
_NODE_HOURS = (
    ("useful", "useful"),
    ("rescaling", "rescaling"),
    ("lost_to_preemption", "lost to preemption"),
    ("unused", "unused"),
)


def render(result: RunResult) -> str:
    """Several lines: the window, where the node-hours went, training, decisions, seconds."""
    return "\n".join(
        [
            *_header(result.record),
            "",
            *_node_hours(result.summary),
            "",
            *_training(result.record),
            "",
            *_decisions(result),
            *_session(result),
        ]
    )


def _line(label: str, text: str) -> str:
    return f"{label:<12}{text}"


def _header(record: dict[str, Any]) -> list[str]:
    config, summary = record["config"], record["summary"]
    policy = config["policy"]
    details = [policy["name"]]
    if "solver" in policy:
        details += [f"decided by {policy['solver']['name']}", f"T_fwd {policy['t_fwd_s']:g} s"]
    work = ", unlimited work" if config["unlimited_work"] else ""
    start, end = iso_utc(config["window_start_us"]), iso_utc(config["window_end_us"])
    days = summary["duration_s"] / 86_400
    idle = summary["ledger"]["node_hours"]["idle"]
    return [
        _line("Policy", ", ".join(details)),
        _line("Replay", f"{config['semantics']} time, at most {config['max_parallel']:,} jobs at once{work}"),
        _line("Window", f"{start} to {end} ({days:,.2f} days), {record['inputs']['events']['n_nodes']:,} nodes"),
        _line("Idle", f"{idle:,.1f} node-hours, as much as {summary['equivalent_nodes']:,.1f} dedicated nodes"),
    ]


def _node_hours(summary: dict[str, Any]) -> list[str]:
    hours = summary["ledger"]["node_hours"]
    total = hours["idle"]
    lines = ["Where the idle node-hours went"]
    for key, label in _NODE_HOURS:
        share = hours[key] / total if total else 0.0
        lines.append(f"  {label:<20}{hours[key]:>14,.1f}  {share:>6.1%}  {'#' * round(share * _BAR_WIDTH)}".rstrip())
    if hours["unused_stalled"]:
        lines.append(f"    of it held by jobs that could not run: {hours['unused_stalled']:,.1f}")
    return lines


def _training(record: dict[str, Any]) -> list[str]:
    summary, start_us = record["summary"], record["config"]["window_start_us"]
    ledger = summary["ledger"]
    lines = [
        _line(
            "Samples",
            f"{ledger['samples']:.4g} processed; rescaling cost {ledger['rescale_samples']:.3g}, "
            f"preemption {ledger['preempt_samples']:.3g}",
        )
    ]
    efficiency = summary["efficiency"]
    if efficiency is not None:
        u = efficiency["u"]
        nodes = f"{efficiency['equivalent_nodes']:,.1f} dedicated nodes"
        if u is None:
            lines.append(_line("U", f"undefined: on {nodes} no job could run"))
        else:
            lines.append(_line("U", f"{u:.3f} of what {nodes} would process in this window"))
        mine, theirs = efficiency["last_finish_us"], efficiency["dedicated_last_finish_us"]
        if mine is not None and theirs is not None:
            here_h, there_h = ((time_us - start_us) / _US_PER_HOUR for time_us in (mine, theirs))
            lines.append(_line("", f"all jobs are done in both: after {here_h:,.1f} h here, {there_h:,.1f} h there"))
    jobs = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in summary["jobs"].items() if count)
    lines.append(_line("Jobs", jobs))
    lines.append(
        _line(
            "Rescales",
            f"{summary['n_grown']:,} up, {summary['n_shrunk']:,} down, {summary['n_preemptions']:,} preemptions "
            f"in {summary['n_pool_events']:,} pool events",
        )
    )
    return lines


def _decisions(result: RunResult) -> list[str]:
    summary = result.summary
    lines = [_line("Decisions", f"{summary['n_decisions']:,}")]
    lines += [f"  {count:>10,}  {_DECISION_WORDS.get(kind, kind)}" for kind, count in summary["decisions"].items()]
    if summary["fallbacks"]:
        total = sum(summary["fallbacks"].values())
        reasons = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in summary["fallbacks"].items())
        lines.append(f"  {total:>10,}  fell back: {reasons}")
    slowest = result.session["slowest_decision"]
    if slowest is not None:
        lines.append(
            f"  slowest {slowest['decide_s'] * 1e3:,.2f} ms at {iso_utc(slowest['time_us'])} "
            f"({slowest['n_jobs']:,} jobs, {slowest['n_idle']:,} idle nodes)"
        )
    return lines


def _session(result: RunResult) -> list[str]:
    seconds = result.session["seconds"]
    parts = ", ".join(
        f"{label} {seconds[key]:.2f}"
        for key, label in (("parse_s", "read"), ("decide_s", "decide"), ("loop_s", "loop"), ("write_s", "write"))
    )
    lines = [_line("Seconds", f"{parts}; dedicated nodes {seconds['dedicated_s']:.2f}")]
    if result.folder is not None:
        lines.append(_line("Run folder", str(result.folder)))
    return lines
