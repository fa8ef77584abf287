"""Parity: recorded decisions and runs of the published systems, repeated here, and how many of them agree."""
