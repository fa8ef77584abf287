"""Kueue's reductions, and growth over time, in the cases of its own tests and design pages."""

import gzip
import json

import pytest

from bfreplay.systems.products.kueue import at_most, give_back, grow_pods, shrink_to_fit, take_pods


@pytest.fixture(scope="module")
def cases(shared):
    return json.loads(gzip.decompress((shared / "golden/products/kueue.json.gz").read_bytes()))["cases"]


def counts_and_least(case):
    return [count for count, _ in case["pod_sets"]], [least for _, least in case["pod_sets"]]


def condition(case):
    """The case's condition as a function of the counts: one bound, several, or none."""
    bounds = case["fits"] if isinstance(case["fits"], list) else [case["fits"]]
    assert all(bound.keys() in ({"sum_of", "at_most"}, {"always"}) for bound in bounds)
    return lambda counts: all(
        "always" in bound or sum(counts[index] for index in bound["sum_of"]) <= bound["at_most"] for bound in bounds
    )


def check_proportional(case):
    reduced = shrink_to_fit(*counts_and_least(case), at_most(case["limit"]), in_order=False)
    assert (reduced is not None) == case["found"]
    assert sum(reduced or ()) == case["expected_total"]


def check_taking_away(case):
    least = [count - room for count, room in zip(case["full"], case["room"], strict=True)]
    assert take_pods(case["full"], least, case["amount"]) == case["expected"]


def check_first_phase(case):
    assert shrink_to_fit(*counts_and_least(case), condition(case)) == case["expected"]
    assert case["found"] == (case["expected"] is not None)


def check_both_phases(case):
    most, least = counts_and_least(case)
    reduced = shrink_to_fit(most, least, condition(case))
    assert case["expected"] == (None if reduced is None else give_back(reduced, most, condition(case)))
    if reduced is not None:  # as the growth of a job that holds the least
        assert grow_pods(least, most, condition(case), partial=True) == case["expected"]


def check_over_time(case, partial):
    held = 0
    for step in case["steps"]:
        # the first admission is atomic; a growth is of one node at least, as `least` says
        least = step.get("least", step["wanted"])
        assert least == (min(held + 1, step["wanted"]) if held and partial else step["wanted"])
        (held,) = grow_pods([held], [step["wanted"]], at_most(step["quota"]), partial and held > 0)
        assert held == step["granted"]
        assert step.get("pending", held) == step["wanted"]


CHECKS = {
    "proportional": check_proportional,
    "order-based, taking away": check_taking_away,
    "order-based, first phase": check_first_phase,
    "order-based, both phases": check_both_phases,
    "partial scale-up over time": lambda case: check_over_time(case, partial=True),
    "atomic scale-up over time": lambda case: check_over_time(case, partial=False),
}


def test_every_published_case_comes_out(cases):
    assert cases
    for case in cases:
        CHECKS[case["rule"]](case)


@pytest.mark.parametrize(
    ("held", "wanted", "fits", "expected"),
    [
        ([5, 4], [6, 5], lambda counts: sum(counts) <= 10 and counts[1] <= 4, [6, 4]),  # no room in the second set
        ([5, 4], [6, 5], lambda counts: sum(counts) <= 10 and counts[0] <= 5, [5, 5]),
        ([4, 3], [6, 5], at_most(9), [6, 3]),  # the first set comes first
        ([4, 3], [6, 5], at_most(7), [4, 3]),  # one more in all, or nothing
        ([4, 3], [6, 2], at_most(7), [5, 2]),  # a set that wants fewer gives them at once
        ([4, 3], [5, 3], at_most(7), [4, 3]),
    ],
)
def test_a_partial_growth_is_of_one_pod_at_least_in_all_pod_sets_together(held, wanted, fits, expected):
    assert grow_pods(held, wanted, fits, partial=True) == expected
