"""Logs from and to files: Parquet and CSV."""
