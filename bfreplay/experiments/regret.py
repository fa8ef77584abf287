"""How far runs are from the best that anyone could do, and that as a table that a person can read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfreplay.bounds import Effort, UpperBound, upper_bound
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.runs.run_replay import jobs_in_window
from bfreplay.runs.run_warnings import distinct_warnings, warning_lines
from bfreplay.runs.saved_inputs import inputs_of
from bfreplay.runs.summary_text import policy_words
from bfreplay.wording import paragraphs
from bfreplay.workload import Ending, JobSet, JobSource

if TYPE_CHECKING:
    import pandas as pd

RegretProgress = Callable[[int, int, int, int], None]
"""Called with (bounds made, bounds to make, evaluations of the present search, at most so many)."""


@dataclass(frozen=True, slots=True)
class Regret:
    """One run beside its bound.

    Parameters
    ----------
    run
        Name of its folder.
    policy
        What decided, in words.
    max_parallel
        Most jobs at once.
    samples
        What it processed.
    bound
        What nobody can exceed.
    warnings
        What could make the numbers of the run mislead, as sentences.
    """

    run: str
    policy: str
    max_parallel: int
    samples: float
    bound: UpperBound
    warnings: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """Samples over the bound: at least so much of what anyone could have had; ``None`` where that is nothing."""
        return self.samples / self.bound.samples if self.bound.samples > 0 else None

    @property
    def regret(self) -> float | None:
        """At most this part of the bound was left to gain."""
        return None if self.share is None else 1 - self.share

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "share": self.share, "regret": self.regret, "warnings": list(self.warnings)}


class Regrets(list[Regret]):
    """Runs beside their bounds; its repr is the text of ``bfreplay regret``."""

    def __repr__(self) -> str:
        return render(self)

    def to_frame(self) -> pd.DataFrame:
        """One row a run; ``bound`` is its samples."""
        import pandas as pd

        return pd.DataFrame([{**each.to_json(), "bound": each.bound.samples} for each in self])


def regret(
    runs: Sequence[RunResult | str | Path],
    *,
    effort: Effort | str = Effort.THOROUGH,
    evaluations: int = 350,
    events: str | Path | None = None,
    jobs: str | Path | None = None,
    curves: str | Path | None = None,
    allow_code: bool = False,
    progress: RegretProgress | None = None,
) -> Regrets:
    """Put runs beside an upper bound on what any policy could have processed there.

    Runs on one log with the same jobs, all without end or not, and as many at once have one bound, found once; those
    that decide in rounds or give jobs up have another.

    Parameters
    ----------
    runs
        Run folders, or results.
    effort
        ``"quick"`` is what each run tells already; ``"thorough"`` searches for a lower bound, some minutes for a log of
        weeks. It makes a difference for jobs without end only.
    evaluations
        Most evaluations of one search.
    events, jobs, curves
        Where the runs' inputs are now; by default where they were.
    allow_code
        Import code that the runs and the files name.
    progress
        See ``RegretProgress``.

    Raises
    ------
    InputError
        A folder is no run, its inputs cannot be found or are others, or its jobs came from a source: in another replay
        it would make other jobs. Or it ended with its jobs, its jobs may share nodes, or there is no such effort.
    """
    try:
        chosen = Effort(effort)
    except ValueError as error:
        words = " or ".join(repr(each.value) for each in Effort)
        raise InputError("there is no such effort", column="effort", value=effort, expected=words) from error
    loaded = [run if isinstance(run, RunResult) else RunResult.load(run) for run in runs]
    for run in loaded:
        _refuse(run)
    keys = [_key(run) for run in loaded]
    over = {key for run, key in zip(loaded, keys, strict=True) if run.summary.last_finish_us is not None}
    found: dict[str, UpperBound] = {}
    n_bounds = len(set(keys))
    for run, key in zip(loaded, keys, strict=True):
        if key not in found:
            log, workload = inputs_of(run, events, jobs, curves, allow_code=allow_code)
            search: dict[str, Any] = {"effort": chosen, "evaluations": evaluations, "with_finish": key in over}
            search["progress"] = None if progress is None else partial(progress, len(found), n_bounds)
            found[key] = _bound_of(run, log, workload, **search)
    return Regrets(
        Regret(
            run="in memory" if run.folder is None else run.folder.name,
            policy=policy_words(run.record.config),
            max_parallel=run.record.config.max_parallel,
            samples=run.summary.ledger.samples,
            bound=found[key],
            warnings=tuple(run.warnings),
        )
        for run, key in zip(loaded, keys, strict=True)
    )


def _key(run: RunResult) -> str:
    config, inputs = run.record.config, run.record.inputs
    parts = ("max_parallel", "unlimited_work", "window_start_us", "window_end_us")
    ways = config.decides_in_rounds, _gives_jobs_up(run)
    files = [[source.sha256 for source in each] for each in (inputs.events.files, inputs.jobs.files)]
    known = files if all(files) else run.folder
    return repr(([config[part] for part in parts], ways, known))


def _gives_jobs_up(run: RunResult) -> bool:
    return bool(run.summary.jobs.get(Ending.FAILED, 0))


def _bound_of(run: RunResult, log: NodeEvents, workload: JobSet | JobSource, **search: Any) -> UpperBound:
    """``search`` says how the bound is looked for, by keywords of ``upper_bound``."""
    config = run.record.config
    settings = ReplaySettings(config.max_parallel, config.semantics)
    anchored = jobs_in_window(workload, log, settings, unlimited_work=config.unlimited_work)
    assert isinstance(anchored, JobSet)
    ways: dict[str, Any] = {"decides_in_rounds": config.decides_in_rounds, "gives_jobs_up": _gives_jobs_up(run)}
    return upper_bound(log, anchored, config.max_parallel, **ways, **search)


def _refuse(run: RunResult) -> None:
    """Refuse jobs of a source, and a run that ended when its jobs did: its window holds their work in any case."""
    config, source = run.record.config, run.record.inputs.jobs.source
    if source is not None:
        raise InputError(
            "there is no bound for jobs that a source makes as time goes on: under another policy it makes other ones",
            file=run.folder,
            value=source["name"],
            expected="runs of a plain job set",
        )
    if config.until_done or config.measured is not None:
        raise InputError(
            "the run ended when its jobs were done, so that the bound on what could be processed is what they are",
            file=run.folder, column="until_done", expected="a run on a log with an end of its own",
            fix="compare average completion times and makespans: bfreplay compare runs, or a sweep",
        )  # fmt: skip


_KINDS = {
    "priced": "rescaling paid, the future known",
    "free_rescaling": "free rescaling, the future known",
    "work": "free rescaling, the future known, free to choose among the jobs",
}


def render(found: Sequence[Regret]) -> str:
    """Warnings, a line for each run, best first, and what the bounds take into account."""
    ordered = sorted(found, key=lambda each: -(each.share or 0.0))
    width = max(len("run"), *(len(each.run) for each in found))
    warnings = warning_lines(distinct_warnings([(each.run, each.warnings) for each in found]))
    lines = [f"{'run':<{width}}  {'samples':>10}  {'of the bound':>12}  {'left to gain':>12}  jobs at once, policy"]
    for each in ordered:
        share = "-" if each.share is None else f"{each.share:.2%}"
        # rounded up to a hundredth of a percent: what is told holds
        left = "-" if each.regret is None else f"<= {max(math.ceil(each.regret * 1e4), 0) / 1e4:.2%}"
        numbers = f"{each.samples:>10.4g}  {share:>12}  {left:>12}"
        lines.append(f"{each.run:<{width}}  {numbers}  {each.max_parallel}, {each.policy}")
    bounds = []
    for bound in dict.fromkeys(each.bound for each in found):
        text = f"Bound: {bound.samples:.4g} samples ({_KINDS[bound.kind]})"
        if bound.free_rescaling_samples is not None and bound.kind == "priced":
            text += f"; {bound.free_rescaling_samples:.4g} with free rescaling"
        if bound.earliest_finish_us is not None:
            text += f"; nobody could be done before {iso_utc(bound.earliest_finish_us)}"
        bounds.append(text)
    return paragraphs([warnings, lines, bounds])
