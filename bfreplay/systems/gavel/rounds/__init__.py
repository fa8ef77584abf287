"""Rounds: shares of time become assignments of nodes to jobs."""
