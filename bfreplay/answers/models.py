"""What became of the jobs of each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfreplay.answers.saved import model_label

if TYPE_CHECKING:
    import pandas as pd

STATUSES = ("finished", "pruned", "failed", "stopped", "paused", "running", "waiting", "queued", "not_submitted")
"""In the order in which tables show them."""


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
                "queue_median_s": of_model["queue_s"].quantile(0.5),
                "queue_p95_s": of_model["queue_s"].quantile(0.95),
                "completion_median_s": of_model["completion_s"].quantile(0.5),
                "completion_p95_s": of_model["completion_s"].quantile(0.95),
                "samples": of_model["done_samples"].sum(),
                **{column: of_model[column].sum() for column in node_hours},
            }
        )
    return pd.DataFrame(rows)
