"""bfreplay: replay batch-scheduler logs into an exact allocator of elastic training jobs."""

__version__ = "0.1.0"
