"""What a change costs: numbers, costs by count, and what else a job says about its changes."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.errors import InputError
from bfreplay.saved_state import classes_inside, restore_state, save_state
from bfreplay.scalability import Amdahl, MeasuredLaw, TabulatedCurve
from bfreplay.scalability.stepped import SteppedCurve
from bfreplay.workload import Adaptation, CostByCount, ElasticJob, Restart, Saves
from bfreplay.workload.change_costs import cost_of, cost_table, highest, lowest

LINE = TabulatedCurve([0, 8], [0.0, 80.0], "line")
JOB = ElasticJob("job", 5, 1, 8, 10.0, 5.0, 100.0, LINE)
BY_COUNT = CostByCount(((0, 20.0), (4, 29.0), (8, 95.0)))


@pytest.mark.parametrize(
    ("given", "cost"),
    [
        (20, 20.0),
        (0, 0.0),
        (-0.0, 0.0),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7.0),
        ("20", 20.0),
        (" 1e3 ", 1000.0),
        ("0:20 4:29 8:95", BY_COUNT),
        ("  8:95  0:20 4:29.0 ", BY_COUNT),
        ({0: 20, 4: 29, 8: 95}, BY_COUNT),
        ({"8": 95, "0": 20, "4": 29.0}, BY_COUNT),
        ([(0, 20), (4, 29), (8, 95)], BY_COUNT),
        (CostByCount([(0, 20), (np.int64(4), np.float64(29)), (8, 95)]), BY_COUNT),
        ("0:20", 20.0),
        ("0:20 4:20", 20.0),
        ({0: 20, 9: 20.0}, 20.0),
        ("0:-0.0 4:0", 0.0),
    ],
)
def test_a_cost_is_a_number_or_by_count_however_it_is_written(given, cost):
    read = cost_of(given)
    assert read == cost
    assert type(read) is type(cost)
    assert "-" not in str(read)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (-1, "negative or not a number"),
        (-1e-9, "negative or not a number"),
        (math.inf, "negative or not a number"),
        (math.nan, "negative or not a number"),
        (10**400, "negative or not a number"),
        ("-1", "negative or not a number"),
        ("inf", "negative or not a number"),
        (True, "no number"),
        (None, "no number"),
        (b"20", "no number"),
        ("", "cannot be read"),
        ("soon", "cannot be read"),
        ("1_000", "cannot be read"),
        ("0:20 4", "cannot be read"),
        ("0:20:30", "cannot be read"),
        ("0:soon", "cannot be read"),
        ("0:20 4.5:29", "count of a cost is no whole number"),
        ("0:20 -4:29", "count of a cost is no whole number"),
        ("0:20 \u0664:29", "count of a cost is no whole number"),
        ("0:20 4:-1", "negative or not a number"),
        ("0:20 4:nan", "negative or not a number"),
        ("4:29", "do not begin at count 0"),
        ({}, "do not begin at count 0"),
        ([], "do not begin at count 0"),
        ({4: 29}, "do not begin at count 0"),
        ({-1: 3, 0: 20}, "do not begin at count 0"),
        ("0:20 4:29 4:30", "do not increase"),
        ("0:20 10000001:29", "do not increase"),
        ({0: 20, "0": 30}, "do not increase"),
        ({0: 20, 4.5: 29}, "no pairs of a whole number and seconds"),
        ({0: "20"}, "no number"),
        ({0: 20, None: 29}, "cannot be read"),
        ([20, 29], "cannot be read"),
        ([(0, 20, 29)], "cannot be read"),
    ],
)
def test_what_is_no_cost_is_refused_with_its_forms(given, says):
    with pytest.raises(InputError, match=says) as caught:
        cost_of(given)
    assert "0:20 4:29 8:95" in caught.value.expected


@pytest.mark.parametrize("steps", [((4, 1.0), (0, 2.0)), ((0, 1.0), (0, 2.0)), ((0, 1.0), (9, 2.0), (4, 3.0))])
def test_steps_out_of_order_are_not_sorted_silently(steps):
    with pytest.raises(InputError, match=r"do not (begin|increase)"):
        CostByCount(steps)


@pytest.mark.parametrize(
    ("count", "seconds"), [(0, 20.0), (1, 20.0), (3, 20.0), (4, 29.0), (7, 29.0), (8, 95.0), (9_999_999, 95.0)]
)
def test_a_step_holds_from_its_count_to_the_next(count, seconds):
    assert BY_COUNT.at(count) == seconds


def test_the_table_has_the_cost_at_each_count_and_the_extremes_are_those_of_the_steps():
    dip = cost_of("0:20 2:5 3:95")
    assert cost_table(dip, 5).tolist() == [20.0, 20.0, 5.0, 95.0, 95.0]
    assert cost_table(dip, 2).tolist() == [20.0, 20.0]
    assert cost_table(7.0, 3).tolist() == [7.0, 7.0, 7.0]
    assert (lowest(dip), highest(dip), lowest(7.0), highest(7.0)) == (5.0, 95.0, 7.0, 7.0)


costs = st.floats(0, sys.float_info.max)


@given(st.dictionaries(st.integers(1, 10_000_000), costs, min_size=1, max_size=6), costs)
def test_text_gives_the_same_cost_to_the_bit_and_the_table_is_that_of_the_steps(later, first):
    by_count = CostByCount(((0, first), *sorted(later.items())))
    assert cost_of(str(by_count)) == cost_of(by_count)
    assert f"{by_count:g}" == str(by_count)
    table = cost_table(by_count, 40)
    assert [by_count.at(count) for count in range(40)] == table.tolist()
    assert (lowest(by_count), highest(by_count)) == (min(first, *later.values()), max(first, *later.values()))


def test_a_job_has_the_published_costs_unless_it_says_otherwise():
    assert (JOB.start_cost_s, JOB.restart, JOB.work_saved_every_s, JOB.saves, JOB.counts) == (
        *(0.0, "charge", 0.0, "never"),
        (),
    )
    assert JOB.has_published_costs
    assert JOB.costs_text == ""
    assert repr(JOB).endswith("scale up 10 s, down 5 s>")
    assert replace(JOB, counts=(1, 8)).has_published_costs


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"start_cost_s": 60}, "start 60 s"),
        ({"start_cost_s": "0:60 4:90"}, "start 0:60 4:90 s"),
        ({"scale_down_cost_s": "0:60 4:90"}, "costs by count"),
        ({"restart": Restart.PAUSE}, "changes pause it 10 s up, 5 s down"),
        ({"restart": "pause", "scale_down_cost_s": 10}, "changes pause it 10 s"),
        ({"work_saved_every_s": 600}, "work saved every 600 s"),
        ({"work_saved_every_s": 600, "saves": Saves.ON_NOTICE}, "work saved every 600 s and on notice"),
        (
            {"start_cost_s": 3, "restart": "pause", "work_saved_every_s": 0.5, "saves": "on-resize"},
            "start 3 s, changes pause it 10 s up, 5 s down, work saved every 0.5 s and on resize",
        ),
    ],
)
def test_other_costs_are_told_in_words(changes, text):
    job = replace(JOB, **changes)
    assert not job.has_published_costs
    assert job.costs_text == text
    assert repr(job).endswith(f"s, {text}>")


def test_words_and_numbers_of_a_job_are_plain_whatever_they_were_given_as():
    job = replace(
        JOB,
        start_cost_s=np.int64(3),
        restart=Restart.PAUSE,
        saves=Saves.ON_RESIZE,
        work_saved_every_s=np.int64(600),
        counts=np.array([1, 2, 8]),
    )
    plain = (job.start_cost_s, job.restart, job.saves, job.work_saved_every_s, job.counts)
    assert plain == (3.0, "pause", "on-resize", 600.0, (1, 2, 8))
    assert [type(each) for each in plain] == [float, str, str, float, tuple]
    assert type(job.counts[0]) is int


@pytest.mark.parametrize(
    ("changes", "column", "says", "value"),
    [
        ({"start_cost_s": -1.0}, "start_cost_s", "negative or not a number", -1.0),
        ({"start_cost_s": None}, "start_cost_s", "no number", None),
        ({"scale_up_cost_s": "4:20"}, "scale_up_cost_s", "do not begin at count 0", ((4, 20.0),)),
        ({"scale_down_cost_s": "0:1 4"}, "scale_down_cost_s", "cannot be read", "0:1 4"),
        ({"restart": "paused"}, "restart", "did you mean 'pause'", "paused"),
        ({"restart": None}, "restart", "restart is unknown", None),
        ({"saves": "on_notice", "work_saved_every_s": 9}, "saves", "did you mean 'on-notice'", "on_notice"),
        ({"work_saved_every_s": -1}, "work_saved_every_s", "negative or not a number", -1),
        ({"work_saved_every_s": math.nan}, "work_saved_every_s", "negative or not a number", None),
        ({"work_saved_every_s": "600"}, "work_saved_every_s", "negative or not a number", "600"),
        ({"work_saved_every_s": True}, "work_saved_every_s", "negative or not a number", True),
        ({"work_saved_every_s": 1e-4}, "work_saved_every_s", "out of range", 1e-4),
        ({"work_saved_every_s": 1e10}, "work_saved_every_s", "out of range", 1e10),
        ({"start_cost_s": 2e9, "restart": "pause"}, "start_cost_s", "longer than 30 years", 2e9),
        ({"scale_up_cost_s": "0:1 9:2e9", "restart": "pause"}, "scale_up_cost_s", "longer than 30 years", None),
        ({"saves": "on-notice"}, "saves", "nothing is ever at risk", "on-notice"),
        ({"counts": (1, 2, 4)}, "counts", "out of order, or not within its bounds", (1, 2, 4)),
        ({"counts": (2, 8)}, "counts", "out of order, or not within its bounds", (2, 8)),
        ({"counts": (1, 4, 2, 8)}, "counts", "out of order, or not within its bounds", (1, 4, 2, 8)),
        ({"counts": (1, 2, 2, 8)}, "counts", "out of order, or not within its bounds", (1, 2, 2, 8)),
        ({"counts": (1, 2.5, 8)}, "counts", "no whole numbers", (1, 2.5, 8)),
        ({"counts": "1 8"}, "counts", "no whole numbers", "1 8"),
        ({"counts": 8}, "counts", "no whole numbers", 8),
    ],
)
def test_what_makes_no_sense_is_refused_by_job_field_and_value(changes, column, says, value):
    with pytest.raises(InputError, match=says) as caught:
        replace(JOB, **changes)
    assert caught.value.problem.startswith("job 'job': ")
    assert caught.value.column == column
    assert value is None or caught.value.value == value


def test_counts_step_the_curve_which_is_read_at_them_alone():
    # the line gives 10 n: 2 and 3 nodes make what 2 make, 4 to 7 what 4 make; on 1 node it waits
    job = replace(JOB, min_nodes=2, counts=(2, 4, 8))
    assert job.throughput.table(8).tolist() == [0, 0, 20, 20, 40, 40, 40, 40, 80]
    assert job.throughput.table(5).tolist() == [0, 0, 20, 20, 40, 40]
    assert job.objective_curve is job.throughput
    assert (job.throughput.name, job.throughput.last_nodes, job.seconds_alone(7)) == ("line", 8, 2.5)
    assert replace(JOB, counts=tuple(range(1, 9))).throughput.table(8).tolist() == LINE.table(8).tolist()


def test_counts_step_the_objective_and_the_curves_by_type_too_and_nothing_is_stepped_twice():
    objective = TabulatedCurve([0, 8], [0.0, 8.0])
    job = replace(JOB, counts=(1, 4, 8), objective=objective, throughput_by_type={"a": LINE})
    assert job.objective_curve.table(8).tolist() == [0, 1, 1, 1, 4, 4, 4, 4, 8]
    assert job.throughput_on("a").table(8).tolist() == [0, 10, 10, 10, 40, 40, 40, 40, 80]
    assert replace(job, name="other").throughput == SteppedCurve(LINE, (1, 4, 8))
    assert replace(job, counts=(1, 8)).throughput == SteppedCurve(LINE, (1, 8))


def test_a_curve_that_ends_too_early_is_refused_with_counts_as_without():
    short = TabulatedCurve([0, 4], [0.0, 40.0])
    with pytest.raises(InputError, match="ends at 4 nodes, below max_nodes 8"):
        replace(JOB, throughput=short, counts=(1, 8))
    with pytest.raises(InputError, match="largest count up to which a law is tabulated"):
        replace(JOB, throughput=Amdahl(9.0, 0.1), max_nodes=5_000_000, counts=(1, 5_000_000))


def test_counts_keep_where_the_curve_was_measured():
    assert replace(JOB, throughput=MeasuredLaw(Amdahl(9.0, 0.1), (2, 4)), counts=(1, 8)).throughput.measured == (2, 4)


def test_a_job_whose_batch_size_changes_has_no_counts():
    adaptation = Adaptation("rule", 10, {32: LINE}, ((0.0, 32),))
    with pytest.raises(InputError, match="whose batch size changes has counts") as caught:
        replace(JOB, adaptation=adaptation, counts=(1, 8))
    assert caught.value.column == "counts"


class Holder:
    def __init__(self) -> None:
        self.jobs: list[ElasticJob] = []


def test_a_job_with_all_of_it_survives_a_saved_state():
    holder, again = Holder(), Holder()
    changes = {"start_cost_s": "0:60 4:90", "restart": "pause", "work_saved_every_s": 600, "saves": "on-notice"}
    holder.jobs.append(replace(JOB, counts=(1, 8), **changes))
    restore_state(again, save_state(holder, classes_inside(again)))
    assert again.jobs == holder.jobs
