"""Job sets and curves from and to files: CSV, Parquet, TOML."""
