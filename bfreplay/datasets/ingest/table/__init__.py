"""Tables of jobs of any make (CSV, TSV, Parquet), with a mapping of what each column is."""
