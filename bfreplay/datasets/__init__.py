"""Logs of idle nodes and job sets: read, check, write. Its ending selects the reader of a file."""

from bfreplay.datasets.jobs.load import load_jobs, write_jobs
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.load import load_events, write_events
from bfreplay.datasets.log.metadata import EventsMetadata, SourceFile
from bfreplay.datasets.log.states import EventBatch, NodeState
from bfreplay.datasets.published.matrix import read_published_events
from bfreplay.datasets.published.pickled_jobs import read_published_jobs

__all__ = [
    "EventBatch",
    "EventsMetadata",
    "NodeEvents",
    "NodeState",
    "SourceFile",
    "load_events",
    "load_jobs",
    "read_published_events",
    "read_published_jobs",
    "write_events",
    "write_jobs",
]
