"""Shockwave's planner: predicts remaining times of jobs, and plans the jobs of each of the next rounds."""
