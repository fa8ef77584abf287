import pytest

from bfreplay.datasets import NodeState
from bfreplay.datasets.fixed_cluster import HUNDRED_YEARS_US, ClusterSpec, fixed_cluster
from bfreplay.errors import InputError
from tests.datasets.small_logs import rows_of


def test_every_node_is_idle_from_the_start_and_stays_so():
    events = fixed_cluster("v100=2,k80=1", end_us=5_000_000)
    assert (events.window_start_us, events.window_end_us) == (0, 5_000_000)
    assert rows_of(events) == [
        (0, "k80-000", NodeState.IDLE),
        (0, "v100-000", NodeState.IDLE),
        (0, "v100-001", NodeState.IDLE),
    ]


def test_nodes_are_type_by_type_and_types_keep_their_order():
    events = fixed_cluster("v100=36,p100=36,k80=36")
    assert events.nodes[0] == "k80-000"
    assert events.nodes[36:38] == ("p100-000", "p100-001")
    assert events.nodes[-1] == "v100-035"
    assert events.node_types.names == ("v100", "p100", "k80")
    assert events.node_types.of_node.tolist() == [2] * 36 + [1] * 36 + [0] * 36
    assert events.window_end_us == HUNDRED_YEARS_US


def test_where_it_came_from_is_said():
    events = fixed_cluster(" v100 = 4, k80=2 ")
    assert (events.metadata.source_format, events.metadata.time_origin) == ("fixed cluster", "relative")
    assert events.metadata.notes == {"cluster": "v100=4,k80=2"}
    other = fixed_cluster("v100=4,k80=3")
    assert [source.name for source in events.sources] == ["v100=4,k80=2"]
    assert events.sources[0].sha256 != other.sources[0].sha256


def test_numbers_have_as_many_digits_as_they_need():
    events = fixed_cluster("a100-80g=1001")
    assert (events.nodes[0], events.nodes[-1]) == ("a100-80g-0000", "a100-80g-1000")


def test_a_spec_is_read_from_the_text_that_it_writes():
    spec = ClusterSpec((("v100", 4), ("k80", 2)))
    assert spec.text == "v100=4,k80=2"
    assert ClusterSpec.parse(spec.text) == spec
    assert spec.n_nodes == 6
    assert fixed_cluster(spec).nodes == fixed_cluster(spec.text).nodes


@pytest.mark.parametrize(
    ("text", "problem", "value"),
    [
        ("", "has no nodes", ""),
        (" ", "has no nodes", " "),
        ("v100", "has no number of nodes", "v100"),
        ("v100=4,", "has no number of nodes", "v100=4,"),
        ("v100=0", "number of v100 nodes is unusable", "0"),
        ("v100=-2", "is unusable", "-2"),
        ("v100=2.5", "is unusable", "2.5"),
        ("v100=many", "is unusable", "many"),
        ("v100=", "is unusable", ""),
        ("v100=1000001", "is unusable", "1000001"),
        ("v100=" + "9" * 30, "unusable", "9" * 30),
        ("=4", "name of a node type is unusable", ""),
        ("big gpu=4", "name of a node type is unusable", "big gpu"),
        ("v100=4,v100=2", "'v100' is given twice", "v100=4,v100=2"),
        ("a=600000,b=600000", "number of nodes is above", 1_200_000),
    ],
)
def test_a_text_that_is_no_cluster_is_refused(text, problem, value):
    with pytest.raises(InputError, match=problem) as caught:
        fixed_cluster(text)
    assert caught.value.value == value
    assert caught.value.expected
    assert caught.value.fix


def test_types_whose_nodes_would_be_mixed_are_refused():
    assert fixed_cluster("v100=200,v100-2=3").nodes[199] == "v100-199"
    with pytest.raises(InputError, match="would be mixed"):
        fixed_cluster("v100=201,v100-2=3")


def test_a_window_without_time_is_refused():
    with pytest.raises(InputError, match="end_us is below 1"):
        fixed_cluster("v100=1", end_us=0)


def test_a_cluster_without_types_is_refused():
    with pytest.raises(InputError, match="has no nodes"):
        ClusterSpec(())
