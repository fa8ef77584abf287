"""Batsim: output of the simulator, and the workload that it read."""
