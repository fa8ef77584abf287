"""Import report: rows kept, rows skipped by reason, and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace

from bfreplay.datasets.times import HOUR_US
from bfreplay.documents import Json
from bfreplay.errors import InputError, printable

MOST_EXAMPLES = 3
UNREADABLE = "rows that cannot be read were skipped: their nodes look idle"
NOT_OURS = "idle nodes of the machine that is read do not depend on it"
WHICH_NODES = "which nodes are idle depends on it, not how many"
WHY_NO_AMOUNT = "no other job shows how much such a row is"
_LONGEST_VALUE = 160


@dataclass(frozen=True, slots=True)
class Example:
    """Place in the input: file, line or row (``None`` without one), and its text."""

    file: str
    line: int | None
    value: str

    @property
    def row(self) -> str | None:
        """Place for errors, such as ``"line 7"``; ``None`` without a line."""
        return f"line {self.line}" if self.line else None

    def __str__(self) -> str:
        place_text = self.file if self.line is None else f"{self.file}:{self.line}"
        return printable(": ".join(place_part for place_part in (place_text, self.value) if place_part))


@dataclass(slots=True)
class Tally:
    """Count of a finding, its amount in node-hours, and the first few places.

    Attributes
    ----------
    node_hours, n_known
        Node-hours of the ``n_known`` cases of a known amount; ``None`` before the first.
    open_nodes, open_node_us
        Nodes of cases that last to the end of the log, and their number times their start, in microseconds.
    is_estimate
        True if cases of an unknown amount count as the mean job of the log.
    why, n_without
        Reason that ``n_without`` of the cases have no amount.
    aside
        Reason that it does not change how many nodes are idle; empty if it may.
    """

    count: int = 0
    examples: list[Example] = field(default_factory=list)
    node_hours: float | None = None
    n_known: int = 0
    open_nodes: float = 0
    open_node_us: float = 0
    is_estimate: bool = False
    why: str = ""
    n_without: int = 0
    aside: str = ""

    def add(self, file: str, line: int | None, value: object, count: int, node_hours: float | None = None) -> None:
        """Add ``count`` cases at a place, which the first few keep as an example."""
        self.count += count
        if node_hours is not None:
            self.node_hours = (self.node_hours or 0.0) + node_hours
            self.n_known += count
        value_text = printable(" ".join(str(value).split()))
        if len(value_text) > _LONGEST_VALUE:
            value_text = value_text[: _LONGEST_VALUE - 3] + "..."
        if (file or value_text) and len(self.examples) < MOST_EXAMPLES:
            self.examples.append(Example(file, line, value_text))

    def add_amount(self, n_nodes: float, start_us: int, end_us: int | None) -> None:
        """Add the amount of one case: so many nodes from start to end, or to the end of the log (``None``)."""
        self.n_known += 1
        node_time_us = 0 if end_us is None else n_nodes * max(end_us - start_us, 0)
        self.node_hours = (self.node_hours or 0.0) + node_time_us / HOUR_US
        if end_us is None:
            self.open_nodes += n_nodes
            self.open_node_us += n_nodes * start_us

    def complete(self, log_end_us: int, mean_node_hours: float | None) -> None:
        """Add the amounts that need the whole log: open cases, and unknown ones as the mean job, if there is one."""
        if self.open_nodes:
            open_us = max(self.open_nodes * log_end_us - self.open_node_us, 0)
            self.node_hours = (self.node_hours or 0.0) + open_us / HOUR_US
            self.open_nodes = self.open_node_us = 0
        n_unknown = self.count - self.n_known - self.n_without
        if n_unknown > 0 and mean_node_hours is not None:
            self.node_hours = (self.node_hours or 0.0) + n_unknown * mean_node_hours
            self.n_known, self.is_estimate = self.n_known + n_unknown, True

    def to_json(self, *, has_amount: bool) -> dict[str, Json]:
        """Return plain numbers and strings, with the amount or the reason that there is none."""
        # without folders: the same log gives the same text anywhere
        examples = [str(replace(example, file=example.file.rsplit("/", 1)[-1])) for example in self.examples]
        document: dict[str, Json] = {"count": self.count, "examples": examples}
        if has_amount and self.node_hours is not None:
            document["node_hours"] = self.node_hours
        if has_amount and self.n_known < self.count:
            document["why_no_amount"] = self.why or WHY_NO_AMOUNT
        if has_amount and self.is_estimate:
            document["is_estimate"] = True
        if has_amount and self.aside:
            document["aside"] = self.aside
        return document


class ImportReport:
    """Report of an import: rows read, kept and skipped, warnings and facts.

    Attributes
    ----------
    rows_read
        Rows (lines, records) of the input, without comments, headers and blank lines.
    kept
        Results of kept rows: ``"job intervals"``, ``"outage intervals"``, ... -> count.
    skipped
        Skipped rows: reason -> tally. Reasons are short phrases: ``"never started"``. Rows
        that are no runs by nature (pending jobs, job steps) are skipped and counted without a warning.
    warnings
        Findings that may make the result wrong: a full sentence -> tally. ``--strict`` refuses them.
    facts
        Notes: key -> plain JSON value (time-zone evidence, window, shares).
    """

    def __init__(self) -> None:
        self.rows_read = 0
        self.kept: dict[str, int] = {}
        self.skipped: dict[str, Tally] = {}
        self.warnings: dict[str, Tally] = {}
        self.facts: dict[str, Json] = {}
        self._row_tallies: list[Tally] = []
        self._row_amount: tuple[float, int, int | None] | None = None

    def copy(self) -> ImportReport:
        """Return a copy of the report."""
        return deepcopy(self)

    def read(self, rows: int = 1) -> None:
        """Count rows of the input; the last one is the row of the following warnings, until the next is read."""
        self.rows_read += rows
        self._row_tallies.clear()
        self._row_amount = None

    def keep(self, kind: str, count: int = 1) -> None:
        """Count results of kept rows."""
        self.kept[kind] = self.kept.get(kind, 0) + count

    def skip(self, reason: str, file: str = "", line: int | None = None, value: object = "", count: int = 1) -> None:
        """Count skipped rows by reason; ``count`` 0 does nothing. The first few are kept as examples."""
        if count:
            self.skipped.setdefault(reason, Tally()).add(file, line, value, count)

    def warn(
        self,
        sentence: str,
        file: str = "",
        line: int | None = None,
        value: object = "",
        count: int = 1,
        node_hours: float | None = None,
        why_no_amount: str = "",
        aside: str = "",
        is_estimate: bool = False,
    ) -> None:
        """Count a case that may make the result wrong. The sentence is the same for all cases of a kind.

        ``node_hours`` is the idle time that may be wrong because of it: every later result shows it as a share of the
        idle node-hours. Without it, the amount is that of the row being read (``set_row_amount``), or, where it has
        none, that of the mean job; or there is none, for the reason ``why_no_amount``. ``aside`` is the reason that it
        does not change how many nodes are idle.
        """
        if count == 0:
            return
        tally = self.warnings.setdefault(sentence, Tally())
        tally.add(file, line, value, count, node_hours)
        tally.why = tally.why or why_no_amount
        tally.n_without += count if why_no_amount else 0
        tally.aside = aside if tally.count == count or tally.aside == aside else ""
        tally.is_estimate |= is_estimate
        if node_hours is None and not why_no_amount and count == 1:
            if self._row_amount is None:
                self._row_tallies.append(tally)
            else:
                tally.add_amount(*self._row_amount)

    def set_row_amount(self, n_nodes: float, start_us: int, end_us: int | None) -> None:
        """Note which nodes, and when, the row that is being read concerns: its warnings are about as much.

        ``end_us`` is ``None`` for a row that lasts to the end of the log.
        """
        self._row_amount = n_nodes, start_us, end_us
        for tally in self._row_tallies:
            tally.add_amount(*self._row_amount)
        self._row_tallies.clear()

    def note_no_effect(self, flag: str, reason: str, is_so: object = True) -> None:
        """Note as a fact that an option has no effect on this log, if ``is_so``."""
        if is_so:
            self.facts[flag] = f"has no effect: {reason}"

    @property
    def needs_row_amount(self) -> bool:
        """True if the row that is being read has a warning, and its amount is not known yet."""
        return bool(self._row_tallies)

    def complete(self, log_end_us: int, mean_node_hours: float | None) -> None:
        """Complete the amounts of the warnings; see ``Tally.complete``."""
        for tally in self.warnings.values():
            tally.complete(log_end_us, mean_node_hours)

    def skip_with_warning(
        self,
        reason: str,
        file: str = "",
        line: int | None = None,
        value: object = "",
        *,
        warning: str = UNREADABLE,
        why_no_amount: str = "",
    ) -> None:
        """Count a skipped row, with a warning."""
        self.skip(reason, file, line, value)
        self.warn(warning, file, line, value, why_no_amount=why_no_amount)

    @property
    def rows_skipped(self) -> int:
        """Number of skipped rows."""
        return sum(skip_tally.count for skip_tally in self.skipped.values())

    def skip_reasons(self) -> list[tuple[str, Tally]]:
        """Return the reasons for skipped rows, the most frequent first, then in alphabetical order."""
        return sorted(self.skipped.items(), key=lambda item: (-item[1].count, item[0]))

    def counted_skips(self) -> str:
        """Return all reasons for skipped rows with their numbers; empty without any."""
        return ", ".join(f"{tally.count:,} x {skip_reason}" for skip_reason, tally in self.skipped.items())

    def largest_skips(self) -> tuple[str, Example | None]:
        """Return the three most frequent reasons for skipped rows, with their numbers, and the first example of one."""
        largest = sorted(self.skipped.items(), key=lambda item: -item[1].count)[:MOST_EXAMPLES]
        example = next((tally.examples[0] for _, tally in largest if tally.examples), None)
        return "; ".join(f"{skip_reason}: {tally.count:,}" for skip_reason, tally in largest), example

    def nothing_usable(self, problem: str, otherwise: str, *, file: str, expected: str, fix: str) -> InputError:
        """Return the error for a log without kept rows, with the reasons; ``otherwise`` if no rows were skipped."""
        skip_reasons = self.skip_reasons()
        reasons = "; ".join(f"{skip_reason} ({tally.count:,} x)" for skip_reason, tally in skip_reasons[:MOST_EXAMPLES])
        example = next((tally.examples[0] for _, tally in skip_reasons if tally.examples), Example("", None, ""))
        error_place = {"file": example.file or file, "row": example.row, "value": example.value}
        return InputError(f"{problem}: {reasons or otherwise}", **error_place, expected=expected, fix=fix)

    def no_runs(self, otherwise: str, *, file: str, expected: str, fix: str) -> InputError:
        """Return the error for a log without any run of a job."""
        reasons = "; ".join(f"{skip_reason}: {tally.count:,}" for skip_reason, tally in self.skip_reasons()[:4])
        problem = "this log has no usable run of a job"
        return InputError(problem, file=file, value=reasons or otherwise, expected=expected, fix=fix)

    def refuse_warnings(self) -> None:
        """Raise ``InputError`` if there are warnings (``--strict``)."""
        if not self.warnings:
            return
        sentences = [f"{sentence} ({tally.count:,} x)" for sentence, tally in self.warnings.items()]
        first = next((tally.examples[0] for tally in self.warnings.values() if tally.examples), None)
        raise InputError(
            f"--strict: {len(sentences)} warning{'s' if len(sentences) > 1 else ''} about this log: "
            + "; ".join(sentences),
            file=first.file if first and first.file else None,
            row=first.row if first else None,
            **({"value": first.value} if first and first.value else {}),
            expected="a log without warnings",
            fix="correct the export, choose the option that settles the warning, or import without --strict",
        )

    def to_json(self) -> dict[str, Json]:
        """Return plain dicts, lists, strings and numbers, for the metadata of the events."""
        return {
            "rows_read": self.rows_read,
            "kept": dict(self.kept),
            "rows_skipped": self.rows_skipped,
            "skipped": {skip_reason: tally.to_json(has_amount=False) for skip_reason, tally in self.skipped.items()},
            "warnings": {sentence: tally.to_json(has_amount=True) for sentence, tally in self.warnings.items()},
            "facts": dict(self.facts),
        }


def skip_counts(report: ImportReport) -> Mapping[str, int]:
    """Return the rows by reason, as in ``EventsMetadata.skipped``."""
    return {skip_reason: tally.count for skip_reason, tally in report.skipped.items()}
