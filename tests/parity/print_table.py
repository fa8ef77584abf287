"""Compare with all records of the published systems, and print the table of docs/parity.md.

python -m tests.parity.print_table [SYSTEM]...
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping

from bfreplay.wording import count, paragraphs
from tests.conftest import shared_folder
from tests.parity.comparison import Table, Tally
from tests.parity.parts import SYSTEMS, table_of


def main() -> None:
    """Print the table; the exit code is 1 if something differs without a known reason."""
    shared, names = shared_folder(), sys.argv[1:] or list(SYSTEMS)
    if not shared.is_dir():
        sys.exit(f"the records of the published systems are not at {shared} (set BFREPLAY_SHARED to where they are)")
    tables = {}
    for name in names:
        print(f"comparing with {name} ...", file=sys.stderr)
        tables[name] = table_of(shared, name)
    print(to_markdown(tables))
    unexplained = [
        f"{row.what}: {item}"
        for table in tables.values()
        for row, tally in table.tallies.items()
        for item in tally.unexplained
    ]
    for line in unexplained:
        print(line, file=sys.stderr)
    sys.exit(any(tally.has_failed for table in tables.values() for tally in table.tallies.values()))


def to_markdown(tables: Mapping[str, Table]) -> str:
    """Return one table of all rows, the verdict, and the known differences of each system."""
    lines = ["| system | compared | agree | of | digits | named |", "|---|---|---|---|---|---|"]
    for system, table in tables.items():
        lines += [f"| {system} | {row.what} | {' | '.join(_cells(tally))} |" for row, tally in table.tallies.items()]
    named = [
        f"- *{system}*: {f'{n:,} named: ' if n else ''}{reason}"
        for system, table in tables.items()
        for reason, n in _reasons(table).items()
    ]
    return paragraphs([lines, [_verdict(tables)], named])


def _cells(tally: Tally) -> tuple[str, str, str, str]:
    digits = "-" if not tally.n_equal else "all" if tally.digits is None else str(tally.digits)
    return f"{tally.n_equal:,}", f"{tally.n:,}", digits, f"{tally.n_named:,}" if tally.n_named else ""


def _reasons(table: Table) -> Counter[str]:
    """Return the number of items by reason of a difference; 0 for items that cannot be compared."""
    reasons: Counter[str] = Counter()
    for row, tally in table.tallies.items():
        reasons.update(dict.fromkeys(row.notes, 0))
        reasons.update(tally.differences)
    return reasons


def _verdict(tables: Mapping[str, Table]) -> str:
    tallies = [tally for table in tables.values() for tally in table.tallies.values()]
    n, n_equal, n_named = (sum(getattr(tally, name) for tally in tallies) for name in ("n", "n_equal", "n_named"))
    n_failed = sum(tally.has_failed for tally in tallies)
    rows = count(len(tallies), "row")
    verdict = f"{n_failed} of {rows} FAILED" if n_failed else f"none of {rows} failed"
    return f"{n_equal:,} of {n:,} agree, {n_named:,} differ for a named reason: {verdict}."


if __name__ == "__main__":
    main()
