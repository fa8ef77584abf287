"""Flux: jobs of an instance, and its resource eventlog."""
