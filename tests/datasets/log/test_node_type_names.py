"""Logs that tell node types apart: what is kept of them in memory, in files and in parts, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bfreplay.datasets import EventsMetadata, NodeEvents, NodeState, load_events, write_events
from bfreplay.datasets.log.node_types import ANY_TYPE, NodeTypes
from bfreplay.errors import InputError

MINUTE = 60_000_000
LISTED = ("v100", "p100", "k80")  # not by the alphabet


def _log(node_types=("v100", "k80", "p100", "v100"), metadata=None) -> NodeEvents:
    """Nodes named in another order than the alphabet's: z is a v100, y a k80, x a p100, w a v100."""
    return NodeEvents.from_arrays(
        ["z", "y", "x", "w"],
        [NodeState.IDLE] * 4,
        [MINUTE, 2 * MINUTE],
        [1, 1],
        [NodeState.BUSY, NodeState.IDLE],
        0,
        3 * MINUTE,
        metadata,
        node_types=node_types,
    )


def _listed() -> NodeEvents:
    """The same, with the types in the order of ``LISTED``."""
    by_type = {"v100": ["w", "z"], "p100": ["x"], "k80": ["y"]}
    return _log(None, EventsMetadata(cluster="c", node_types=by_type))


def _types_by_node(events: NodeEvents) -> dict[str, str]:
    types = events.node_types
    return {node: types.names[k] for node, k in zip(events.nodes, types.of_node.tolist(), strict=True)}


BY_NODE = {"w": "v100", "x": "p100", "y": "k80", "z": "v100"}


def test_types_follow_their_nodes_into_the_order_of_names():
    events = _log()
    assert events.nodes == ("w", "x", "y", "z")
    assert _types_by_node(events) == BY_NODE
    assert events.node_types.names == ("v100", "k80", "p100")  # as they first appear
    assert events.node_types.counts == {"v100": 2, "k80": 1, "p100": 1}
    assert events.node_types.has_type_names


def test_a_log_without_types_is_all_of_one():
    types = _log(None).node_types
    assert types.names == (ANY_TYPE,)
    assert types.of_node.tolist() == [0, 0, 0, 0]
    assert not types.has_type_names
    assert "node_types" not in _log(None).metadata.to_json()


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_types_survive_a_file_in_the_order_in_which_they_are_listed(tmp_path, name):
    write_events(_listed(), tmp_path / name)
    again = load_events(tmp_path / name)
    assert _types_by_node(again) == BY_NODE
    assert again.node_types.names == LISTED
    assert again.metadata.cluster == "c"


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_a_part_of_a_log_has_its_types(tmp_path, name):
    part = _listed().between(MINUTE, 2 * MINUTE)
    assert part.node_types.names == LISTED
    write_events(part, tmp_path / name)
    again = load_events(tmp_path / name)
    assert (again.window_start_us, again.window_end_us) == (MINUTE, 2 * MINUTE)
    assert again.node_types.names == LISTED
    assert _types_by_node(again) == BY_NODE


def test_metadata_have_the_types_in_json_and_back():
    metadata = _listed().metadata
    document = json.loads(json.dumps(metadata.to_json()))
    assert list(document["node_types"]) == list(LISTED)
    again = EventsMetadata.from_json(document)
    assert NodeTypes.of(("w", "x", "y", "z"), again.node_types).names == LISTED


@pytest.mark.parametrize(
    ("by_type", "message"),
    [
        ({"v100": ["w", "x", "y"]}, "node 'z' has no type"),
        ({"v100": ["w", "x", "y", "z"], "p100": ["x"]}, "node 'x' of type 'p100' has two types"),
        ({"v100": ["w", "x", "y", "z", "z"]}, "node 'z' of type 'v100' has two types"),
        ({"v100": ["w", "x", "y", "z"], "p100": ["gone"]}, "node 'gone' of type 'p100' is not in the log"),
    ],
)
def test_types_that_do_not_fit_the_nodes_are_refused_by_name(by_type, message):
    with pytest.raises(InputError, match=message):
        _log(None, EventsMetadata(node_types=by_type))


def test_there_is_one_type_for_each_node():
    with pytest.raises(InputError, match="the number of types differs from the number of nodes"):
        _log(("v100", "k80"))


@pytest.mark.parametrize("wrong", [["w", "x"], {"v100": 3}, "v100", {"v100": "wxyz"}, {"v100": [["w"]]}, 7])
def test_types_in_a_file_that_are_none_are_refused_and_not_stumbled_over(wrong):
    document = _listed().metadata.to_json() | {"node_types": wrong}
    with pytest.raises(InputError, match="the node types of the log are not lists of nodes"):
        NodeTypes.of(("w", "x", "y", "z"), EventsMetadata.from_json(document).node_types)


def test_every_type_has_its_number():
    types = NodeTypes.of(("a", "b"), {"k80": ["b"], "v100": ["a"]})
    assert types.names == ("k80", "v100")
    assert np.array_equal(types.of_node, [1, 0])
