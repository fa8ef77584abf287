"""Tables of jobs in any layout (CSV, TSV, Parquet), with a mapping of columns to roles."""
