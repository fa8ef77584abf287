"""Comparison of finished replays of one log and one set of jobs: hour by hour, job by job, and why."""
