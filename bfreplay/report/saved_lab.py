"""A saved comparison of formulations, as pictures read it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bfreplay.errors import InputError

SCHEMA = "bfreplay formulation lab, version 1"
"""Of the folders that can be read."""

EXACT = "exact"
"""Name of the exact solver among the pairs."""


@dataclass(frozen=True, slots=True)
class SavedLab:
    """Record and tables of a lab folder.

    Parameters
    ----------
    record
        Contents of ``lab.json``.
    summary, profile, time_by_size
        As ``bfreplay compare formulations`` wrote them.
    """

    record: dict[str, Any]
    summary: pa.Table
    profile: pa.Table
    time_by_size: pa.Table

    @classmethod
    def read(cls, folder: Path) -> SavedLab:
        """Read a lab folder.

        Raises
        ------
        InputError
            It is no lab folder, or one of another schema version.
        """
        try:
            record = json.loads((folder / "lab.json").read_text(encoding="utf-8"))
            found = record["schema"]
            if found == SCHEMA:
                tables = [pq.read_table(folder / f"{name}.parquet") for name in ("summary", "profile", "time_by_size")]
                return cls(record, *tables)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                "this is not a lab folder", file=folder, value=str(error), expected="a folder with lab.json",
                fix="give the folder that 'bfreplay compare formulations --out' wrote",
            ) from error  # fmt: skip
        raise InputError(
            "the lab folder has another schema version", file=folder / "lab.json", column="schema", value=found,
            expected=SCHEMA, fix="compare again with this version of bfreplay",
        )  # fmt: skip
