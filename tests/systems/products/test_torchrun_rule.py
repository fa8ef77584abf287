"""products.torchrun on pools that can be followed by hand."""

from dataclasses import replace

import pytest

from bfreplay.systems.products.torchrun import Torchrun, TorchrunOptions
from bfreplay.workload import Restart
from tests.replay.tiny import job, log
from tests.systems.products.rule_decisions import decisions_of


def asked(events, jobs, **options):
    run, decisions = decisions_of(Torchrun(TorchrunOptions(**options)), events, jobs)
    return run, [decision[:3] for decision in decisions]


def wide(name="job", min_nodes=2, most=4, **fields):
    rates = tuple(10.0 * n_nodes for n_nodes in range(most + 1))
    return replace(job(name, min_nodes=min_nodes, rates=rates, **fields), restart=Restart.PAUSE)


def test_every_change_waits_for_its_rendezvous():
    changes = [
        (20, 2, True),  # joins the last call, which ends at 30
        (100, 2, False),  # its seat is free at 115, the last call over at 145
        (110, 2, True),  # joins that round
        (120, 3, True),  # the maximum
        (200, 3, False),  # 215, 245
        (205, 3, True),  # at the maximum as soon as the seat is free
        (300, 3, False),  # 315, 345
        (330, 2, False),  # its seat does not extend the last call
        (400, 2, True),
    ]
    _, decisions = asked(log(4, changes, 500, [0, 1]), [wide()])
    waits_s = {0: 30, 20: 10, 100: 45, 110: 35, 120: 1, 200: 45, 205: 11, 300: 45, 330: 15, 400: 30}
    assert {second: wait_s for second, _, (wait_s,) in decisions} == waits_s


def test_a_job_makes_nothing_until_its_rendezvous_is_complete():
    run, _ = asked(log(4, [(20, 2, True), (50, 2, False)], 150, [0, 1]), [wide()])
    # 3 nodes from 30 to 50, then 2 from 50 + 45 on
    assert run.jobs["done_samples"].tolist() == pytest.approx([20 * 30 + 55 * 20])


def test_free_nodes_go_first_come_first_served_and_none_is_taken_from_a_running_job():
    events = log(6, [(10, 5, True), (20, 0, False), (30, 0, True)], 100, range(4))
    _, decisions = asked(events, [wide("first"), wide("second"), wide("third", min_nodes=1)])
    # the second job waits for its minimum, so that the third gets the node that is too few for it
    counts = {0: [4, 0, 0], 10: [4, 0, 1], 20: [3, 0, 1], 30: [4, 0, 1]}
    assert {second: count for second, count, _ in decisions} == counts


@pytest.mark.parametrize(("back_s", "then"), [(699, [(699, [3], [30])]), (800, [(700, [0], [0]), (800, [3], [30])])])
def test_with_fewer_than_its_minimum_a_job_holds_its_nodes_until_the_timeout(back_s, then):
    _, decisions = asked(log(4, [(100, 2, False), (back_s, 2, True)], 1000, range(3)), [wide(min_nodes=3)])
    assert decisions == [(0, [3], [30]), (100, [2], [0]), *then]


def test_a_job_that_timed_out_queues_at_its_old_place():
    changes = [(100, 2, False), (750, 2, True), (800, 3, True)]
    _, decisions = asked(log(4, changes, 1000, range(3)), [wide(min_nodes=3), wide("other", most=3)])
    # 700: the other job gets the two nodes; 750: it is at its maximum; 800: one node is too few for the first
    counts = {0: [3, 0], 100: [2, 0], 700: [0, 2], 750: [0, 3], 800: [0, 3]}
    assert {second: count for second, count, _ in decisions} == counts


def test_a_job_that_timed_out_starts_anew_on_what_is_free_then():
    changes = [(90, 3, True), (100, 2, False), (700, 2, True)]
    _, decisions = asked(log(5, changes, 1000, range(3)), [wide(min_nodes=4, most=5)])
    assert decisions == [(0, [0], [0]), (90, [4], [30]), (100, [3], [0]), (700, [4], [30])]


def test_a_job_is_given_up_at_the_loss_that_it_has_no_restart_for():
    # 10: during the last call, no restart; 100: one restart; 200: none left, and the nodes are the other's at once
    changes = [(10, 3, False), (100, 2, False), (200, 1, False), (300, 3, True)]
    jobs = [wide(min_nodes=1, most=5), wide("other", min_nodes=1)]
    run, decisions = asked(log(5, changes, 500, range(4)), jobs, max_restarts=1)
    counts = {0: [4, 0], 10: [3, 0], 100: [2, 0], 200: [0, 1], 300: [2]}
    assert {second: count for second, count, _ in decisions} == counts
    assert run.jobs.set_index("job")["status"].to_dict() == {"job": "failed", "other": "running"}


def test_a_job_that_snoozes_begins_no_round():
    events = log(5, [(40, 2, True), (200, 3, True)], 500, [0, 1])
    _, decisions = asked(events, [wide(most=5)], snooze_s=100)
    # it would grow at 40; it does at 100, and at 200
    assert decisions == [(0, [2], [30]), (40, [2], [0]), (100, [3], [30]), (200, [4], [30])]
