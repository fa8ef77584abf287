"""What share of time each job gets on each node type: Gavel's policies as optimisation problems over arrays."""
