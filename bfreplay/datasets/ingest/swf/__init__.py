"""Standard Workload Format: the logs of the Parallel Workloads Archive, and its form with node ids."""
