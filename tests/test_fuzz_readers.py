"""The script that fuzzes the readers works on its seeds; atheris itself is not needed for that."""

import importlib.util
from pathlib import Path

import pytest

from bfreplay.datasets.ingest import catalogue
from tests.datasets.ingest.small_logs_of_formats import SMALL_LOGS

SCRIPT = Path(__file__).resolve().parents[1] / "fuzz/readers.py"


@pytest.fixture(scope="module")
def fuzz():
    specification = importlib.util.spec_from_file_location("fuzz_readers", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("reader", catalogue.READERS.names())
def test_every_reader_has_seeds_that_its_target_reads(fuzz, reader, tmp_path, monkeypatch):
    seeds = fuzz.seeds_of(reader)
    assert len(seeds) == sum(log.reader == reader for log in SMALL_LOGS.values()) > 0
    target = fuzz.target_of(reader, tmp_path)
    for data in (*seeds, b"", b"\x00\xff", seeds[0][:-200], *fuzz.HOSTILE):
        target(data)
    read = []
    monkeypatch.setattr("bfreplay.datasets.ingest.read_log.build_events", lambda *given: read.append(given) or 1)
    with pytest.raises(AttributeError):
        target(seeds[0])  # what is no error of bfreplay's is not passed over
    assert len(read) == 1
