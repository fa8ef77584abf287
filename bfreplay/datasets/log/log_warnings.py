"""Warnings about a log, which every result made from the log repeats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Any

from bfreplay.documents import Json, pick
from bfreplay.errors import InputError
from bfreplay.wording import amount, count, percent

NOT_CREDIBLE_SHARE = 0.5
"""Share of the idle node-hours from which one warning alone makes the idle nodes useless."""
SMALL_SHARE = 0.1
"""Share of the idle node-hours below which all warnings together have a small effect."""
IDLE_BY_RULE = "idle node-hours by --oversubscription"
"""Fact of an import: idle node-hours of the window under each rule for jobs that need more nodes than are free."""
MOST_SHOWN = 3
"""Warnings that a result shows one by one; ``bfreplay describe`` shows all."""


class Verdict(StrEnum):
    """Verdict on the idle nodes of a log, worst first."""

    NOT_CREDIBLE = "cannot be believed"
    UNCERTAIN = "may be wrong"
    UNKNOWN = "effect not known"
    SMALL = "small effect"


@dataclass(frozen=True, slots=True)
class LogWarning:
    """One kind of finding of an import that may make the idle nodes wrong.

    Parameters
    ----------
    sentence, count
        The finding, and how many rows, jobs or nodes it concerns.
    node_hours
        Idle time that may be wrong because of it, in node-hours; ``None`` if not known.
    share
        The same as a share of the idle node-hours of the whole log, above 1 if there are more; ``None`` likewise, and
        for one that is ``aside``.
    is_estimate
        True if the amount is estimated from other jobs of the log.
    aside
        Reason that it does not change how many nodes are idle: it is then no part of the sum of the amounts.
    why_no_amount
        Reason that the amount of some cases, or of all, is not known; empty if it is known, or if
        another program made the log.
    """

    sentence: str
    count: int
    node_hours: float | None
    share: float | None
    is_estimate: bool = False
    aside: str = ""
    why_no_amount: str = ""

    def __str__(self) -> str:
        reason = f": {self.why_no_amount}" if self.why_no_amount else ""
        if self.node_hours is None:
            extent = f"amount not known{reason}"
        else:
            share = "" if self.share is None else f", {_share_words(self.share)} the idle ones"
            extent = f"{'about ' if self.is_estimate else ''}{amount(self.node_hours)} node-hours{share}"
            extent += f"; more of an unknown amount{reason}" if reason else ""
        aside = f"; {self.aside}" if self.aside else ""
        return f"{self.count:,} x {self.sentence} ({extent}{aside})"


@dataclass(frozen=True, slots=True)
class LogWarnings:
    """Warnings about a log, and the rule that assigned its nodes.

    Parameters
    ----------
    warnings
        Largest first, unknown amounts last. Two warnings may concern the same node-hours: the sum of the amounts is an
        upper limit.
    idle_node_hours
        Idle node-hours of the whole log, whatever part of it is replayed; ``None`` if not known.
    node_assignment
        The rule that chose nodes if the source gave only counts, with its seed; ``None`` if the source names them.
    """

    warnings: tuple[LogWarning, ...] = ()
    idle_node_hours: float | None = None
    node_assignment: str | None = None

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any], file: Path | None = None) -> LogWarnings:
        """Read the metadata of a log from JSON.

        Raises
        ------
        InputError
            The report of the import in it is not as ``bfreplay ingest`` writes it.
        """
        try:
            report = metadata.get("notes", {}).get("ingest", {})
            hours = report.get("facts", {}).get("node_hours")
            idle = None if hours is None else _amount(hours.get("idle", 0.0))
            warnings = [_warning_of(sentence, tally, idle) for sentence, tally in report.get("warnings", {}).items()]
            assignment = assignment_words(metadata.get("allocator"))
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the metadata of the log cannot be understood: {error}",
                file=file,
                column="notes.ingest, allocator",
                expected="the report of an import as 'bfreplay ingest' writes it",
                fix="import the log again",
            ) from error
        warnings.sort(
            key=lambda warning: (-1.0 if warning.node_hours is None else warning.node_hours, warning.count),
            reverse=True,
        )
        return cls(tuple(warnings), idle, assignment)

    @property
    def most_node_hours(self) -> float:
        """Sum of the known amounts: an upper limit of the node-hours concerned, but for estimates."""
        return sum(warning.node_hours or 0.0 for warning in self._of_idle)

    @property
    def _of_idle(self) -> list[LogWarning]:
        """Warnings that concern how many nodes are idle."""
        return [warning for warning in self.warnings if not warning.aside]

    @property
    def verdict(self) -> Verdict | None:
        """Verdict on the idle nodes; ``None`` without warnings.

        They cannot be believed if one warning concerns half of the idle node-hours, or all together as many as there
        are. They may be wrong if all together concern a tenth. Otherwise the effect is small, or not known if a
        warning has no amount.
        """
        if not self.warnings:
            return None
        most_hours, idle = self.most_node_hours, self.idle_node_hours
        largest = max((warning.node_hours or 0.0 for warning in self._of_idle), default=0.0)
        if idle is not None and largest:
            if largest >= NOT_CREDIBLE_SHARE * idle or most_hours >= idle:
                return Verdict.NOT_CREDIBLE
            if most_hours >= SMALL_SHARE * idle:
                return Verdict.UNCERTAIN
        return Verdict.UNKNOWN if idle is None or self._n_unknown else Verdict.SMALL

    @property
    def _n_unknown(self) -> int:
        return sum(warning.node_hours is None or bool(warning.why_no_amount) for warning in self._of_idle)

    def verdict_sentence(self) -> str:
        """Return the verdict with its reason; empty without warnings."""
        most_hours, idle, n_unknown = self.most_node_hours, self.idle_node_hours, self._n_unknown
        amount_text = " of a known amount" if n_unknown else ""
        is_estimate = any(warning.is_estimate for warning in self._of_idle)
        at_most, up_to = ("about", "about") if is_estimate else ("at most", "up to")
        extent = f"warnings of its import{amount_text} concern {at_most} {amount(most_hours)} node-hours"
        if idle:
            extent += f", {_share_words(most_hours / idle)} the idle ones of the imported log"
        if n_unknown:
            extent = f"{extent}; " if most_hours else ""
            part = "full " if any(warning.node_hours and warning.why_no_amount for warning in self._of_idle) else ""
            verb = "has" if n_unknown == 1 else "have"
            extent += f"{count(n_unknown, 'warning')} of its import {verb} no {part}amount"
        elif not self._of_idle:
            extent = "no warning of its import changes how many nodes are idle"
        limit = "" if n_unknown else f" by {up_to} {percent(most_hours / (idle or 1))}"
        return {
            None: "",
            Verdict.NOT_CREDIBLE: f"The idle nodes of this log cannot be believed: {extent}.",
            Verdict.UNCERTAIN: f"The idle nodes of this log may be wrong{limit}: {extent}.",
            Verdict.UNKNOWN: f"The error of the idle nodes of this log cannot be estimated: {extent}.",
            Verdict.SMALL: f"What may be wrong with the idle nodes of this log has a small effect: {extent}.",
        }[self.verdict]

    def sentences(self, most: int | None = MOST_SHOWN) -> list[str]:
        """Return the verdict, the ``most`` largest warnings (``None``: all), and the assignment of nodes."""
        sentences = [self.verdict_sentence(), *map(str, self.warnings[:most])] if self.warnings else []
        if most is not None and len(self.warnings) > most:
            sentences.append(f"and {len(self.warnings) - most:,} more: 'bfreplay describe' lists all")
        if self.node_assignment is not None:
            sentences.append(
                f"Which node a job had is simulated ({self.node_assignment}): the log has only counts. Each job is "
                "taken to have its nodes for itself (where nodes are shared, too much is busy), and how long each node "
                "stays idle depends on the rule."
            )
        return sentences

    def to_json(self) -> dict[str, Json]:
        """Return plain values: the verdict in words, amounts in node-hours, shares of the idle node-hours."""
        return {
            "verdict": None if self.verdict is None else str(self.verdict),
            "warnings": [asdict(warning) for warning in self.warnings],
            **pick(self, "idle_node_hours", "node_assignment"),
        }


def _cases(json_value: Any) -> int:
    cases = int(json_value)
    if isinstance(json_value, bool) or cases < 1:
        raise ValueError(f"a count of {json_value}")
    return cases


def _amount(json_value: Any) -> float:
    node_hours = float(json_value)
    if isinstance(json_value, bool) or not 0 <= node_hours < inf:
        raise ValueError(f"{json_value} node-hours")
    return node_hours


def _warning_of(sentence: str, tally: Mapping[str, Any], idle: float | None) -> LogWarning:
    node_hours = None if tally.get("node_hours") is None else _amount(tally["node_hours"])
    share = node_hours / idle if node_hours is not None and idle and not tally.get("aside") else None
    aside, reason = (str(tally.get(tally_key, "")) for tally_key in ("aside", "why_no_amount"))
    cases, is_estimate = _cases(tally["count"]), tally.get("is_estimate") is True
    return LogWarning(sentence, cases, node_hours, share, is_estimate, aside, reason)


def assignment_words(allocator: Mapping[str, Json] | None) -> str | None:
    """Name the rule that chose nodes, with its seed if it has one; ``None`` for no allocator."""
    if not allocator:
        return None
    seed = allocator.get("seed")
    rule_name = str(allocator["name"]) if "name" in allocator else json.dumps(dict(allocator), sort_keys=True)
    return rule_name + ("" if seed is None else f", seed {seed}")


def _share_words(share: float) -> str:
    if share >= 1:
        return f"{amount(share)} times"
    return f"{'less than 0.1 %' if 0 < share < 0.0005 else percent(share)} of"
