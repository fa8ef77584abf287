"""Memory and time as the log grows: the Summit log once, and ten times in a row.

Run it: ``python benchmarks/bench_log_length.py``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import SUMMIT, heading, table_head, table_row, whole_process

JOBS = [
    "--jobs",
    str(SUMMIT / "ImageNet-imgps-Jbnd-1001J.pkl"),
    "--curves",
    str(SUMMIT / "ImageNet-imgps-JNPs-1001J.pkl"),
]
SECOND = 1_000_000


def repeated(copies: int, path: Path) -> int:
    """Write the log ``copies`` times in a row, every node busy for a minute between two; returns the rows."""
    log = pq.read_table(SUMMIT / "summit-2021-02-node-events.parquet")
    time_us = log["time"].combine_chunks().cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    node = log["node"].combine_chunks()
    index = node.indices.to_numpy()
    idle = log["idle"].combine_chunks().to_numpy(zero_copy_only=False)
    last = np.zeros(len(node.dictionary), dtype=bool)
    last[index] = idle  # the last row of each node wins
    open_nodes = np.flatnonzero(last)
    index = np.concatenate([index, open_nodes]).astype(np.int16)
    idle = np.concatenate([idle, np.zeros(open_nodes.size, dtype=bool)])
    time_us = np.concatenate([time_us, np.full(open_nodes.size, time_us[-1] + SECOND)])
    names = node.dictionary.cast(pa.string())
    schema = pa.schema(
        [("time", pa.timestamp("us")), ("node", pa.dictionary(pa.int16(), pa.string())), ("idle", pa.bool_())]
    )
    span = int(time_us[-1] - time_us[0]) + 60 * SECOND
    with pq.ParquetWriter(path, schema) as writer:
        for copy in range(copies):
            times = pa.array(time_us + copy * span).cast(pa.timestamp("us"))
            nodes = pa.DictionaryArray.from_arrays(pa.array(index), names)
            writer.write_table(pa.table([times, nodes, pa.array(idle)], schema=schema))
    return copies * len(index)


def main() -> None:
    """Print one table."""
    print(heading("Log length: 10 jobs at once, unlimited work, exact decisions"))
    table_head("log", "transitions", "wall s", "peak MB")
    with tempfile.TemporaryDirectory() as folder:
        for copies in (1, 10):
            path = Path(folder) / f"log{copies}.parquet"
            rows = repeated(copies, path)
            arguments = ["replay", str(path), *JOBS, "--unlimited-work", "--force", "--out", str(Path(folder) / "run")]
            wall, _, peak = whole_process(arguments, runs=1, warm_up=copies == 1)[0]
            table_row(f"Summit x {copies}", f"{rows:,}", f"{wall:.1f}", f"{peak:.0f}")


if __name__ == "__main__":
    main()
