"""The neutral log: node states over a window of time, read in checked batches, from and to files."""
