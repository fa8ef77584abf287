"""Answers about a saved run: whether it is whole, what became of its jobs and trials, and why a decision was made."""
