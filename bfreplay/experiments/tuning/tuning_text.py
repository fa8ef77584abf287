"""Text of a tuning: the recommendation in two sentences, and all results."""

from __future__ import annotations

from bfreplay.experiments.tuning.grid import SAMPLES, Grid, Surface, seconds
from bfreplay.experiments.tuning.recommendation import AS_GOOD, FLAT, Recommendation, worse
from bfreplay.experiments.tuning.trade_off import trade_off_rows
from bfreplay.result_folders.tuning import PARTS, TUNED_ON, VALIDATED_ON, Tuning, TuningRecord, Validation
from bfreplay.wording import Kind, aligned_lines, amount, count, duration, paragraphs, percent, table_of

_DONE = "time until all work was done"
_TITLES = {TUNED_ON: "tuned on", VALIDATED_ON: "validated on"}


def render(tuning: Tuning) -> str:
    """Return the tuning as text: answer, warnings, the two parts, results, flat ranges, and regret."""
    record = tuning.record
    blocks = [
        tuning.answer,
        [f"Warning: {warning}" for warning in tuning.warnings] + [f"Note: {note}" for note in record.notes],
        _parts(record),
        _shares(record),
        _columns(record),
        _regret(record),
        _trade_off(record),
    ]
    if tuning.folder is not None:
        blocks.append([f"Folder       {tuning.folder}"])
    return paragraphs(blocks)


def _parts(record: TuningRecord) -> list[str]:
    measures = {name: "samples" if part.measure == SAMPLES else _DONE for name, part in record.parts.items()}
    rows = [
        [_TITLES[name], *part.window, part.duration_s, part.idle_nodes, part.n_pool_events, measures[name]]
        for name, part in ((name, record.parts[name]) for name in PARTS)
    ]
    kinds: dict[str, Kind] = {"part": "text", "from": "text", "to": "text", "length": "seconds", "idle nodes": "amount"}
    table = table_of("Parts of the log", kinds | {"pool events": "count", "measure": "text"}, rows)
    work = "unlimited" if record.config.options["unlimited-work"] else "that of the jobs"
    return [*table.lines(), f"Work: {work}."]


def _shares(record: TuningRecord) -> list[str]:
    grid, recommended = record.grid, record.recommended
    share = {name: record.parts[name].share for name in PARTS}
    cells = [["T_fwd", *(count(number, "job") for number in grid.max_parallel)]]
    for row_index, t_fwd in enumerate(grid.t_fwd):
        row = [seconds(t_fwd)]
        for column_index, number in enumerate(grid.max_parallel):
            is_chosen = t_fwd == recommended.t_fwd and number == recommended.max_parallel
            share_texts = " / ".join(f"{100 * share[name][row_index][column_index]:.2f}" for name in PARTS)
            row.append(f"{share_texts} {'*' if is_chosen else ' '}")
        cells.append(row)
    return [
        "Share of the best of the grid, %: part tuned on / part validated on (* recommended)",
        *aligned_lines(cells),
    ]


def _columns(record: TuningRecord) -> list[str]:
    within = [f"within {100 * percentage:g} % of the best fixed" for percentage in record.config.flat]
    rows = [
        [
            column.max_parallel,
            *map(seconds, (column.t_fwd, column.best_t_fwd)),
            f"{100 * column.share:.2f} %",
            *map(_range, column.flat),
        ]
        for column in record.columns
    ]
    kinds: dict[str, Kind] = {"jobs at once": "count", **dict.fromkeys(["T_fwd", "best", "its share", *within], "text")}
    return table_of("Best T_fwd by jobs at once, and ranges near it, in the part tuned on", kinds, rows).lines()


def _regret(record: TuningRecord) -> list[str]:
    validation = record.validation
    if validation is None:
        return []
    t_fwd, number = validation.best_pair
    return [
        f"In the part validated on, the recommendation loses {percent(validation.loss)} against the best T_fwd there "
        f"({seconds(validation.best_t_fwd)}), and {percent(validation.loss_of_grid)} against the best pair of the grid "
        f"({seconds(t_fwd)}, {count(number, 'job')})."
    ]


def _trade_off(record: TuningRecord) -> list[str]:
    if record.trade_off is None:
        return []
    title = (
        f"Idle nodes left alone, with {duration(record.trade_off.clear_s)} to clear a node: part tuned on / part "
        "validated on (* recommended)"
    )
    return [title, *aligned_lines(trade_off_rows(record.trade_off))]


