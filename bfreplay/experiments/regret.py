"""Regret: distance of runs from an upper bound, and its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bfreplay.bounds import Effort, UpperBound, upper_bound
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.times import US, iso_utc
from bfreplay.errors import InputError
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.runs.run_checks import jobs_in_window
from bfreplay.runs.run_warnings import distinct_warnings, warning_lines
from bfreplay.runs.saved_inputs import inputs_of
from bfreplay.runs.summary_text import policy_words
from bfreplay.wording import amount, paragraphs, percent, share_at_least
from bfreplay.workload import Ending, JobSet

if TYPE_CHECKING:
    import pandas as pd

_UP = Context(prec=3, rounding=ROUND_CEILING)
_ROUNDING = 1e-5

RegretProgress = Callable[[int, int, int, int], None]
"""Called with (bounds found, bounds to find, evaluations of the present search, most evaluations)."""


@dataclass(frozen=True, slots=True)
class Regret:
    """One run beside its bound.

    Parameters
    ----------
    run
        Name of its folder; its path if another run's folder has the same name.
    policy
        Policy in words.
    max_parallel
        Most jobs at once.
    samples
        Samples processed.
    bound
        Upper bound.
    warnings
        Warnings of the run, as sentences.
    costs
        What changes of the jobs cost beside the rescale costs that a bound may know; empty for nothing.
    """

    run: str
    policy: str
    max_parallel: int
    samples: float
    bound: UpperBound
    warnings: tuple[str, ...] = ()
    costs: str = ""

    @property
    def share(self) -> float | None:
        """Samples over the bound; ``None`` for a bound of 0."""
        return self.samples / self.bound.samples if self.bound.samples > 0 else None

    @property
    def regret(self) -> float | None:
        """Largest possible gain, as a share of the bound."""
        return None if self.share is None else 1 - self.share

    def to_json(self) -> dict[str, Any]:
        """Return a JSON document."""
        document = {**asdict(self), "share": self.share, "regret": self.regret, "warnings": list(self.warnings)}
        if not self.costs:
            del document["costs"]
        return document


class Regrets(list[Regret]):
    """Runs beside their bounds; its repr is the text of ``bfreplay regret``."""

    def __repr__(self) -> str:
        return render(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a run; ``bound`` is its samples."""
        import pandas as pd

        return pd.DataFrame([{**run_regret.to_json(), "bound": run_regret.bound.samples} for run_regret in self])


def regret(
    runs: Sequence[RunResult | str | Path],
    *,
    effort: Effort | Literal["quick", "thorough"] = Effort.THOROUGH,
    evaluations: int = 350,
    events: NodeEvents | str | Path | None = None,
    jobs: JobSet | str | Path | None = None,
    curves: str | Path | None = None,
    allow_code: bool = False,
    progress: RegretProgress | None = None,
) -> Regrets:
    """Compare runs with an upper bound on the samples of any policy.

    Runs on one log with the same jobs, work and number at once share a bound, found once; runs that decide in rounds or
    give jobs up have another.

    Parameters
    ----------
    runs
        Run folders, or results.
    effort
        ``"quick"`` for the bound in each run; ``"thorough"`` to search for a lower one, about a minute for a log of
        weeks. They differ for jobs with unlimited work only.
    evaluations
        Most evaluations of one search.
    events, jobs, curves
        The inputs, or their paths, if they have moved or the run was given objects.
    allow_code
        Import code that the runs and the files name.
    progress
        See ``RegretProgress``.

    Raises
    ------
    InputError
        A folder is no run; its inputs are missing or have changed; its jobs came from a source, which may make other
        jobs in another replay; it ended with its jobs; its jobs may share nodes; or unknown effort.
    """
    try:
        chosen_effort = Effort(effort)
    except ValueError as error:
        effort_words = " or ".join(repr(effort_level.value) for effort_level in Effort)
        raise InputError("unknown effort", column="effort", value=effort, expected=effort_words) from error
    results = [run if isinstance(run, RunResult) else RunResult.load(run) for run in runs]
    for run in results:
        _refuse(run)
    keys = [_key(run) for run in results]
    finished_keys = {key for run, key in zip(results, keys, strict=True) if run.summary.last_finish_us is not None}
    bound_of_key: dict[str, UpperBound] = {}
    n_bounds = len(set(keys))
    for run, key in zip(results, keys, strict=True):
        if key not in bound_of_key:
            config = run.record.config
            log, workload = inputs_of(run, events, jobs, curves, allow_code=allow_code)
            settings = ReplaySettings(config.max_parallel, config.semantics)
            job_set = jobs_in_window(workload, log, settings, unlimited_work=config.unlimited_work)
            assert isinstance(job_set, JobSet)
            bound_of_key[key] = upper_bound(
                log,
                job_set,
                config.max_parallel,
                decides_in_rounds=config.frees_rescaling,
                gives_jobs_up=_gives_jobs_up(run),
                effort=chosen_effort,
                evaluations=evaluations,
                with_finish=key in finished_keys,
                progress=None if progress is None else partial(progress, len(bound_of_key), n_bounds),
            )
    names = _names(results)
    return Regrets(
        Regret(
            run=run_name,
            policy=policy_words(run.record.config),
            max_parallel=run.record.config.max_parallel,
            samples=run.summary.ledger.samples,
            bound=bound_of_key[key],
            warnings=tuple(run.warnings),
            costs=run.record.inputs.jobs.costs,
        )
        for run_name, run, key in zip(names, results, keys, strict=True)
    )


