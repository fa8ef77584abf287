"""ElasticFlow's throughput tables: a folder with a CSV file for each model, and made-up ones to try it without."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bfreplay import checks
from bfreplay.datasets.jobs.tables import read_csv_table
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.named_inputs import is_bundled
from bfreplay.errors import InputError
from bfreplay.scalability import TabulatedCurve

BATCH_SIZE = "global_batch_size"

_FORM = "a folder with a file MODEL.csv for each model: global_batch_size,1,2,4,8,..., rates in iterations/s"
_NOT_MEASURED = ("", "nan", "0")
_MADE_UP = {  # seconds of one GPU per sample, per iteration, and per doubling of the GPUs
    "resnet50": (2.0e-3, 0.010, 0.006),
    "vgg16": (2.8e-3, 0.012, 0.008),
    "inception3": (3.0e-3, 0.020, 0.009),
    "gpt2": (9.0e-4, 0.018, 0.007),
    "bert": (2.1e-3, 0.028, 0.012),
    "deepspeech2": (9.5e-3, 0.020, 0.010),
}
WORKLOAD = (
    *((model, size) for model in ("resnet50", "vgg16") for size in (64, 128, 256)),
    ("inception3", 64),
    ("inception3", 128),
    ("gpt2", 128),
    ("gpt2", 256),
    ("bert", 128),
    ("bert", 64),
    ("deepspeech2", 64),
    ("deepspeech2", 32),
)
"""Models and global batch sizes of the published generator of traces."""

_COUNTS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Throughputs:
    """Measured rates, iterations/s of the whole job.

    Parameters
    ----------
    rates
        Rates by number of GPUs, in increasing order, of each ``(model, global batch size)``; without numbers that the
        job cannot use.
    folder, sources
        Path, and digests of the files; ``None`` and empty for tables made in memory.
    """

    rates: Mapping[tuple[str, int], Mapping[int, float]]
    folder: Path | None = None
    sources: tuple[SourceFile, ...] = ()

    def __repr__(self) -> str:
        return f"<Throughputs: {len(self.rates)} models and batch sizes>"

    def of(self, model: str, batch_size: int) -> Mapping[int, float]:
        """Return the rates by number of GPUs.

        Raises
        ------
        InputError
            Not measured.
        """
        rate_of_gpus = self.rates.get((model, batch_size))
        if rate_of_gpus is None:
            batch_sizes = sorted(size for name, size in self.rates if name == model)
            expected = (
                f"{model} with {batch_sizes}" if batch_sizes else ", ".join(sorted({name for name, _ in self.rates}))
            )
            raise InputError(
                f"the tables have no rate of {model!r} with a global batch of {batch_size}",
                file=self.folder,
                column="model_name, batch_size",
                value=f"{model}, {batch_size}",
                expected=expected,
                fix="measure it and add it to the table of the model, or remove such jobs",
            )
        return rate_of_gpus

    def curve(self, model: str, batch_size: int) -> TabulatedCurve:
        """Return the curve of such a job; zero at numbers of GPUs that were not measured, which it cannot use."""
        points = {0: 0.0}
        for gpus, rate in self.of(model, batch_size).items():
            for neighbour in (gpus - 1, gpus + 1):
                points.setdefault(neighbour, 0.0)
            points[gpus] = rate
        most_gpus = max(gpus for gpus, rate in points.items() if rate > 0)
        nodes = sorted(gpus for gpus in points if gpus <= most_gpus)
        return TabulatedCurve(nodes, [points[gpus] for gpus in nodes], job_model(model, batch_size))


def job_model(model: str, batch_size: int) -> str:
    """Return the model name of jobs: ``"bert (batch size 64)"``."""
    return f"{model} (batch size {batch_size})"


def read_throughputs(folder: str | PathLike[str]) -> Throughputs:
    """Read a folder of tables.

    Parameters
    ----------
    folder
        With a file ``MODEL.csv`` for each model: the column ``global_batch_size``, and one for each number of GPUs;
        cells are iterations/s of the whole job; empty, ``nan`` or ``0`` where the job cannot use this number.

    Raises
    ------
    InputError
        No such folder, or an invalid table; the message names file, row and column.
    """
    directory = Path(folder)
    files = sorted(directory.glob("*.csv")) if directory.is_dir() else []
    if not files:
        raise InputError("the folder has no throughput tables", file=directory, value=str(directory), expected=_FORM)
    rates: dict[tuple[str, int], Mapping[int, float]] = {}
    for file in files:
        table = read_csv_table(file)
        rate_columns = [name for name in table.columns if name != BATCH_SIZE]
        if not rate_columns or len(rate_columns) == len(table.columns):
            raise InputError(
                "this is not a throughput table",
                file=file,
                column=BATCH_SIZE,
                value=", ".join(table.columns),
                expected=_FORM,
            )
        gpus_of_column = {name: _whole(name, file, None, name) for name in rate_columns}
        for row, cells in table.rows:
            batch_size = _whole(str(cells.get(BATCH_SIZE, "")), file, row, BATCH_SIZE)
            rate_of_gpus = {
                gpus_of_column[name]: _rate(str(cells[name]), file, row, name)
                for name in sorted(gpus_of_column, key=gpus_of_column.__getitem__)
                if str(cells.get(name, "")).strip().lower() not in _NOT_MEASURED
            }
            rates[file.stem, batch_size] = {gpus: rate for gpus, rate in rate_of_gpus.items() if rate > 0}
            if not rates[file.stem, batch_size]:
                raise InputError(
                    "a batch size has no rate",
                    file=file,
                    row=row,
                    column=BATCH_SIZE,
                    value=batch_size,
                    expected="iterations/s above 0 for at least one number of GPUs",
                    fix="remove the row",
                )
    return Throughputs(rates, directory, tuple(SourceFile.of(file) for file in files))


def throughputs_of(curves: Path | None, needing_input: str, **details: object) -> Throughputs:
    """Return the tables that a user names; the word ``sample`` stands for made-up ones.

    Raises
    ------
    InputError
        Not given, or as ``read_throughputs``; ``details`` are for the error.
    """
    if curves is None:
        raise InputError(
            f"{needing_input} needs throughput tables",
            **details,  # type: ignore[arg-type]  # names of the error's own parts
            expected=_FORM,
            fix="give the folder as --curves (curves= in Python), or --curves sample for made-up ones",
        )
    return made_up_throughputs() if is_bundled(curves) else read_throughputs(curves)


def made_up_throughputs() -> Throughputs:
    """Return made-up rates of the right order for each model of ``WORKLOAD``, not measured.

    An iteration takes the time of the largest share of the batch, a constant, and the exchange of gradients.
    """
    rates = {}
    for model, batch_size in WORKLOAD:
        sample_s, iteration_s, doubling_s = _MADE_UP[model]
        rates[model, batch_size] = {
            gpus: round(1 / (math.ceil(batch_size / gpus) * sample_s + iteration_s + doubling_s * math.log2(gpus)), 6)
            for gpus in _COUNTS
            if gpus <= batch_size
        }
    digest = hashlib.sha256(repr(sorted(rates.items())).encode()).hexdigest()
    return Throughputs(rates, None, (SourceFile("made-up throughputs of ElasticFlow", digest),))


def _whole(cell: str, file: Path, row: int | str | None, column: str) -> int:
    if not (cell.isascii() and cell.isdigit() and 1 <= int(cell[:12]) <= 10**9):
        raise InputError(
            "this is not a whole number of at least 1", file=file, row=row, column=column, value=cell, expected=_FORM
        )
    return int(cell)


def _rate(cell: str, file: Path, row: int | str, column: str) -> float:
    try:
        rate = checks.decimal(cell)
    except ValueError:
        rate = math.inf
    if not (math.isfinite(rate) and rate >= 0):
        raise InputError(
            "this is not a rate",
            file=file,
            row=row,
            column=column,
            value=cell,
            expected="iterations/s; empty, nan or 0 where the job cannot use this number of GPUs",
        )
    return rate
