"""Answers about a saved run: what became of its jobs, models and trials, and why a decision was made."""
