"""Slurm: accounting (``sacct``, text and JSON), node events, reservations, and samples of node states."""
