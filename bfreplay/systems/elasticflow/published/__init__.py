"""The published schedulers of ElasticFlow, as they are."""
