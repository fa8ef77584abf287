"""Text of a tuning: the recommendation in two sentences, and all results."""

from __future__ import annotations

from bfreplay.experiments.tuning.grid import SAMPLES, Grid, Surface, seconds
from bfreplay.experiments.tuning.recommendation import AS_GOOD, FLAT, Recommendation, worse
from bfreplay.experiments.tuning.trade_off import trade_off_rows
from bfreplay.result_folders.tuning import PARTS, TUNED_ON, VALIDATED_ON, Tuning, TuningRecord, Validation
from bfreplay.wording import aligned_lines, amount, count, duration, paragraphs, percent

_TITLES = {TUNED_ON: "tuned on", VALIDATED_ON: "validated on"}


def render(tuning: Tuning) -> str:
    """Return the tuning as text: answer, warnings, the two parts, results, flat ranges, and regret."""
    record = tuning.record
    blocks = [
        tuning.answer,
        [f"Warning: {each}" for each in tuning.warnings] + [f"Note: {note}" for note in record.notes],
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
    cells = [["", "from", "to", "length", "idle nodes", "pool events", "measure"]]
    for name in PARTS:
        part = record.parts[name]
        measure = "samples" if part.measure == SAMPLES else "time until all work was done"
        cells.append(
            [
                _TITLES[name],
                *part.window,
                duration(part.duration_s),
                amount(part.idle_nodes),
                f"{part.n_pool_events:,}",
                measure,
            ]
        )
    work = "unlimited" if record.config.options["unlimited-work"] else "that of the jobs"
    return [*aligned_lines(cells), f"Work: {work}."]


def _shares(record: TuningRecord) -> list[str]:
    grid, recommended = record.grid, record.recommended
    share = {name: record.parts[name].share for name in PARTS}
    cells = [["T_fwd", *(count(number, "job") for number in grid.max_parallel)]]
    for t, t_fwd in enumerate(grid.t_fwd):
        row = [seconds(t_fwd)]
        for m, number in enumerate(grid.max_parallel):
            is_chosen = t_fwd == recommended.t_fwd and number == recommended.max_parallel
            both = " / ".join(f"{100 * share[name][t][m]:.2f}" for name in PARTS)
            row.append(f"{both} {'*' if is_chosen else ' '}")
        cells.append(row)
    return [
        "Share of the best of the grid, %: part tuned on / part validated on (* recommended)",
        *aligned_lines(cells),
    ]


def _columns(record: TuningRecord) -> list[str]:
    within = [f"{100 * each:g}" for each in record.config.flat]
    cells = [["jobs at once", "T_fwd", "best", "its share", *(f"within {each} % of the best fixed" for each in within)]]
    for column in record.columns:
        cells.append(
            [
                str(column.max_parallel),
                seconds(column.t_fwd),
                seconds(column.best_t_fwd),
                f"{100 * column.share:.2f} %",
                *map(_range, column.flat),
            ]
        )
    return ["Best T_fwd by jobs at once, and ranges near it, in the part tuned on", *aligned_lines(cells)]


def _regret(record: TuningRecord) -> list[str]:
    found = record.validation
    if found is None:
        return []
    t_fwd, number = found.best_pair
    return [
        f"In the part validated on, the recommendation loses {percent(found.loss)} against the best T_fwd there "
        f"({seconds(found.best_t_fwd)}), and {percent(found.loss_of_grid)} against the best pair of the grid "
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
    grid: Grid, found: Recommendation, validation: Validation | None, surfaces: tuple[Surface, Surface]
) -> list[str]:
    """Return the recommendation with its result on the validation part, and its importance."""
    t_fwd = found.t_fwd if isinstance(found.t_fwd, str) else f"{found.t_fwd:g}"
    options = f"Use --t-fwd {t_fwd} --max-parallel {found.max_parallel}"
    return [
        f"{options}: {_worth(found, validation, surfaces[1])}.",
        f"{_flatness(grid, found)}{_number(grid, found, surfaces[0])}.{_fewer_rescales(found)}",
    ]


def _worth(found: Recommendation, validation: Validation | None, surface: Surface) -> str:
    where = "on the rest of the log, on which it was not tuned,"
    if validation is None:
        return f"{where} no job processed anything, so its value is unknown"
    beside = _beside(found, validation, surface.measure)
    if surface.measure != SAMPLES:
        return f"{where} all work is done after {duration(float(surface.value[found.at]))}, {beside}"
    if validation.share_of_bound is None:
        return f"{where} this gives {amount(float(surface.value[found.at]))} samples, {beside}"
    return f"{where} this gives {percent(validation.share_of_bound)} of the upper bound, {beside}"


def _beside(found: Recommendation, validation: Validation, measure: str) -> str:
    if validation.best_t_fwd == found.t_fwd:
        return "and no other T_fwd tried is better there"
    best = f"the best value there ({seconds(validation.best_t_fwd)})"
    lost = percent(validation.loss)
    if measure != SAMPLES:
        return f"as soon as with {best}" if validation.loss < _NOTHING else f"{lost} slower than with {best}"
    return f"as much as {best}" if validation.loss < _NOTHING else f"{lost} less than {best}"


def _flatness(grid: Grid, found: Recommendation) -> str:
    if len(grid.t_fwd) == 1:
        return f"No T_fwd but {seconds(grid.t_fwd[0])} was tried, so nothing is known about other values"
    column = next(column for column in found.columns if column.max_parallel == found.max_parallel)
    flat = column.flat[0]
    near = f"{100 * FLAT[0]:g}"
    if flat is None:
        return "No fixed T_fwd was tried"
    if flat[0] == flat[1]:
        return f"T_fwd matters: of the fixed values only {flat[0]:g} s is within {near} % of the best"
    return f"Any T_fwd from {flat[0]:g} to {flat[1]:g} s is within {near} % of the best fixed value"


def _fewer_rescales(found: Recommendation) -> str:
    """Return why the T_fwd is not the best of the part tuned on; empty if it is."""
    best = next(column.best_t_fwd for column in found.columns if column.max_parallel == found.max_parallel)
    if best == found.t_fwd:
        return ""
    chosen, lead = seconds(found.t_fwd), f"{100 * AS_GOOD:g} %"
    return f" In the part tuned on, {seconds(best)} is better by less than {lead}, but {chosen} rescales less."


def _number(grid: Grid, found: Recommendation, surface: Surface) -> str:
    numbers = grid.max_parallel
    if len(numbers) == 1:
        return ""
    at = found.at[1]
    below, above = numbers[:at], numbers[at + 1 :]
    best = max(found.columns, key=lambda column: column.share)
    words = []
    if below:
        words.append(
            f"{count(below[-1], 'job')} at once {worse(found.columns[at - 1].share / best.share, surface.measure)}"
        )
    if above:
        share = found.columns[at].share / best.share
        nothing = 1 - share <= _NOTHING
        words.append("more gain nothing" if nothing else f"more gain {percent(1 / share - 1)} at most")
    return "; " + ", and ".join(words) if words else ""
