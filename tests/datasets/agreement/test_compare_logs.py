"""Two logs compared in Python: figures, nodes, windows, text."""

from __future__ import annotations

import json

import pytest

from bfreplay import InputError, NodeState, compare_logs
from tests.datasets.small_logs import BUSY, DOWN, IDLE, log

HOUR = 3_600


def two():
    """Of a, b, c over 100 h: a busy in A for 5 of the hours, b planned for 20; B says idle."""
    a = log([IDLE] * 3, [(HOUR, "a", BUSY), (6 * HOUR, "a", IDLE), (10 * HOUR, "b", NodeState.PLANNED),
                         (30 * HOUR, "b", BUSY)], end=100 * HOUR)  # fmt: skip
    b = log([IDLE] * 3, [(30 * HOUR, "b", BUSY)], end=100 * HOUR)
    return a, b


def test_the_figures_of_two_logs_by_hand():
    result = compare_logs(*two())
    assert result.node_us == 300 * HOUR * 1_000_000
    assert result.agreement == 1 - 25 / 300
    assert result.agreement_with((IDLE, NodeState.PLANNED)) == 1 - 5 / 300
    assert [us / HOUR / 1e6 for us in result.node_us_of(IDLE)] == [205, 230, 205]
    spans = {rule.rule: (rule.node_us / HOUR / 1e6, rule.spans) for rule in result.rules if rule.spans}
    assert spans == {"planned": (20, 1), "other": (5, 1)}
    assert [(node.node, node.node_us / HOUR / 1e6, node.largest_rule) for node in result.worst_nodes] == [
        ("b", 20, "planned"),
        ("a", 5, "other"),
    ]
    example = next(rule.example for rule in result.rules if rule.rule == "planned")
    assert example.to_dict() == {
        "node": "b",
        "from": "1970-01-01T10:00:00Z",
        "to": "1970-01-02T06:00:00Z",
        "state_a": "planned",
        "state_b": "idle",
    }


def test_the_text_says_first_how_far_they_agree_and_what_differs_mostly():
    text = repr(compare_logs(*two()))
    sentences = " ".join(text.split("\n\n")[0].split())
    assert sentences == (
        "The two logs agree in 98.3 % of node-time on which nodes are idle, planned and reserved ones included, and in "
        "91.7 % on where a preemptible worker could start (275 of 300 node-hours). What differs is mostly planned "
        "(80 %) and other (20 %)."
    )
    for part in ("98.3 % of node-time if planned nodes count as idle", "205 in A, 230 in B, 205 in both"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_dictionary_is_ready_for_json_and_its_parts_add_up():
    result = compare_logs(*two()).to_dict()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert sum(rule["node_us"] for rule in result["rules"]) == result["differing_us"]
    assert sum(row["node_us"] for row in result["states"]) == result["node_us"]
    assert {"state_a": "planned", "state_b": "idle", "node_us": 72_000_000_000} in result["states"]
    assert result["agreement_with_as_idle"] == {"planned": 1 - 5 / 300, "planned and reserved": 1 - 5 / 300}


def test_a_span_ends_where_either_log_changes_and_not_where_a_row_repeats_the_state():
    a = log([IDLE], [(10, "n", BUSY), (20, "n", BUSY), (30, "n", DOWN), (40, "n", IDLE)], nodes=("n",))
    result = compare_logs(a, log([IDLE], [], nodes=("n",)))
    assert {rule.rule: rule.spans for rule in result.rules if rule.spans} == {"other": 1, "outage missing": 1}


def test_only_the_time_and_the_nodes_of_both_are_compared_and_the_others_named():
    a = log([IDLE, BUSY], [(50, "a", BUSY)], end=80, nodes=("a", "b"))
    b = log([BUSY, IDLE], [(10, "a", IDLE), (90, "a", BUSY)], end=100, nodes=("a", "c")).between(20_000_000, 95_000_000)
    result = compare_logs(a, b)
    assert (result.window_start_us, result.window_end_us, result.n_nodes) == (20_000_000, 80_000_000, 1)
    assert result.only_in == (("b",), ("c",))
    assert result.differing_us == 30_000_000
    assert "in B only, not compared   1 node: c" in repr(result)
    assert compare_logs(a, b, window=("30", "60")).differing_us == 10_000_000


def test_names_that_differ_by_domain_or_case_are_told():
    a, b = (log([IDLE] * len(nodes), [], nodes=nodes) for nodes in (("n1", "n2", "x"), ("N1.hpc", "N2.hpc", "x")))
    result = compare_logs(a, b)
    assert "2 would match without domain and case" in repr(result)
    only = [log([IDLE], [], nodes=nodes) for nodes in (("n1",), ("N1.hpc",))]
    with pytest.raises(InputError, match="no node in common") as refused:
        compare_logs(*only)
    assert "--node-names short-lower" in refused.value.fix


def test_logs_without_a_node_or_an_hour_in_common_are_refused():
    with pytest.raises(InputError, match="no node in common") as refused:
        compare_logs(log([IDLE], [], nodes=("a",)), log([IDLE], [], nodes=("b",)))
    assert "--node-names" not in refused.value.fix
    early, late = (log([IDLE] * 3, []).between(*window) for window in ((0, 50_000_000), (50_000_000, 100_000_000)))
    with pytest.raises(InputError, match="no time in common") as refused:
        compare_logs(early, late)
    assert "--tz" in refused.value.fix


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tolerance": "soon"}, "tolerance is no length of time"),
        ({"tolerance": -1}, "tolerance"),
        ({"nodes": -1}, "nodes"),
        ({"window": ("10", "200")}, "reaches outside the log"),
        ({"window": ("yesterday", "20")}, "--window"),
    ],
)
def test_options_that_cannot_be_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        compare_logs(log([IDLE] * 3, []), log([IDLE] * 3, []), **options)


def test_no_tolerance_and_no_list_of_nodes_can_be_asked_for():
    result = compare_logs(*two(), tolerance=0, nodes=0)
    assert (result.tolerance_s, result.worst_nodes) == (0, ())


def test_a_damaged_log_is_refused_with_its_row(tmp_path):
    (tmp_path / "a.csv").write_text("time,node,state\n0,n,idle\n10,n,busy\n5,n,idle\n")
    with pytest.raises(InputError, match="time runs backwards"):
        compare_logs(tmp_path / "a.csv", tmp_path / "a.csv")


def test_the_example_of_a_rule_is_its_longest_span_the_first_of_equals():
    rows = [(at + step, "n", state) for at, length in ((10, 5), (30, 20), (60, 20), (90, 9)) for step, state in
            ((0, BUSY), (length, IDLE))]  # fmt: skip
    result = compare_logs(log([IDLE], rows, nodes=("n",)), log([IDLE], [], nodes=("n",)))
    assert [(rule.spans, rule.example.start_us / 1e6) for rule in result.rules if rule.example] == [(4, 30)]
