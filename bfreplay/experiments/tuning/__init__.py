"""Tuning of T_fwd and of the number of jobs at once on one part of a log, with validation on the other."""
