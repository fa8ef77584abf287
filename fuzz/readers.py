"""Coverage-guided fuzzing of the readers of scheduler logs, with atheris.

Run, after ``pip install atheris`` (no dependency of bfreplay), from the repository's root::

    python fuzz/readers.py slurm -max_total_time=60

The first argument is a reader (slurm, pbs, lsf, grid-engine, swf, cobalt, table, flux, batsim, snapshots); what follows
goes to libFuzzer. What it tries are the bytes of one file, read and made into events. That may succeed or end in a
``BfreplayError``; anything else is a finding, whose input libFuzzer leaves in the working folder as ``crash-...``. To
look at one again::

    python fuzz/readers.py slurm crash-...

It starts from the small logs of tests/datasets/ingest/small_logs_of_formats.py and from a few hostile files, in
a corpus of its own that is removed afterwards unless a folder is given.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USAGE = 2
HOSTILE = (
    b"PK\x03\x04\x14\x00",
    b"PK\x05\x06" + bytes(18),
    "JobID|NodeList\n".encode("utf-16"),
    b"%PDF-1.7\n",
    b"[2024-05-01T00:00:01.123] slurmctld started\n",
    gzip.compress(b"x" * (1 << 25)),
    b"{" * 2_000,
    b"[" * 2_000,
    b"\x1b[31m\xed\xa0\x80|n[1-99999999999]\n",
    b"n" + b"[1]" * 2_000 + b"\n",
)
"""Starts that every reader is given besides its own: files of other kinds, and claims of more than there is."""


def seeds_of(reader: str) -> list[bytes]:
    """Contents of the small valid logs of a reader's formats."""
    from tests.datasets.ingest.small_logs_of_formats import SMALL_LOGS

    return [log.text.encode() for log in SMALL_LOGS.values() if log.reader == reader]


def target_of(reader: str, folder: Path) -> Callable[[bytes], None]:
    """Return what takes the bytes of a file of ``reader``, and lets nothing but a ``BfreplayError`` pass silently."""
    from bfreplay.datasets.ingest.catalogue import find_reader
    from bfreplay.datasets.ingest.read_log import read_log
    from bfreplay.datasets.ingest.reader import ReadOptions
    from bfreplay.errors import BfreplayError
    from tests.datasets.ingest.small_logs_of_formats import SMALL_LOGS

    log = next(log for log in SMALL_LOGS.values() if log.reader == reader)
    reservations = "reserved" if "reservations" in find_reader(reader).options else "idle"
    options = ReadOptions(timezone="Europe/Paris", dst_fold="earlier", n_nodes=6, reservations=reservations)
    path = folder / "log"

    def target(data: bytes) -> None:
        path.write_bytes(data)
        try:
            built = read_log([path], reader, options).build(log.rules)
            for batch in built.events.batches():
                assert (batch.node >= 0).all()
        except BfreplayError as error:
            # a message that cannot be shown is a finding too
            str(error).encode("utf-8", "backslashreplace")

    return target


def main() -> int:
    """Fuzz the reader that the command line names."""
    sys.path.insert(0, str(ROOT))
    import atheris

    if len(sys.argv) < USAGE or not seeds_of(sys.argv[1]):
        print(__doc__, file=sys.stderr)
        return USAGE
    reader = sys.argv.pop(1)
    with atheris.instrument_imports(include=["bfreplay.datasets"]):
        from bfreplay.datasets.ingest.catalogue import find_reader

        find_reader(reader)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = folder / "corpus"
        corpus.mkdir()
        for i, seed in enumerate([*seeds_of(reader), *HOSTILE]):
            (corpus / f"seed-{i}").write_bytes(seed)
        has_corpus = any(not argument.startswith("-") for argument in sys.argv[1:])
        target = target_of(reader, folder)
        for seed in seeds_of(reader):
            target(seed)  # compile what is compiled before time is kept
        # memory is that of the compiler and the readers' libraries; a log of a few KB must not take gigabytes more
        defaults = ["-rss_limit_mb=3000", "-timeout=20", "-max_len=20000"]
        atheris.Setup([sys.argv[0], *defaults, *sys.argv[1:], *([] if has_corpus else [str(corpus)])], target)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
