"""A real Slurm, followed and accounted (../shared/REAL-SLURM.md): the agreement that was counted by looks each second.

Sixteen nodes, 330 s, oversubscribed, with every admin operation. The integral over time differs from the looks, at half
past each second, by less than 7 of 5,264 node-seconds in each figure: changes at whole seconds lie between two looks.
"""

from __future__ import annotations

import csv
from bisect import bisect_right

import pytest

from bfreplay import NodeEvents, NodeState, OccupancyRules, ReadOptions, compare_logs, ingest

SECOND = 1_000_000
FIRST_LOOK_US, LOOKS = 1_795_646_948_500_000, 329
END_US = 1_795_647_276_600_000
# the strongest first: a node that is down is not idle, whatever else it is
WORDS = {
    "UNKNOWN": NodeState.UNKNOWN,
    "DOWN": NodeState.DOWN,
    "FAIL": NodeState.DOWN,
    "DRAIN": NodeState.DRAIN,
    "POWERED_DOWN": NodeState.OFF,
    "POWERING_DOWN": NodeState.OFF,
    "ALLOCATED": NodeState.BUSY,
    "NOT_RESPONDING": NodeState.DOWN,
    "COMPLETING": NodeState.COMPLETING,
    "MAINTENANCE": NodeState.MAINTENANCE,
    "RESERVED": NodeState.RESERVED,
    "PLANNED": NodeState.PLANNED,
    "IDLE": NodeState.IDLE,
}


def state_of(raw):
    return next(state for word, state in WORDS.items() if word in raw.split("+"))


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "data" / "real-slurm" / "followed"


@pytest.fixture(scope="module")
def follow(folder):
    """Make the followed log of a column of states and one of times."""
    with (folder / "changes.csv").open() as stream:
        rows = list(csv.DictReader(stream))

    def make(state, time):
        changes = {(round(float(row[time]) * SECOND), row["node"]): state(row) for row in rows}
        nodes, (start_us, _) = sorted({node for _, node in changes}), min(changes)
        later, last = [], {}
        for (at_us, node), new in sorted(changes.items()):
            if at_us > start_us and new != last[node]:
                later.append((at_us, nodes.index(node), new))
            last[node] = new
        first = [changes[start_us, node] for node in nodes]
        return NodeEvents.from_arrays(nodes, first, *zip(*later, strict=True), start_us, END_US)

    return make


@pytest.fixture(scope="module")
def account(folder, tmp_path_factory):
    inventory = tmp_path_factory.mktemp("nodes") / "nodes.txt"
    inventory.write_text("n[01-16]\n")

    def make(*files, reservations="idle"):
        options = ReadOptions(timezone="UTC", reservations=reservations)
        rules = OccupancyRules(min_gap_s=0, window="full")
        return ingest([folder / name for name in files], "slurm", options, rules, inventory=inventory)[0]

    return make


def seconds(result):
    return {rule.rule: rule.node_us / SECOND for rule in result.rules if rule.node_us}


def by_raw(row):
    return state_of(row["raw"])


def by_word(row):
    return NodeState[row["word"].upper()]


def test_without_reservations_it_is_the_published_agreement_and_planned_nodes_are_most_of_the_rest(follow, account):
    result = compare_logs(follow(by_raw, "exact"), account("jobs.psv", "outages.psv"), tolerance="3s")
    assert result.agreement == pytest.approx(0.799, abs=0.001)  # 79.9 % of looks
    assert result.node_us / SECOND == pytest.approx(5_264, abs=1)
    in_a, in_b, in_both = (us / SECOND for us in result.node_us_of(NodeState.IDLE))
    assert (in_a, in_b) == (pytest.approx(553, abs=7), pytest.approx(1_610, abs=7))
    assert in_a == in_both  # what is idle when followed is idle in accounting
    of_rules = seconds(result)
    assert sum(of_rules.values()) == pytest.approx(1_057, abs=7)
    assert of_rules["planned"] == pytest.approx(677, abs=7)
    assert of_rules.get("other", 0) == 0  # every difference has a name: polls every 2 s, accounting in whole seconds
    assert {rule: round(of_rule) for rule, of_rule in of_rules.items()} == {
        "not followed": 14,
        "polling": 36,
        "flap": 21,
        "planned": 681,
        "reservation": 110,
        "completing": 150,
        "outage missing": 47,
    }


def test_looks_at_half_past_each_second_give_the_published_figures_to_the_digit(follow, account):
    logs = follow(by_raw, "exact"), account("jobs.psv", "outages.psv")
    states = []
    for log in logs:
        rows = log.to_frame()
        of_log = []
        for node in log.nodes:
            of_node = rows[rows["node"] == node]
            times = [round(time.timestamp() * SECOND) for time in of_node["time"]]
            looks = (FIRST_LOOK_US + look * SECOND for look in range(LOOKS))
            of_log += [of_node["state"].iloc[bisect_right(times, look) - 1] for look in looks]
        states.append(of_log)
    pairs = list(zip(*states, strict=True))
    differing = [pair for pair in pairs if (pair[0] == "idle") != (pair[1] == "idle")]
    assert (len(pairs), len(differing), differing.count(("planned", "idle"))) == (5_264, 1_057, 677)
    assert [of_log.count("idle") for of_log in states] == [553, 1_610]


@pytest.mark.parametrize(
    ("files", "reservations", "agreement"),
    [
        (("jobs.psv", "outages.psv"), "idle", 0.7987),
        (("jobs.psv", "outages.psv", "resv.psv"), "idle", 0.8113),
        (("jobs.psv", "outages.psv", "resv.psv"), "reserved", 0.8219),
    ],
)
def test_the_words_of_the_prototype_agree_as_the_raw_states_but_cannot_say_why(
    follow, account, files, reservations, agreement
):
    accounted = account(*files, reservations=reservations)
    raw, word = (compare_logs(follow(states, "exact"), accounted, tolerance="3s") for states in (by_raw, by_word))
    assert raw.agreement == word.agreement == pytest.approx(agreement, abs=5e-5)
    assert "planned" not in seconds(word)
    assert seconds(word)["other"] > 850
    assert seconds(raw).get("other", 0) == 0


def test_times_of_the_poll_lag_and_are_polling(follow, account):
    accounted = account("jobs.psv", "outages.psv")
    exact, polled = (compare_logs(follow(by_raw, time), accounted, tolerance="3s") for time in ("exact", "poll"))
    assert -2.5 < polled.lag_s < exact.lag_s <= 0
    assert seconds(polled)["polling"] > seconds(exact)["polling"] + 20
