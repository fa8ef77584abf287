"""``check_run``: one pass over a run before anything is made of it."""

from __future__ import annotations

from bfreplay.answers.soundness.agreement import check_agreement
from bfreplay.answers.soundness.columns import check_tables
from bfreplay.answers.soundness.entries import check_record, check_session
from bfreplay.answers.soundness.rows import check_rows
from bfreplay.answers.soundness.sums import Sum, checked_sums
from bfreplay.replay.result import RunResult


def check_run(run: RunResult) -> list[Sum]:
    """Return the sums that have been compared; of a run that passes, figures and sentences may take all for granted.

    Runs of older versions pass without the entries, columns and tables that these did not write.

    Raises
    ------
    InputError
        An entry of the record or of the session is missing or no such thing; a table is missing or damaged, lacks a
        column, or holds what cannot be; the tables do not add up to what the record says; or the record contradicts
        itself.
    """
    check_record(run)
    check_session(run)
    check_tables(run)
    sums = checked_sums(run)
    check_rows(run)
    check_agreement(run)
    return sums
