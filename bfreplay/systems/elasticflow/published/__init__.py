"""The published schedulers of ElasticFlow, repeated exactly."""
