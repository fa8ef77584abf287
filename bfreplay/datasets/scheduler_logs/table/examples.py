"""What messages and ``--how`` show: a table that works, and commands that make one."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.datasets.scheduler_logs.reader import Export
from bfreplay.datasets.scheduler_logs.table.time_formats import READABLE_TIMES

SMALLEST_TABLE = (
    "job,start,end,nodes",
    "101,2024-10-01T01:32:06Z,2024-10-01T02:02:41Z,cn[1-4]",
    "102,2024-10-01T02:00:00Z,,cn5",
)
"""A table of jobs that needs no option; the second job is still running."""

IN_UTC = "times such as 2024-10-01T01:32:06Z"
PARQUET_IN_UTC = (
    "duckdb -c \"COPY (SELECT * REPLACE (start_time AT TIME ZONE 'Europe/Paris' AS start_time, "
    "end_time AT TIME ZONE 'Europe/Paris' AS end_time) FROM 'jobs.parquet') TO 'jobs-utc.parquet'\""
)
DATABASE_IN_UTC = (
    "duckdb site.db \"COPY (SELECT job_id, start_time AT TIME ZONE 'Europe/Paris' AS start_time, "
    "end_time AT TIME ZONE 'Europe/Paris' AS end_time, num_nodes, nodelist FROM jobs) TO 'jobs.parquet'\""
)
JOIN = (
    "duckdb -c \"COPY (SELECT allocation_id, begin_time, end_time, num_nodes, string_agg(node_name, ' ') AS nodelist "
    "FROM 'csm_allocation_history.csv' JOIN 'csm_allocation_node_history.csv' USING (allocation_id) "
    "GROUP BY ALL) TO 'jobs.parquet'\""
)
EXPORTS: Sequence[Export] = (
    Export(
        "\n".join(["cat > jobs.csv <<END", *SMALLEST_TABLE, "END"]),
        f"the smallest table that works (no end: still running). Times: {READABLE_TIMES}",
    ),
    Export(DATABASE_IN_UTC, "a table of jobs in a database, its local times (here of Paris) as times in UTC"),
    Export(PARQUET_IN_UTC, "the same of a Parquet file"),
    Export(JOIN, "LSF with CSM: each allocation with the nodes it had"),
)


def works(*, is_parquet: bool) -> str:
    """End of a ``fix``: what works, for owners of Parquet files or of CSV."""
    if is_parquet:
        return "an export that works: " + DATABASE_IN_UTC
    return "a table that works:" + "".join(f"\n            {line}" for line in SMALLEST_TABLE)
