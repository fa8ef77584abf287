"""What became of the jobs of each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfreplay.answers.saved import model_label
from bfreplay.replay.job_outcomes import STATUSES

if TYPE_CHECKING:
    import pandas as pd

_TIMES = {
    "queue_median_s": ("queue_s", 0.5),
    "queue_p95_s": ("queue_s", 0.95),
    "completion_median_s": ("completion_s", 0.5),
    "completion_p95_s": ("completion_s", 0.95),
}
"""Column of ``job_answers`` and quantile of each."""


def model_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """Sum up the jobs of each model.

    Parameters
    ----------
    answers
        Of all jobs: ``job_answers``.

    Returns
    -------
    DataFrame
        One row a model, in order of its first job: ``model``, ``n_jobs``, a column for each of `STATUSES` that counts
        jobs; ``queue_median_s``, ``queue_p95_s``, ``completion_median_s`` and ``completion_p95_s`` of the jobs that
        started, and finished; ``samples``; and node-hours as ``job_answers`` has them.
    """
    import pandas as pd

    node_hours = [column for column in answers.columns if column.endswith("_node_hours")]
    rows = []
    for label, of_model in answers.groupby(answers["model"].map(model_label), sort=False):
        rows.append(
            {
                "model": label,
                "n_jobs": len(of_model),
                **{status: int((of_model["status"] == status).sum()) for status in STATUSES},
                **{name: of_model[column].quantile(share) for name, (column, share) in _TIMES.items()},
                "samples": of_model["done_samples"].sum(),
                **{column: of_model[column].sum() for column in node_hours},
            }
        )
    columns = ["model", "n_jobs", *STATUSES, *_TIMES, "samples", *node_hours]
    return pd.DataFrame(rows, columns=columns)  # named, as a run may have no job
