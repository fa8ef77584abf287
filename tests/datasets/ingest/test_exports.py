from pathlib import Path

import pytest

from bfreplay.datasets.ingest.catalogue import READERS, find_reader

PAGE = Path(__file__).resolve().parents[3] / "docs" / "your-log.md"


@pytest.mark.parametrize("name", READERS.names())
def test_every_reader_says_how_to_get_its_log(name):
    reader = find_reader(name)
    assert reader.name == name
    assert reader.title
    assert all(export.command and export.gives for export in reader.exports)
    assert reader.exports


@pytest.mark.parametrize(
    ("name", "positions"), [("slurm", (0, 2, 3)), ("pbs", (0,)), ("flux", (0,)), ("grid-engine", (0, 1))]
)
def test_commands_of_the_page_are_those_of_the_messages(name, positions):
    commands = [find_reader(name).exports[i].command for i in positions]
    text = PAGE.read_text()
    assert [command for command in commands if f"`{command}`" not in text and f"\n{command}\n" not in text] == []
