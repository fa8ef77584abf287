"""Shockwave's planner: predicts how long jobs still take, and plans who runs in each of the next rounds."""
