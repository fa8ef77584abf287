"""The three real logs that policies are compared on, and the published job sets."""

from __future__ import annotations

import tempfile
from pathlib import Path

from measure import SHARED, SUMMIT

from bfreplay import JobSet, NodeEvents, ingest, load_events, load_jobs, write_events

JOB_SETS = {"HPO": "hps-shufflenet-{}-1000J.pkl", "ImageNet": "ImageNet-imgps-{}-1001J.pkl"}
CURIE_DAYS = ("2012-06-04T00:00:00", "2012-06-09T00:00:00")
"""Five of CEA-Curie's 241 days."""


def real_logs() -> dict[str, NodeEvents]:
    """Summit's two weeks, pozidriv's two days, five days of CEA-Curie; the last two read from their accounting logs."""
    logs = SHARED / "data" / "logs"
    return {
        "Summit": load_events(SUMMIT / "summit-2021-02-node-events.parquet"),
        "pozidriv": _ingested(logs / "xdmod-pozidriv-sacct.psv.gz"),
        "CEA-Curie": _ingested(logs / "CEA-Curie-2011-2.1-cln.swf.gz").between(*CURIE_DAYS),
    }


def _ingested(file: Path) -> NodeEvents:
    """The events of an accounting log, from a Parquet file: rows computed anew by each pass would cost each run."""
    kept = Path(tempfile.mkdtemp(prefix="bfreplay-")) / "events.parquet"
    write_events(ingest([file])[0], kept)
    return load_events(kept)


def published_jobs(name: str) -> JobSet:
    """One of ``JOB_SETS``."""
    return load_jobs(*(SUMMIT / JOB_SETS[name].format(kind) for kind in ("Jbnd", "JNPs")))
