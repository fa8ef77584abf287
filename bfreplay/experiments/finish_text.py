"""Text of ``finish``: the answer in one sentence, warnings, and tables."""

from __future__ import annotations

from collections.abc import Iterator

from bfreplay.datasets.times import iso_utc
from bfreplay.result_folders.finish import AT_MOST, MORE, Against, Finish, FinishRecord
from bfreplay.wording import Kind, count, duration, paragraphs, table_of, time_unit

FEW_TIMES = 5
"""A log shorter than this many medians holds too few starts that do not overlap."""


def render(result: Finish) -> str:
    """Return the result as text: answer, warnings, quantiles, and times on dedicated nodes."""
    record = result.record
    blocks = [
        [record.answer],
        [f"Warning: {warning}" for warning in record.warnings] + [f"Note: {note}" for note in record.notes],
        _starts(record),
        _dedicated(record),
    ]
    if result.folder is not None:
        blocks.append([f"Folder       {result.folder}"])
    return paragraphs(blocks)


def answer_of(record: FinishRecord) -> str:
    """Return the answer in one sentence."""
    is_search, quantiles, requested = record.inputs.is_search, record.quantiles, record.config.dedicated
    sentence = "The search is over after " if is_search else "All jobs are done after "
    if quantiles.median_s is None:
        n_open = len(record.starts) - record.n_done
        sentence += f"more than {duration(quantiles.observed_s)} ({n_open:,} of {count(len(record.starts), 'start')} "
        sentence += f"{'is' if n_open == 1 else 'are'} unfinished when the log ends)"
    else:
        sentence += f"{duration(quantiles.median_s)}{_middle_half(record)}"
    if requested is not None:
        seconds, unit = record.dedicated_s(requested), time_unit(quantiles.median_or_bound_s)
        nodes = f"{count(requested, 'node')} of your own"
        sentence += f", and never on {nodes}" if seconds is None else f", against {duration(seconds, unit)} on {nodes}"
    beneficiary = "this search" if is_search else "these jobs"
    answer = f"{sentence}; to {beneficiary} these idle nodes are worth {worth_words(record)}."
    return answer if record.against is None else f"{answer} {_against(record.against, record)}"


def _against(against: Against, record: FinishRecord) -> str:
    """Return the comparison with other jobs in a sentence."""
    (first, other), later, times = record.names, against.later_s, against.quantiles
    sentence = f"From the same {count(len(record.starts), 'start')}, {other} is"
    if later is None or later.value is None:
        return f"{sentence} never done either."
    interval, unit = f"no interval: {later.why_no_interval}", time_unit(abs(later.value))
    if later.low is not None and later.high is not None:
        low, high = sorted((later.low, later.high), key=abs)
        unit = time_unit(abs(high))
        interval = f"95 % interval: {_later(low, unit)} to {_later(high, unit)}"
    median = f"{'more than ' if times.median_s is None else ''}{duration(times.median_or_bound_s)} in the median"
    pairs = f" over the {count(later.n, 'start')} that either finished" if later.n < len(record.starts) else ""
    return f"{sentence} done after {median}, {_later(later.value, unit)} than {first} on average{pairs} ({interval})."


def _later(seconds: float, unit: tuple[str, float]) -> str:
    return f"{duration(abs(seconds), unit)} {'sooner' if seconds < 0 else 'later'}"


def worth_words(record: FinishRecord) -> str:
    """Return ``14 dedicated nodes``, with ``at most`` or ``more than`` before it where only that is known."""
    worth = record.worth
    words = count(worth.nodes, "dedicated node")
    if worth.meaning == MORE:
        return f"more than {words}, the most that were tried"
    return f"at most {words}" if worth.meaning == AT_MOST else words


def _middle_half(record: FinishRecord) -> str:
    low, high = record.quantiles.quarter_s, record.quantiles.three_quarters_s
    unit = time_unit(record.quantiles.median_or_bound_s)
    if low is None or len(record.starts) == 1:
        return ""
    if high is None:
        return f" (a quarter of the starts within {duration(low, unit)})"
    first, second = duration(low, unit), duration(high, unit)
    if first == second:
        return f" (half of the starts within the same {first})"
    return f" (half of the starts within {first.removesuffix(f' {unit[0]}')} to {second})"


def cautions(record: FinishRecord) -> Iterator[str]:
    """Yield warnings: unfinished starts, and starts that overlap."""
    n_starts, n_open = len(record.starts), len(record.starts) - record.n_done
    median_s = record.quantiles.median_s
    if n_open:
        whose = "" if record.against is None else f" of {record.names[0]}"
        unfinished = f"From {n_open:,} of {count(n_starts, 'start')} not all{whose} is done when the log ends."
        unknown = "; the median is unknown" if median_s is None else ""
        yield f"{unfinished} They count with the time that they had (Kaplan-Meier){unknown}."
    against = record.against
    if against is not None and [each.is_done for each in record.starts] != [each.is_done for each in against.starts]:
        yield "Starts that only one of the two finished count with the time the other had; others are left out."
    start_us, end_us = record.inputs.window_us
    times = (end_us - start_us) / 1e6 / max(record.quantiles.median_or_bound_s, 1e-6)
    statistic = "the longest start" if median_s is None else "the median"
    if n_starts > 1 and times < FEW_TIMES:
        yield (
            f"The log is only {times:.1f} times as long as {statistic}: the starts overlap, so they say less than "
            f"{count(n_starts, 'start')} of a longer log would."
        )


def notes(record: FinishRecord, unknown_zone: str | None) -> list[str]:
    """Return notes: a log without a calendar, an unknown time zone, fewer starts than asked for."""
    sentences = []
    if record.config.time_zone is None:
        sentences.append("The times of the log are relative: it has no weekdays and hours of the day.")
    if unknown_zone is not None:
        sentences.append(f"The time zone of the log, {unknown_zone!r}, is unknown: hours and weekdays are in UTC.")
    if len(record.starts) < record.config.starts:
        sentences.append(f"The log leaves room for {count(len(record.starts), 'start')} only.")
    return sentences


def _starts(record: FinishRecord) -> list[str]:
    first, last, quantiles = record.starts[0].time, record.starts[-1].time, record.quantiles
    times = [quantiles.quarter_s, quantiles.median_s, quantiles.three_quarters_s]
    caption = (
        f"{count(len(record.starts), 'start')} from {first} to {last}, {record.n_done:,} finished before the log ends "
        f"({iso_utc(record.inputs.window_us[1])})."
    )
    kinds: dict[str, Kind] = {"starts": "text", **dict.fromkeys(["a quarter", "half", "three quarters"], "seconds")}
    return table_of(caption, kinds, [["all done within", *times]]).lines()


def _dedicated(record: FinishRecord) -> list[str]:
    worth, clusters = record.worth, record.dedicated
    node_counts = {worth.nodes - 1, worth.nodes, record.config.dedicated, max(cluster.nodes for cluster in clusters)}
    rows = [[cluster.nodes, cluster.duration_s] for cluster in clusters if cluster.nodes in node_counts]
    kinds: dict[str, Kind] = {"dedicated nodes": "count", "all done after": "seconds"}
    return table_of("Time until all is done on dedicated nodes (-: never)", kinds, rows).lines()
