"""Tables of jobs of any make (CSV, TSV, Parquet), with a mapping of what each column is."""

from bfreplay.datasets.scheduler_logs.table.reader import TableReader

__all__ = ["TableReader"]
