"""A tuning as text that a person can read."""

from __future__ import annotations

from bfreplay.experiments.formulation_lab.text import aligned
from bfreplay.experiments.tuning.surface import SAMPLES
from bfreplay.experiments.tuning.words import percent, seconds
from bfreplay.result_folders.tuning import PARTS, TUNED_ON, VALIDATED_ON, Tuning, TuningRecord
from bfreplay.wording import amount, count, duration

_TITLES = {TUNED_ON: "tuned on", VALIDATED_ON: "validated on"}


def render(tuning: Tuning) -> str:
    """The answer, warnings, the two parts, the whole table, how flat it is, and the regret."""
    record = tuning.record
    blocks = [
        tuning.answer,
        [f"Warning: {each}" for each in tuning.warnings] + [f"Note: {each}" for each in record.notes],
        _parts(record),
        _shares(record),
        _columns(record),
        _regret(record),
    ]
    if tuning.folder is not None:
        blocks.append([f"Folder       {tuning.folder}"])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _parts(record: TuningRecord) -> list[str]:
    cells = [["", "from", "to", "length", "idle nodes", "pool events", "measure"]]
    for name in PARTS:
        part = record.parts[name]
        measure = "samples" if part.measure == SAMPLES else "when all work was done"
        cells.append([
            _TITLES[name], *part.window, duration(part.duration_s), amount(part.idle_nodes),
            f"{part.n_pool_events:,}", measure,
        ])  # fmt: skip
    work = "without end" if record.config.options["unlimited-work"] else "the jobs' own"
    return [*aligned(cells), f"Work: {work}."]


def _shares(record: TuningRecord) -> list[str]:
    grid, recommended = record.grid, record.recommended
    share = {name: record.parts[name].share for name in PARTS}
    cells = [["T_fwd", *(count(number, "job") for number in grid.max_parallel)]]
    for t, t_fwd in enumerate(grid.t_fwd):
        row = [seconds(t_fwd)]
        for m, number in enumerate(grid.max_parallel):
            here = t_fwd == recommended.t_fwd and number == recommended.max_parallel
            both = " / ".join(f"{100 * share[name][t][m]:.2f}" for name in PARTS)
            row.append(f"{both} {'*' if here else ' '}")
        cells.append(row)
    lines = aligned(cells)
    return [
        "Share of the best of the grid, %: in the part tuned on / in the part validated on (* recommended)",
        *lines,
    ]


def _columns(record: TuningRecord) -> list[str]:
    within = [percent(each) for each in record.config.flat]
    cells = [["jobs at once", "T_fwd", "best", "its share", *(f"within {each} % of the best fixed" for each in within)]]
    for column in record.columns:
        cells.append([
            str(column.max_parallel), seconds(column.t_fwd), seconds(column.best_t_fwd),
            f"{100 * column.share:.2f} %", *map(_range, column.flat),
        ])  # fmt: skip
    return ["How flat it is, in the part tuned on", *aligned(cells)]


def _regret(record: TuningRecord) -> list[str]:
    found = record.validation
    if found is None:
        return []
    t_fwd, number = found.best_pair
    lines = [
        f"In the part validated on it loses {percent(found.loss)} % against the best T_fwd there "
        f"({seconds(found.best_t_fwd)}), and {percent(found.loss_of_grid)} % against the best pair of the grid "
        f"({seconds(t_fwd)}, {count(number, 'job')})."
    ]
    return lines


def _range(flat: tuple[float, float] | None) -> str:
    if flat is None:
        return "-"
    low, high = flat
    return f"{low:g} s only" if low == high else f"{low:g} to {high:g} s"
