"""The kinds of result folders there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ResultKind:
    """How folders of one kind are known, and told of in messages.

    Parameters
    ----------
    word
        ``"run"``, in messages.
    record_file
        The JSON document that makes a folder one of this kind; its ``schema_version`` says how to read the rest.
    schema_version
        The version that is written.
    made_by
        The command that makes such a folder.
    more_documents
        Other JSON documents that it must hold.
    hints
        Why a table may be missing, by its name.
    also_reads
        Earlier schema versions that are read as well.
    """

    word: str
    record_file: str
    schema_version: int
    made_by: str
    more_documents: tuple[str, ...] = ()
    hints: Mapping[str, str] = field(default_factory=dict)
    also_reads: tuple[int, ...] = ()


RUN = ResultKind(
    word="run",
    record_file="run.json",
    schema_version=2,
    also_reads=(1,),  # without checksums
    made_by="bfreplay replay --out",
    more_documents=("session.json",),
    hints={"nodes": "nodes are recorded only with record_nodes=True (--record-nodes)"},
)
"""One finished replay."""

LAB = ResultKind(
    word="lab",
    record_file="lab.json",
    schema_version=2,
    also_reads=(1,),  # without checksums
    made_by="bfreplay compare formulations --out",
)
"""One comparison of formulations."""

COMPARISON = ResultKind(
    word="comparison",
    record_file="comparison.json",
    schema_version=2,
    also_reads=(1,),  # without checksums
    made_by="bfreplay compare runs --out",
)
"""Paired differences of finished replays."""

SWEEP = ResultKind(
    word="sweep",
    record_file="sweep.json",
    schema_version=1,
    made_by="bfreplay sweep --out",
)
"""Many replays, and one table of their results."""

TUNING = ResultKind(
    word="tuning",
    record_file="tuning.json",
    schema_version=1,
    made_by="bfreplay tune --out",
)
"""A recommendation, and the sweep that it rests on."""
