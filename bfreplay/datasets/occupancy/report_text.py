"""The lint report as plain text for people."""

from __future__ import annotations

from typing import Any

from bfreplay.datasets.occupancy.build import BuiltLog
from bfreplay.datasets.times import iso_utc


def render(built: BuiltLog, reader: str) -> str:
    """Lay out what was read, kept, left out and assumed, and the doubts last, where they are seen."""
    lint, events = built.lint, built.events
    days = (events.window_end_us - events.window_start_us) / 86_400e6
    lines = [
        f"read        {lint.rows_read:,} rows as {events.metadata.source_format or reader}",
        "kept        " + (", ".join(f"{n:,} {what}" for what, n in lint.kept.items()) or "nothing"),
        f"left out    {lint.rows_dropped:,} rows" + (":" if lint.dropped else ""),
    ]
    for reason, tally in sorted(lint.dropped.items(), key=lambda item: -item[1].count):
        example = f"   e.g. {tally.examples[0]}" if tally.examples else ""
        lines.append(f"  {tally.count:>10,}  {reason}{example}")
    lines += [
        f"window      {iso_utc(events.window_start_us)} to {iso_utc(events.window_end_us)} ({days:,.2f} days)",
        f"            {built.window.why}",
        f"nodes       {len(events.nodes):,}"
        + ("" if events.metadata.node_inventory == "metadata" else " seen in the log; give --inventory for the others"),
    ]
    if events.metadata.assignment is not None:
        lines.append(
            f"assignment  simulated: {events.metadata.assignment}. The log does not say which nodes jobs had; how much "
            "is idle does not depend on the rule, how long each node stays idle does"
        )
    shares = lint.facts.get("node_hours", {})
    total = sum(shares.values()) or 1.0
    lines.append(
        "node-hours  " + ", ".join(f"{word} {hours:,.0f} ({hours / total:.1%})" for word, hours in shares.items())
    )
    lines += [f"noted       {name}: {_shown(value)}" for name, value in lint.facts.items() if name not in _SHOWN_ABOVE]
    for sentence, tally in lint.doubts.items():
        lines.append(f"DOUBT       {tally.count:,} x: {sentence}")
        lines += [f"              {example}" for example in tally.examples]
    return "\n".join(lines) + "\n"


_SHOWN_ABOVE = frozenset({"node_hours", "nodes", "rows of events"})


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "; ".join(_shown(item) for item in value)
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
