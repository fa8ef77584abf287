"""A log whose nodes are said to be of some type."""

from __future__ import annotations

import pytest

from bfreplay.datasets import load_events
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.datasets.log.events import with_node_types
from bfreplay.errors import InputError

EVENTS = """time,node,idle
2024-05-01T00:00:00,n1,true
2024-05-01T00:00:00,n2,true
2024-05-01T01:00:00,n2,false
"""


@pytest.fixture
def log(tmp_path):
    (tmp_path / "events.csv").write_text(EVENTS)
    return load_events(tmp_path / "events.csv")


def test_nodes_are_of_the_types_that_are_said_and_the_log_itself_stays_as_it_was(log):
    typed = with_node_types(log, {"v100": ["n2"], "k80": ["n1"]})
    assert typed.node_types.names == ("v100", "k80")
    assert typed.node_types.of_node.tolist() == [1, 0]
    assert typed.metadata.to_json()["node_types"] == {"v100": ["n2"], "k80": ["n1"]}
    assert typed.sources == log.sources
    assert [batch.node.tolist() for batch in typed.batches()] == [batch.node.tolist() for batch in log.batches()]
    assert not log.node_types.has_type_names


def test_nodes_without_a_type_and_logs_that_have_types_are_refused(log):
    with pytest.raises(InputError, match="node 'n2' has no type"):
        with_node_types(log, {"v100": ["n1"]})
    with pytest.raises(InputError, match="has node types already"):
        with_node_types(fixed_cluster("v100=2"), {"k80": ["v100-000", "v100-001"]})
