"""Parity as text for the terminal, as Markdown for a page, and as JSON for a program."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bfreplay.experiments.parity.check import Check, SystemParity
from bfreplay.wording import aligned_lines, count, paragraphs

_HEAD = ("agree", "of", "digits", "named", "s")
_WIDTH = 110
_MOST_SHOWN = 5


def render(systems: Sequence[SystemParity]) -> str:
    """Return a table of each system with its differences below it, and the overall verdict in the last line."""
    return paragraphs([*(_system(each) for each in systems), [_verdict(systems)]])


def _system(parity: SystemParity) -> list[str]:
    if parity.absent:
        return [f"{parity.system}: not compared, its data are absent ({parity.absent})"]
    rows = [(f"  {each.what}", *_cells(each), f"{each.seconds:.1f}") for each in parity.checks]
    failures = [line for each in parity.checks if each.has_failed for line in _failure(each)]
    return [*aligned_lines([(parity.system, *_HEAD), *rows]), *failures, *_differences(parity)]


def _cells(check: Check) -> tuple[str, str, str, str]:
    digits = "-" if not check.n_equal else "all" if check.digits is None else str(check.digits)
    return f"{check.n_equal:,}", f"{check.n:,}", digits, f"{check.n_named:,}" if check.n_named else ""


def _failure(check: Check) -> list[str]:
    items = check.unexplained
    n = f"{len(items):,} of {check.n:,} without a known reason" if check.n else "nothing was compared"
    more = [f"    and {len(items) - _MOST_SHOWN:,} more"] if len(items) > _MOST_SHOWN else []
    return [f"  DIFFERS  {check.what}: {n}", *(f"    {item}" for item in items[:_MOST_SHOWN]), *more]


def _differences(parity: SystemParity) -> list[str]:
    reasons = named_differences(parity)
    texts = [f"{n:,} named: {reason}" if n else reason for reason, n in reasons.items()]
    wrapped = [textwrap.fill(each, _WIDTH, initial_indent="    - ", subsequent_indent="      ") for each in texts]
    return ["  Named differences, and what cannot be compared", *wrapped] if wrapped else []


def named_differences(parity: SystemParity) -> dict[str, int]:
    """Return the number of items by reason of a difference; 0 for items that cannot be compared."""
    found: Counter[str] = Counter()
    for check in parity.checks:
        found.update(check.differences)
    return found


def _verdict(systems: Sequence[SystemParity]) -> str:
    checks = [check for each in systems for check in each.checks]
    n, n_equal, n_named = (sum(getattr(check, name) for check in checks) for name in ("n", "n_equal", "n_named"))
    n_failed = sum(check.has_failed for check in checks)
    verdict = (
        f"{n_failed} of {count(len(checks), 'check')} FAILED" if n_failed else f"none of {len(checks)} checks failed"
    )
    return f"{n_equal:,} of {n:,} agree, {n_named:,} differ for a named reason: {verdict}."


def to_markdown(systems: Sequence[SystemParity]) -> str:
    """Return one table of all checks, the verdict, and the differences of each system; without seconds."""
    table = ["| system | compared | agree | of | digits | named |", "|---|---|---|---|---|---|"]
    for each in systems:
        table += [f"| {each.system} | {check.what} | {' | '.join(_cells(check))} |" for check in each.checks]
    lines = [f"| {each.system} | not compared: its data are absent | | | | |" for each in systems if each.absent]
    named = [
        f"- *{each.system}*: {f'{n:,} named: ' if n else ''}{reason}"
        for each in systems
        for reason, n in named_differences(each).items()
    ]
    return paragraphs([[*table, *lines], [_verdict(systems)], named])


def to_json(systems: Sequence[SystemParity]) -> dict[str, Any]:
    """Return all values, with the verdict of each check."""
    found = [
        {
            "system": each.system,
            "absent": each.absent or None,
            "failed": each.has_failed,
            "checks": [_check_json(check) for check in each.checks],
        }
        for each in systems
    ]
    return {"failed": any(each.has_failed for each in systems), "systems": found}


def _check_json(check: Check) -> dict[str, Any]:
    differences = [{"reason": reason, "n": n} for reason, n in check.differences.items()]
    verdict = {"n_named": check.n_named, "digits": check.digits, "failed": check.has_failed}
    return {**asdict(check), "differences": differences, **verdict}
