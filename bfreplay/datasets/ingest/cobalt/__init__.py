"""Cobalt, and the job tables that the Argonne Leadership Computing Facility (ALCF) publishes."""
