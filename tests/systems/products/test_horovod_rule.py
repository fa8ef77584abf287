"""products.horovod on pools that can be followed by hand."""

from dataclasses import replace

import pytest

from bfreplay.errors import InputError
from bfreplay.systems.products.horovod import Horovod, HorovodOptions, cooldown_s
from tests.replay.tiny import job, log
from tests.systems.products.rule_decisions import decisions_of


def hosts(events, jobs, **options):
    """Return the nodes of each job by the second of the decision."""
    _, decisions = decisions_of(Horovod(HorovodOptions(**options)), events, jobs)
    return {decision.second: decision.hosts for decision in decisions}


_BACK = [(10, 1, False), (20, 1, True)]
_ONE_LOST = log(3, _BACK, 100, [0, 1])


def test_a_host_that_died_is_never_used_again_but_by_another_job():
    assert hosts(_ONE_LOST, [job()]) == {0: [[0, 1]], 10: [[0]], 20: [[0]]}
    assert hosts(_ONE_LOST, [job(), job("other")])[20] == [[0], [1]]
    _, decisions = decisions_of(Horovod(), _ONE_LOST, [job()])
    assert decisions[1].reasons[0].endswith(", up to its maximum, except 1 blacklisted host")


def test_a_host_that_was_removed_in_order_is_used_again():
    assert hosts(_ONE_LOST, [job()], reclaims="orderly")[20] == [[0, 1]]


def test_a_host_that_died_is_used_again_after_its_cooldown_which_doubles():
    events = log(3, [*_BACK, (40, 1, False), (41, 1, True)], 200, [0, 1])
    # 10 + 2.5 x 10 and 40 + 4.5 x 10
    chosen = {0: [[0, 1]], 10: [[0]], 20: [[0]], 35: [[0, 1]], 40: [[0]], 41: [[0]], 85: [[0, 1]]}
    assert hosts(events, [job()], cooldown="10:1000") == chosen
    assert [cooldown_s("10:60", n_failures) for n_failures in (1, 2, 3, 5000)] == [25, 45, 60, 60]


def test_a_job_wakes_up_only_for_a_host_that_it_can_use():
    others = [job("other"), job("third")]
    assert hosts(_ONE_LOST, [job(), *others], cooldown="10:1000").keys() == {0, 10, 20}  # another job has it
    full = log(4, [*_BACK, (30, 2, True)], 100, [0, 1])
    chosen = {0: [[0, 1]], 10: [[0]], 20: [[0]], 30: [[0, 2]]}
    assert hosts(full, [job(rates=(0.0, 10.0, 20.0))], cooldown="30:1000") == chosen  # 85: it is at its maximum
    two_lost = log(3, [(10, 1, False), (10, 2, False), (20, 1, True)], 100, range(3))
    chosen = {0: [[0, 1, 2]], 10: [[0]], 20: [[0]], 35: [[0]]}  # two hosts are too few
    assert hosts(two_lost, [job(min_nodes=3)], cooldown="10:1000") == chosen


def test_with_fewer_hosts_than_its_minimum_a_job_waits_600_s_and_is_launched_anew():
    chosen = {0: [[0, 1]], 10: [[0]], 20: [[0]], 610: [[1, 0]]}  # a new driver has no blacklist
    assert hosts(log(3, _BACK, 1000, [0, 1]), [job(min_nodes=2)]) == chosen
    events = log(3, [(10, 1, False), (500, 2, True), (700, 1, True)], 1000, [0, 1])
    assert hosts(events, [job(min_nodes=2)]) == {0: [[0, 1]], 10: [[0]], 500: [[0, 2]], 700: [[0, 2]]}
    _, decisions = decisions_of(Horovod(), log(2, [(10, 1, False)], 1000, [0, 1]), [job(min_nodes=2)])
    assert [decision.reasons[0] for decision in decisions] == [
        "it uses every free host at its turn, up to its maximum",
        "it has fewer hosts than its minimum, and gives up in 600 s",
        "the hosts that it needs to start were not free at its turn",
    ]


def test_a_job_that_lost_all_its_hosts_starts_anew_without_a_blacklist():
    events = log(3, [(10, 0, False), (10, 1, False), (20, 1, True)], 100, [0, 1])
    assert hosts(events, [job()])[20] == [[1]]


def test_a_job_starts_with_its_start_nodes_and_goes_on_with_fewer():
    events = log(4, [(10, 2, True), (20, 3, True), (30, 3, False), (30, 2, False)], 1000, [0, 1])
    chosen = {0: [[]], 10: [[0, 1, 2]], 20: [[0, 1, 2, 3]], 30: [[0, 1]]}
    assert hosts(events, [job()], start_nodes=3) == chosen
    assert hosts(events, [job()], start_nodes=9)[20] == [[0, 1, 2, 3]]  # never more than its maximum


def test_hosts_are_used_in_the_order_in_which_they_were_seen():
    changes = [(5, 0, True), (10, 2, True), (15, 0, False), (20, 1, True), (30, 3, False)]
    assert hosts(log(4, changes, 100, [3]), [job(rates=(0.0, 10.0))])[30] == [[2]]
    jobs = [job(rates=(0.0, 10.0), work=300), job("late", rates=(0.0, 10.0), submit_s=40)]
    assert hosts(log(2, [], 100, [0, 1]), jobs) == {0: [[0]], 40: [[1]]}  # host 0 is free since 30


def test_a_host_that_is_too_many_for_a_job_is_the_next_ones():
    jobs = [replace(job(min_nodes=2), counts=(2, 4)), job("other")]
    assert hosts(log(4, [(10, 3, False)], 100, range(4)), jobs) == {0: [[0, 1, 2, 3], []], 10: [[0, 1], [2]]}


def test_a_job_that_snoozes_keeps_its_hosts_and_blacklists_none_that_it_was_not_given():
    events = log(3, [(10, 1, True)], 200, [0])
    assert hosts(events, [job()], snooze_s=50) == {0: [[0]], 10: [[0]], 50: [[0, 1]]}


@pytest.mark.parametrize("cooldown", ["never", "10", "60:10", "0:10", "10:nan", "1:2:3", "1:inf"])
def test_a_cooldown_that_makes_no_sense_is_refused(cooldown):
    with pytest.raises(InputError, match="cooldown"):
        HorovodOptions(cooldown=cooldown)
