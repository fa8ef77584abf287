"""products.torchrun on pools that can be followed by hand."""

from dataclasses import replace

import pytest

from bfreplay.systems.products.torchrun import Torchrun, TorchrunOptions
from bfreplay.workload import Restart
from tests.replay.tiny import job, log
from tests.systems.products.rule_decisions import decisions_of


def answers(events, jobs, **options):
    """Return the counts and the waits of all jobs by the second of the decision."""
    _, decisions = decisions_of(Torchrun(TorchrunOptions(**options)), events, jobs)
    return {decision.second: (decision.counts, decision.restarts_s) for decision in decisions}


def counts(events, jobs, **options):
    return {second: answer[0] for second, answer in answers(events, jobs, **options).items()}


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
        (300, 3, False),  # 315, 345, whoever is submitted just before
        (330, 2, False),  # its seat does not extend the last call
        (400, 2, True),
        (500, 0, False),  # all are lost, and replaced: it starts
        (500, 1, False),
        (500, 2, False),
        (500, 4, True),
        (500, 5, True),
    ]
    waits_s = {0: 30, 20: 10, 100: 45, 110: 35, 120: 1, 200: 45, 205: 11, 299.5: 0, 300: 45, 330: 15, 400: 30, 500: 30}
    decisions = answers(log(6, changes, 600, [0, 1]), [wide(), wide("other", submit_s=299.5)])
    assert {second: restarts_s[0] for second, (_, restarts_s) in decisions.items()} == waits_s


def test_a_job_makes_nothing_until_its_rendezvous_is_complete():
    run, _ = decisions_of(Torchrun(), log(4, [(20, 2, True), (50, 2, False)], 150, [0, 1]), [wide()])
    # 3 nodes from 30 to 50, then 2 from 50 + 45 on
    assert run.jobs["done_samples"].tolist() == pytest.approx([20 * 30 + 55 * 20])


@pytest.mark.parametrize("restart", Restart)
def test_a_round_that_goes_on_is_paid_for_once(restart):
    changes = [(10, 1, True), (20, 2, True), (25, 2, False), (25, 3, True), (25, 4, True), (27, 4, False)]
    run, _ = decisions_of(Torchrun(), log(6, changes, 100, [0]), [replace(wide(min_nodes=1, most=6), restart=restart)])
    # three nodes from 30 on; a job with debts owes at 27 the last 3 s of four nodes: 4 s of three
    assert run.jobs["done_samples"].tolist() == pytest.approx([70 * 30 - (restart == Restart.CHARGE) * 30])


def test_free_nodes_go_first_come_first_served_and_none_is_taken_from_a_running_job():
    events = log(6, [(10, 5, True), (20, 0, False), (30, 0, True)], 100, range(4))
    # the second job waits for its minimum, so that the third gets the node that is too few for it
    expected = {0: [4, 0, 0], 10: [4, 0, 1], 20: [3, 0, 1], 30: [4, 0, 1]}
    assert counts(events, [wide("first"), wide("second"), wide("third", min_nodes=1)]) == expected


def test_a_job_with_too_few_nodes_holds_them_and_starts_when_more_are_there():
    changes = [(100, 2, False), (699, 2, True), (699, 3, True), (900, 3, False)]
    expected = {0: ([3], [30]), 100: ([2], [0]), 699: ([4], [1]), 900: ([3], [45])}
    assert answers(log(4, changes, 1000, range(3)), [wide(min_nodes=3)]) == expected


def test_a_job_gives_its_nodes_back_after_the_join_timeout_and_queues_at_its_old_place():
    events = log(4, [(100, 2, False), (750, 2, True), (800, 3, True)], 1000, range(3))
    jobs = [wide(min_nodes=3), wide("other", most=3)]
    # 700: the other job gets the two nodes; 750: it is at its maximum; 800: one node is too few for the first
    assert counts(events, jobs) == {0: [3, 0], 100: [2, 0], 700: [0, 2], 750: [0, 3], 800: [0, 3]}
    assert counts(events, jobs, join_timeout_s=60).keys() == {0, 100, 160, 750, 800}
    _, decisions = decisions_of(Torchrun(), events, jobs)
    assert [decision.reasons[0] for decision in decisions[:3]] == [
        "it takes every free node at its turn, and its rendezvous is complete in 30 s",
        "it has fewer than its minimum, and gives its nodes back in 600 s",
        "its minimum was not free at its turn",
    ]


def test_a_job_that_timed_out_starts_anew_with_all_its_restarts():
    changes = [(200, 2, False), (800, 4, True), (900, 4, False), (910, 4, True), (950, 4, False)]
    events = log(5, changes, 1000, range(4))
    expected = {0: [4], 200: [3], 800: [4], 900: [3], 910: [4], 950: [0]}
    assert counts(events, [wide(min_nodes=4, most=4)], max_restarts=1) == expected


def test_a_job_is_given_up_at_the_loss_that_it_has_no_restart_for():
    # 10: during the last call, no restart; 100: one restart; 200: none left, and the nodes are the other's at once
    events = log(5, [(10, 3, False), (100, 2, False), (200, 1, False), (300, 3, True)], 500, range(4))
    jobs = [wide(min_nodes=1, most=5), wide("other", min_nodes=1)]
    assert counts(events, jobs, max_restarts=1) == {0: [4, 0], 10: [3, 0], 100: [2, 0], 200: [0, 1], 300: [2]}
    assert counts(events, jobs, max_restarts=0)[100] == [0, 2]
    run, decisions = decisions_of(Torchrun(TorchrunOptions(max_restarts=1)), events, jobs)
    assert decisions[3].reasons[0] == "it lost nodes once more than it may restart, and is given up"
    assert run.jobs.set_index("job")["status"].to_dict() == {"job": "failed", "other": "running"}


def test_a_job_that_snoozes_begins_no_round():
    events = log(5, [(40, 2, True), (200, 3, True)], 500, [0, 1])
    # it would grow at 40; it does at 100, and at 200
    expected = {0: ([2], [30]), 40: ([2], [0]), 100: ([3], [30]), 200: ([4], [30])}
    assert answers(events, [wide(most=5)], snooze_s=100) == expected
