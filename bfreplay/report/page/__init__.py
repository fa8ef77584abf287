"""The report: one self-contained HTML page about one run, or about several runs compared."""
