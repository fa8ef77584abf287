"""Shares of time of each job on each node type: Gavel's policies as optimisation problems over arrays."""
