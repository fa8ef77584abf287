"""Warnings about a log: their shares of the idle node-hours, the verdict, and the sentences that results repeat."""

from __future__ import annotations

import pytest

from bfreplay.datasets.log.log_warnings import LogWarnings, Verdict
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.errors import InputError


def metadata(warnings, idle=100.0):
    """Metadata of an import; ``warnings``: sentence -> node-hours, ``None`` where they are not known."""
    tallies = {
        sentence: {"count": k + 1, "examples": [], **({} if hours is None else {"node_hours": hours})}
        for k, (sentence, hours) in enumerate(warnings.items())
    }
    facts = {} if idle is None else {"node_hours": {"busy": 5.0, **({"idle": idle} if idle else {})}}
    return {"notes": {"ingest": {"warnings": tallies, "facts": facts}}, "allocator": None}


@pytest.mark.parametrize(
    ("amounts", "idle", "verdict"),
    [
        ([], 100.0, None),
        ([270.0], 100.0, Verdict.NOT_CREDIBLE),
        ([50.0], 100.0, Verdict.NOT_CREDIBLE),
        ([49.9], 100.0, Verdict.UNCERTAIN),
        ([40.0, 40.0], 100.0, Verdict.UNCERTAIN),  # they may be the same node-hours
        ([40.0, 40.0, 20.0], 100.0, Verdict.NOT_CREDIBLE),
        ([10.0], 100.0, Verdict.UNCERTAIN),
        ([5.0, 5.0], 100.0, Verdict.UNCERTAIN),
        ([9.9], 100.0, Verdict.SMALL),
        ([0.0], 100.0, Verdict.SMALL),
        ([9.9, None], 100.0, Verdict.UNKNOWN),
        ([10.0, None], 100.0, Verdict.UNCERTAIN),
        ([None], 100.0, Verdict.UNKNOWN),
        ([270.0], None, Verdict.UNKNOWN),
        ([1.0], 0.0, Verdict.NOT_CREDIBLE),
        ([None], 0.0, Verdict.UNKNOWN),
    ],
)
def test_the_verdict_goes_by_the_largest_warning_and_by_the_sum_as_an_upper_limit(amounts, idle, verdict):
    found = LogWarnings.of_metadata(metadata({f"s{k}": hours for k, hours in enumerate(amounts)}, idle))
    assert found.verdict is verdict
    assert found.to_json()["verdict"] == (None if verdict is None else verdict.value)
    assert bool(found.verdict_sentence()) == bool(found.sentences()) == (verdict is not None)


def test_warnings_come_largest_first_with_their_shares_and_those_of_unknown_amount_last():
    found = LogWarnings.of_metadata(metadata({"rare": None, "small": 2.0, "large": 30.0}, 40.0))
    assert [(each.sentence, each.count, each.node_hours, each.share) for each in found.warnings] == [
        ("large", 3, 30.0, 0.75),
        ("small", 2, 2.0, 0.05),
        ("rare", 1, None, None),
    ]
    assert found.sentences() == [
        "The idle nodes of this log cannot be believed: warnings of its import of a known amount concern at most 32 "
        "node-hours, 80 % of the idle ones of the imported log; 1 warning of its import has no amount.",
        "3 x large (30 node-hours, 75 % of the idle ones)",
        "2 x small (2 node-hours, 5 % of the idle ones)",
        "1 x rare (amount not known)",
    ]
    assert found.to_json()["warnings"][0] == {
        "sentence": "large",
        "count": 3,
        "node_hours": 30.0,
        "share": 0.75,
        "is_estimate": False,
        "aside": "",
        "why_no_amount": "",
    }


def test_what_does_not_change_how_many_nodes_are_idle_is_no_part_of_the_verdict_and_estimates_say_so():
    document = metadata({"which": 30.0, "rows": 4.0, "zone": None}, 40.0)
    tallies = document["notes"]["ingest"]["warnings"]
    tallies["which"]["aside"] = "only which"
    only = LogWarnings.of_metadata(
        {"notes": {"ingest": {**document["notes"]["ingest"], "warnings": {"which": tallies["which"]}}}}
    )
    assert (only.verdict, only.most_node_hours) == (Verdict.SMALL, 0.0)
    assert only.sentences() == [
        "What may be wrong with the idle nodes of this log has a small effect: no warning of its import changes how "
        "many nodes are idle.",
        "1 x which (30 node-hours; only which)",
    ]
    tallies["rows"]["is_estimate"] = True
    tallies["zone"]["why_no_amount"] = "nobody knows"
    found = LogWarnings.of_metadata(document)
    assert (found.verdict, found.most_node_hours) == (Verdict.UNCERTAIN, 4.0)
    assert found.sentences() == [
        "The idle nodes of this log may be wrong: warnings of its import of a known amount concern about 4 node-hours, "
        "10 % of the idle ones of the imported log; 1 warning of its import has no amount.",
        "1 x which (30 node-hours; only which)",
        "2 x rows (about 4 node-hours, 10 % of the idle ones)",
        "3 x zone (amount not known: nobody knows)",
    ]