def _names(runs: Sequence[RunResult]) -> list[str]:
    """Return the names of the runs' folders; the paths as given where two folders have the same name."""
    names = ["in memory" if run.folder is None else run.folder.name for run in runs]
    ambiguous_names = {folder_name for folder_name, n_runs in Counter(names).items() if n_runs > 1}
    return [
        folder_name if run.folder is None or folder_name not in ambiguous_names else str(run.folder)
        for folder_name, run in zip(names, runs, strict=True)
    ]


def _key(run: RunResult) -> str:
    config, inputs = run.record.config, run.record.inputs
    parts = ("max_parallel", "unlimited_work", "window_start_us", "window_end_us")
    ways = config.frees_rescaling, _gives_jobs_up(run)
    files = [[source.sha256 for source in source_files] for source_files in (inputs.events.files, inputs.jobs.files)]
    identity = files if all(files) else run.folder
    return repr(([config[setting] for setting in parts], ways, identity))


def _gives_jobs_up(run: RunResult) -> bool:
    return bool(run.summary.jobs.get(Ending.FAILED, 0))


def _refuse(run: RunResult) -> None:
    """Refuse jobs of a source, and a run that ended with its jobs: any policy does the same work."""
    config, job_source = run.record.config, run.record.inputs.jobs.source
    if job_source is not None:
        raise InputError(
            "there is no upper bound for a job source: under another policy it may make other jobs",
            file=run.folder,
            value=job_source["name"],
            expected="runs of a plain job set",
        )
    if config.until_done or config.measured is not None:
        raise InputError(
            "the run ended when its jobs were done, so that the upper bound is their work",
            file=run.folder,
            column="until_done",
            expected="a run on a log with a fixed end",
            fix="compare average completion times and makespans: bfreplay compare runs, or a sweep",
        )


_KINDS = {
    "priced": "rescaling paid, the future known",
    "free_rescaling": "free rescaling, the future known",
    "work": "free rescaling, the future known, free choice among the jobs",
}


def render(regrets: Sequence[Regret]) -> str:
    """Return the regrets as text: warnings, a line for each run, best first, and the bounds."""
    sorted_regrets = sorted(regrets, key=lambda run_regret: -(run_regret.share or 0.0))
    width = max(len("run"), *(len(run_regret.run) for run_regret in regrets))
    warnings = warning_lines(distinct_warnings([(run_regret.run, run_regret.warnings) for run_regret in regrets]))
    lines = [f"{'run':<{width}}  {'samples':>10}  {'of the bound':>12}  {'left to gain':>12}  jobs at once, policy"]
    for run_regret in sorted_regrets:
        share = "-" if run_regret.share is None else share_at_least(run_regret.share)
        # rounded up, so that the statement holds
        regret_text = "-" if run_regret.regret is None else _at_most(run_regret.regret)
        numbers = f"{amount(run_regret.samples):>10}  {share:>12}  {regret_text:>12}"
        lines.append(f"{run_regret.run:<{width}}  {numbers}  {run_regret.max_parallel}, {run_regret.policy}")
    bounds, kinds = [], dict.fromkeys(run_regret.bound for run_regret in sorted_regrets)
    for bound in kinds:
        run_names = (
            ""
            if len(kinds) == 1
            else f" of {', '.join(run_regret.run for run_regret in sorted_regrets if run_regret.bound == bound)}"
        )
        has_costs = any(run_regret.costs for run_regret in sorted_regrets if run_regret.bound == bound)
        kind_words = _KINDS[bound.kind] + (", no starts, pauses or lost work known" if has_costs else "")
        text = f"Bound{run_names}: {amount(bound.samples)} samples ({kind_words})"
        if bound.free_rescaling_samples is not None and bound.kind == "priced":
            text += f"; {amount(bound.free_rescaling_samples)} with free rescaling"
        if bound.earliest_finish_us is not None:
            text += f"; no policy can finish before {iso_utc(bound.earliest_finish_us // US * US)}"
        bounds.append(text)
    return paragraphs([warnings, lines, bounds])


def _at_most(share: float) -> str:
    """Return a share rounded up, so that the statement holds; above 0 at least 0.001 %: bounds have rounding errors."""
    return f"<= {percent(max(float(_UP.create_decimal(round(share, 9))), _ROUNDING) if share > 0 else 0)}"