def _range(flat: tuple[float, float] | None) -> str:
    if flat is None:
        return "-"
    low, high = flat
    return f"{low:g} s only" if low == high else f"{low:g} to {high:g} s"


_NOTHING = 5e-5


def answer_of(
    grid: Grid, recommendation: Recommendation, validation: Validation | None, surfaces: tuple[Surface, Surface]
) -> list[str]:
    """Return the recommendation with its result on the validation part, and its importance."""
    t_fwd = recommendation.t_fwd if isinstance(recommendation.t_fwd, str) else f"{recommendation.t_fwd:g}"
    options = f"Use --t-fwd {t_fwd} --max-parallel {recommendation.max_parallel}"
    return [
        f"{options}: {_worth(recommendation, validation, surfaces[1])}.",
        f"{_flatness(grid, recommendation)}{_number(grid, recommendation, surfaces[0])}."
        f"{_fewer_rescales(recommendation)}",
    ]


def _worth(recommendation: Recommendation, validation: Validation | None, surface: Surface) -> str:
    condition = "on the rest of the log, on which it was not tuned,"
    if validation is None:
        return f"{condition} no job processed anything, so its value is unknown"
    beside = _beside(recommendation, validation, surface.measure)
    if surface.measure != SAMPLES:
        return f"{condition} all work is done after {duration(float(surface.value[recommendation.at]))}, {beside}"
    if validation.share_of_bound is None:
        return f"{condition} this gives {amount(float(surface.value[recommendation.at]))} samples, {beside}"
    return f"{condition} this gives {percent(validation.share_of_bound)} of the upper bound, {beside}"


def _beside(recommendation: Recommendation, validation: Validation, measure: str) -> str:
    if validation.best_t_fwd == recommendation.t_fwd:
        return "and no other T_fwd tried is better there"
    best = f"the best value there ({seconds(validation.best_t_fwd)})"
    loss_text = percent(validation.loss)
    if measure != SAMPLES:
        return f"as soon as with {best}" if validation.loss < _NOTHING else f"{loss_text} slower than with {best}"
    return f"as much as {best}" if validation.loss < _NOTHING else f"{loss_text} less than {best}"


def _flatness(grid: Grid, recommendation: Recommendation) -> str:
    if len(grid.t_fwd) == 1:
        return f"No T_fwd but {seconds(grid.t_fwd[0])} was tried, so nothing is known about other values"
    column = next(column for column in recommendation.columns if column.max_parallel == recommendation.max_parallel)
    flat = column.flat[0]
    near = f"{100 * FLAT[0]:g}"
    if flat is None:
        return "No fixed T_fwd was tried"
    if flat[0] == flat[1]:
        return f"T_fwd matters: of the fixed values only {flat[0]:g} s is within {near} % of the best"
    return f"Any T_fwd from {flat[0]:g} to {flat[1]:g} s is within {near} % of the best fixed value"


def _fewer_rescales(recommendation: Recommendation) -> str:
    """Return why the T_fwd is not the best of the part tuned on; empty if it is."""
    best = next(
        column.best_t_fwd for column in recommendation.columns if column.max_parallel == recommendation.max_parallel
    )
    if best == recommendation.t_fwd:
        return ""
    t_fwd_text, lead = seconds(recommendation.t_fwd), f"{100 * AS_GOOD:g} %"
    return f" In the part tuned on, {seconds(best)} is better by less than {lead}, but {t_fwd_text} rescales less."


def _number(grid: Grid, recommendation: Recommendation, surface: Surface) -> str:
    numbers = grid.max_parallel
    if len(numbers) == 1:
        return ""
    column_index = recommendation.at[1]
    below, above = numbers[:column_index], numbers[column_index + 1 :]
    best = max(recommendation.columns, key=lambda column: column.share)
    words = []
    if below:
        words.append(
            f"{count(below[-1], 'job')} at once "
            f"{worse(recommendation.columns[column_index - 1].share / best.share, surface.measure)}"
        )
    if above:
        share = recommendation.columns[column_index].share / best.share
        nothing = 1 - share <= _NOTHING
        gain = "nothing" if nothing else f"{percent(1 / share - 1)} at most"
        words.append(f"more {'' if below else 'jobs at once '}gain {gain}")
    return "; " + ", and ".join(words) if words else ""
