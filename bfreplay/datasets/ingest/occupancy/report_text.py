"""Import report as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bfreplay.datasets.ingest.occupancy import findings
from bfreplay.datasets.ingest.occupancy.build import BuiltLog
from bfreplay.datasets.ingest.occupancy.inventory import ABSENT
from bfreplay.datasets.log.log_warnings import IDLE_BY_RULE, LogWarnings
from bfreplay.datasets.log.metadata import UNITS
from bfreplay.datasets.times import US, iso_utc
from bfreplay.documents import Json
from bfreplay.errors import printable
from bfreplay.wording import amount, count, parts_of_whole, percent

_WIDTH = 110
_LABEL = 12


def render(build: BuiltLog, reader: str) -> str:
    """Lay out the rows read, kept and skipped, the assumptions, and last the warnings and the verdict."""
    report, events = build.report, build.events
    metadata = events.metadata
    days = (events.window_end_us - events.window_start_us) / 86_400e6
    result_texts = [count(n_results, result_kind.removesuffix("s")) for result_kind, n_results in report.kept.items()]
    report_lines = [
        _line("read", f"{count(report.rows_read, 'row')} as {metadata.source_format or reader}"),
        _line("kept", ", ".join(result_texts) or "nothing"),
        _line("skipped", count(report.rows_skipped, "row")),
    ]
    for skip_reason, tally in sorted(report.skipped.items(), key=lambda item: -item[1].count):
        example = f", e.g. {tally.examples[0]}" if tally.examples else ""
        report_lines.append(_line("", f"{tally.count:,} x {skip_reason}{example}", hanging=2))
    has_inventory = metadata.node_inventory == "metadata"
    unit_text = "" if metadata.unit == "node" else f" ({UNITS[metadata.unit]}s)"
    others_text = "" if has_inventory else " seen in the log; --inventory adds the others"
    nodes_text = f"{len(events.nodes):,}{unit_text}{others_text}"
    period_text = f"{iso_utc(events.window_start_us)} to {iso_utc(events.window_end_us)} ({days:,.2f} days)"
    report_lines += [_line("window", f"{period_text}, {build.window.why}"), _line("nodes", nodes_text)]
    sentences = LogWarnings(node_assignment=metadata.assignment).sentences()
    report_lines += [_line("assignment", sentence) for sentence in sentences]
    report_lines += [_line(label, fact_text) for label, fact_text in _facts(report.facts)]
    report_lines += [_line("noted", sentence) for sentence in _bursts(build)]
    warnings = {warning.sentence: warning for warning in metadata.log_warnings.warnings}
    for sentence, tally in report.warnings.items():
        report_lines.append(_line("WARNING", str(warnings[sentence])))
        report_lines += [_line("", f"e.g. {example}", hanging=2) for example in tally.examples]
    if report.warnings:
        report_lines.append(_line("VERDICT", metadata.log_warnings.verdict_sentence()))
    return "\n".join(report_lines) + "\n"


def _bursts(build: BuiltLog) -> list[str]:
    """Return what to do where the reclaims of one batch job would be charged apart."""
    record = build.source.record
    stamps_us = record.first_start_us, record.last_start_us, record.first_end_us, record.last_end_us
    if not any(stamp_us % US for stamp_us in (*stamps_us, record.last_stamp_us)):
        return []  # times are whole seconds
    from bfreplay.datasets.idleness.characterise import reclaim_bursts
    from bfreplay.datasets.idleness.idleness_text import settle_advice

    return settle_advice(reclaim_bursts(build.events))


def _line(label: str, text: str, hanging: int = 0) -> str:
    return textwrap.fill(
        printable(text),
        _WIDTH,
        initial_indent=label.ljust(_LABEL),
        subsequent_indent=" " * (_LABEL + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _node_hours(hours_by_state: Mapping[str, float]) -> str:
    total = sum(hours_by_state.values()) or 1.0
    parts = zip(hours_by_state, parts_of_whole([*hours_by_state.values()]), hours_by_state.values(), strict=True)
    return ", ".join(f"{word} {hours_text} ({percent(state_hours / total)})" for word, hours_text, state_hours in parts)


def _short_intervals(fact: Mapping[str, float]) -> str:
    intervals = count(int(fact["count"]), "idle interval")
    return f"{intervals} shorter than {fact['shorter_than_s']:g} s ({amount(fact['node_hours'])} node-hours) ignored"


def _empty(fact: Mapping[str, float]) -> str:
    share = f"no job on the whole machine for {percent(fact['share_of_window'])} of the window"
    for state, other_state, fact_name in (("down", "idle", "assumed_down"), ("idle", "down", "left_idle")):
        if fact[f"{fact_name}_periods"]:
            times = count(int(fact[f"{fact_name}_periods"]), "such time")
            hours = amount(fact[f"{fact_name}_hours"])
            return (
                f"{share}; {times} of more than {fact['longer_than_min']:g} min ({hours} h together) assumed {state} "
                f"(--empty-machine {other_state}: otherwise)"
            )
    return share


def _cut(fact: Mapping[str, float]) -> str:
    open_share = fact["share_without_an_end"]
    without_end = f", {percent(open_share)} in jobs without an end" if open_share else ""
    jobs = count(int(fact["jobs"]), "job")
    share = percent(fact["share_of_job_node_time"])
    return f"{jobs} cut by the window's edges ({share} of jobs' node-hours{without_end})"


def _by_rule(fact: Mapping[str, float]) -> str:
    hours = ", ".join(f"{idle_hours:,.1f} ({rule})" for rule, idle_hours in fact.items())  # they may differ by little
    jobs = "jobs that need more nodes than are free"
    return f"idle node-hours depend on how {jobs} are treated (--oversubscription): {hours}"


_SENTENCES: Mapping[str, Callable[[Any], str]] = {
    findings.NODE_HOURS: _node_hours,
    findings.CENSORED: _cut,
    findings.SHORT_INTERVALS: _short_intervals,
    findings.EMPTY_MACHINE: _empty,
    IDLE_BY_RULE: _by_rule,
}
_SHOWN_ELSEWHERE = frozenset({findings.NODES, findings.ROWS, ABSENT})  # above, or among the warnings


def _facts(facts: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield label and text of each fact."""
    for fact_name, fact_value in facts.items():
        if fact_name not in _SHOWN_ELSEWHERE:
            sentence = _SENTENCES.get(fact_name)
            label = "node-hours" if fact_name == findings.NODE_HOURS else "noted"
            yield label, f"{fact_name}: {_text_of(fact_value)}" if sentence is None else sentence(fact_value)


def _text_of(fact_value: Any) -> str:
    if isinstance(fact_value, dict):
        return ", ".join(f"{item_name} {_text_of(item_value)}" for item_name, item_value in fact_value.items())
    if isinstance(fact_value, list):
        return "; ".join(_text_of(item_value) for item_value in fact_value)
    if isinstance(fact_value, bool):
        return "yes" if fact_value else "no"
    return amount(fact_value) if isinstance(fact_value, int | float) else str(fact_value)
