"""Parity: recorded decisions and runs of the published systems, repeated and compared."""
