"""Kueue's reductions, and growth over time, in the cases of its own tests and design pages."""

import gzip
import json

import pytest

from bfreplay.systems.products.kueue import at_most, give_back, grow_pods, shrink_to_fit, take_pods


def condition(case):
    """The case's condition as a function of the counts: one bound, several, or none."""
    bounds = case["fits"] if isinstance(case["fits"], list) else [case["fits"]]
    assert all(bound.keys() in ({"sum_of", "at_most"}, {"always"}) for bound in bounds)
    limits = [(bound["sum_of"], bound["at_most"]) for bound in bounds if "always" not in bound]
    return lambda counts: all(sum(counts[index] for index in pod_sets) <= most for pod_sets, most in limits)


def check_reduction(case):
    most, least = ([pod_set[end] for pod_set in case["pod_sets"]] for end in (0, 1))
    if case["rule"] == "proportional":
        reduced = shrink_to_fit(most, least, at_most(case["limit"]), in_order=False)
        assert sum(reduced or ()) == case["expected_total"]
    else:
        reduced = shrink_to_fit(most, least, condition(case))
        if reduced and case["rule"] == "order-based, both phases":
            reduced = give_back(reduced, most, condition(case))
            assert reduced == grow_pods(least, most, condition(case), partial=True)
        assert reduced == case["expected"]
    assert case["found"] == (reduced is not None)


def check_over_time(case):
    partial, held = case["rule"].startswith("partial"), 0
    for step in case["steps"]:
        assert step.get("least", step["wanted"]) == (
            min(held + 1, step["wanted"]) if held and partial else step["wanted"]
        )
        # the first admission is of all or nothing
        (held,) = grow_pods([held], [step["wanted"]], at_most(step["quota"]), partial and held > 0)
        assert (held, step.get("pending", held)) == (step["granted"], step["wanted"])


def test_every_published_case_comes_out(shared):
    cases = json.loads(gzip.decompress((shared / "golden/products/kueue.json.gz").read_bytes()))["cases"]
    assert len(cases) == 25
    for case in cases:
        if case["rule"] == "order-based, taking away":
            least = [count - room for count, room in zip(case["full"], case["room"], strict=True)]
            assert take_pods(case["full"], least, case["amount"]) == case["expected"]
        elif "steps" in case:
            check_over_time(case)
        else:
            check_reduction(case)


def test_pods_are_taken_in_proportion_to_what_each_set_can_give():
    taken = [take_pods([5, 5], [3, 4], n_pods, in_order=False) for n_pods in range(4)]
    assert taken == [[5, 5], [5, 5], [4, 5], [3, 4]]


@pytest.mark.parametrize(
    ("held", "wanted", "fits", "expected"),
    [
        ([5, 4], [6, 5], lambda counts: sum(counts) <= 10 and counts[1] <= 4, [6, 4]),  # no room in the second set
        ([4, 3], [6, 5], at_most(9), [6, 3]),  # the first set comes first
        ([4, 3], [6, 5], at_most(7), [4, 3]),  # one more in all, or nothing
        ([4, 3], [6, 2], at_most(7), [5, 2]),  # a set that wants fewer gives them at once
        ([4, 3], [6, 2], at_most(6), [4, 3]),
        ([1, 1, 1], [4, 4, 4], lambda counts: counts[0] <= 1 and counts[1] + counts[2] <= 5, [1, 4, 1]),
    ],
)
def test_a_partial_growth_is_of_one_pod_at_least_in_all_pod_sets_together(held, wanted, fits, expected):
    assert grow_pods(held, wanted, fits, partial=True) == expected
