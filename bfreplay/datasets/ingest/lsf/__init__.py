"""IBM Spectrum LSF: lsb.acct and lsb.events."""
