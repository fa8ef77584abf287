"""Explanations of a saved run: outcomes of its jobs and trials, and the reasons for a decision."""