@pytest.mark.parametrize(
    ("warnings", "idle", "sentence"),
    [
        (
            {"x": 983_122.7},
            364_119.5,
            "The idle nodes of this log cannot be believed: warnings of its import concern at most 983,000 "
            "node-hours, 2.70 times the idle ones of the imported log.",
        ),
        (
            {"x": 15.0, "y": 8.0},
            100.0,
            "The idle nodes of this log may be wrong by up to 23 %: warnings of its import concern at most 23 "
            "node-hours, 23 % of the idle ones of the imported log.",
        ),
        (
            {"x": 15.0, "y": None},
            100.0,
            "The idle nodes of this log may be wrong: warnings of its import of a known amount concern at most 15 "
            "node-hours, 15 % of the idle ones of the imported log; 1 warning of its import has no amount.",
        ),
        (
            {"x": 0.01},
            100.0,
            "What may be wrong with the idle nodes of this log has a small effect: warnings of its import concern at "
            "most 0.0100 node-hours, less than 0.1 % of the idle ones of the imported log.",
        ),
        (
            {"x": None, "y": None},
            100.0,
            "The error of the idle nodes of this log cannot be estimated: 2 warnings of its import have no amount.",
        ),
        (
            {"x": 3.0},
            0.0,
            "The idle nodes of this log cannot be believed: warnings of its import concern at most 3 node-hours.",
        ),
    ],
)
def test_the_verdict_says_what_it_rests_on(warnings, idle, sentence):
    assert LogWarnings.of_metadata(metadata(warnings, idle)).verdict_sentence() == sentence


def test_results_show_the_three_largest_and_how_many_there_are_besides():
    found = LogWarnings.of_metadata(metadata(dict.fromkeys("abcde", 1.0)))
    assert [each[:5] for each in found.sentences()[1:4]] == ["5 x e", "4 x d", "3 x c"]
    assert found.sentences()[4:] == ["and 2 more: 'bfreplay describe' lists all"]
    assert len(found.sentences(most=None)) == 6


def test_a_rule_that_chose_the_nodes_is_something_to_bear_in_mind_and_no_warning_about_how_many_are_idle():
    found = EventsMetadata(allocator={"name": "random", "seed": 3}).log_warnings
    (sentence,) = found.sentences()
    assert sentence.startswith("Which node a job had is simulated (random, seed 3): the log has only counts.")
    assert (found.verdict, found.to_json()["node_assignment"]) == (None, "random, seed 3")
    assert EventsMetadata(allocator={"rule": "x"}).log_warnings.node_assignment == '{"rule": "x"}'


def test_a_log_of_an_earlier_version_has_warnings_of_unknown_amount():
    found = LogWarnings.of_metadata({"notes": {"ingest": {"warnings": {"x": {"count": 2, "examples": ["a:1"]}}}}})
    assert (found.verdict, found.idle_node_hours) == (Verdict.UNKNOWN, None)
    assert LogWarnings.of_metadata({}) == LogWarnings.of_metadata({"notes": {"generator": "x"}}) == LogWarnings()


@pytest.mark.parametrize(
    "damaged",
    [
        {"notes": {"ingest": {"warnings": ["x"]}}},
        {"notes": {"ingest": {"warnings": {"x": {}}}}},
        {"notes": {"ingest": {"warnings": {"x": {"count": -5}}}}},
        {"notes": {"ingest": {"warnings": {"x": {"count": 0}}}}},
        {"notes": {"ingest": {"warnings": {"x": {"count": True}}}}},
        {"notes": {"ingest": {"warnings": {"x": {"count": 1, "node_hours": True}}}}},
        {"notes": {"ingest": {"facts": {"node_hours": {"idle": False}}}}},
        {"notes": {"ingest": {"warnings": {"x": {"count": 1, "node_hours": "many"}}}}},
        {"notes": {"ingest": {"facts": {"node_hours": {"idle": None}}}}},
        {"notes": {"ingest": {"warnings": {"x": {"count": 1, "node_hours": -1.0}}}}},
        {"notes": {"ingest": {"warnings": {"x": {"count": 1, "node_hours": float("nan")}}}}},
        {"notes": {"ingest": {"warnings": {"x": {"count": 1, "node_hours": 10**400}}}}},
        {"notes": 7},
        {"allocator": "lowest-id"},
    ],
)
def test_damage_is_refused_when_the_log_is_opened(damaged, tmp_path):
    with pytest.raises(InputError, match="cannot be understood") as caught:
        EventsMetadata.from_json({"schema_version": 1, **damaged}, tmp_path / "log.parquet")
    assert caught.value.file == str(tmp_path / "log.parquet")


def test_a_part_of_an_unknown_amount_keeps_the_known_part_and_its_verdict():
    document = metadata({"rows": 30.0}, 40.0)
    document["notes"]["ingest"]["warnings"]["rows"]["why_no_amount"] = "one cannot be read"
    found = LogWarnings.of_metadata(document)
    assert found.verdict is Verdict.NOT_CREDIBLE
    assert found.sentences() == [
        "The idle nodes of this log cannot be believed: warnings of its import of a known amount concern at most 30 "
        "node-hours, 75 % of the idle ones of the imported log; 1 warning of its import has no full amount.",
        "1 x rows (30 node-hours, 75 % of the idle ones; more of an unknown amount: one cannot be read)",
    ]
    document["notes"]["ingest"]["warnings"]["rows"]["node_hours"] = 1.0
    assert LogWarnings.of_metadata(document).verdict is Verdict.UNKNOWN
