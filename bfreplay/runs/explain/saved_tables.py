"""Tables of a saved run in the form that explanations read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bfreplay.checks import near_name
from bfreplay.errors import InputError
from bfreplay.runs.run_result import RunResult

if TYPE_CHECKING:
    import pandas as pd

NODE_US_PER_HOUR = 3_600_000_000
NODE_TIME = ("useful", "rescaling", "preempted", "stalled")
"""Labels of the node time that a job held, in the order of the ledger."""
NO_MODEL = "(no model)"


def jobs_frame(run: RunResult) -> pd.DataFrame:
    """Return the table of jobs, with statuses as text."""
    frame = run.jobs.copy()
    frame["status"] = frame["status"].astype(str)
    return frame


def reports_frame(run: RunResult) -> pd.DataFrame | None:
    """Return the reports of jobs to their source, in order of time; ``None`` for a run of a plain job set."""
    return run.frame("reports") if run.record.inputs.jobs.of_source else None


def higher_is_better(run: RunResult) -> bool | None:
    """Return whether a larger score is better; ``None`` for a run of a plain job set."""
    jobs = run.record.inputs.jobs
    return jobs.higher_is_better if jobs.of_source else None


def microseconds(time: Any) -> int | None:
    """Return a time of a data frame in microseconds since the epoch; ``None`` for a null."""
    if time is None or time != time:
        return None
    return int(time.to_datetime64().astype("datetime64[us]").astype(np.int64))  # in ns, as time.value, 2262 is the end


def model_label(model: object) -> str:
    """Return the name of a model, or ``NO_MODEL``."""
    return model if isinstance(model, str) and model else NO_MODEL


def refuse_unknown_job(run: RunResult, job: str) -> None:
    """Raise ``InputError`` unless the run has this job; the message has the nearest name."""
    names = run.table("jobs")["job"].to_pylist()
    if job in names:
        return
    lower = {name.lower(): name for name in reversed(names)}
    near = near_name(job, lower)
    some = ", ".join(names[:3]) + (f", ... ({len(names):,} jobs)" if len(names) > 3 else "")
    raise InputError(
        "the run has no such job",
        file=run.folder,
        column="job",
        value=job,
        expected=f"one of {some}" if names else "a run with jobs",
        fix=None if near is None else f"did you mean {lower[near]!r}?",
    )


def relative_origin_us(run: RunResult) -> int | None:
    """Return the origin of the times shown in a relative log: the start of the window; ``None`` with a calendar."""
    return run.record.config.window_start_us if run.record.inputs.is_relative else None
