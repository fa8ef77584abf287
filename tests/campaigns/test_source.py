"""Trials as jobs: when they come, wait, crash and end. Every trial: four epochs of 100 s on one node."""

from collections import Counter

import pytest

from bfreplay.campaigns.campaign import Arrival, Budget, Retries
from bfreplay.campaigns.parts import Advice, Released, TrialState
from bfreplay.campaigns.pruners import Asha, Median, NoPruner, SuccessiveHalving
from bfreplay.errors import BfreplayError, InputError
from bfreplay.testing.job_source import drive
from bfreplay.workload import Ending, JobSource
from tests.campaigns.small_campaigns import HOUR, SECOND, campaign, model, source

DAY = 24 * HOUR


def run(made, slots=4, end_us=DAY, start_us=0):
    return drive(made, start_us, end_us, slots)


def submitted_at(driven):
    return [job.submit_us // SECOND for job in driven.submitted.values()]


def reports(driven):
    """(trial's number, seconds, score) of each report."""
    return [
        (int(answer.report.job.split("-")[1]), answer.report.time_us // SECOND, answer.verdict.score)
        for answer in driven.answers
    ]


# a plain campaign


def test_a_campaign_is_a_job_source():
    assert isinstance(source(), JobSource)


def test_without_pruner_and_limit_all_trials_come_at_once_and_finish():
    made = source()
    driven = run(made)
    assert list(driven.submitted) == ["c-0000", "c-0001", "c-0002", "c-0003"]
    assert submitted_at(driven) == [0] * 4
    assert reports(driven) == [(0, 400, 1), (1, 400, 2), (2, 400, 3), (3, 400, 4)]
    assert [(t.state, t.score, t.epochs, t.samples) for t in made.trials] == [
        (TrialState.FINISHED, score, 4, 400.0) for score in (1, 2, 3, 4)
    ]
    assert [t.node_hours for t in made.trials] == pytest.approx([400 / 3600] * 4)


def test_a_trial_has_the_work_of_its_epochs_and_the_shape_of_its_model():
    job = next(iter(run(source(campaign(1, 4), [1])).submitted.values()))
    assert (job.work_samples, job.report_at_samples) == (400.0, ())
    assert (job.min_nodes, job.max_nodes, job.model, job.deadline_us) == (1, 4, "m", None)


def test_scores_can_be_reported_for_the_record_without_a_pruner():
    driven = run(source(campaign(1, 4, report_every_epochs=2), [4]))
    assert reports(driven) == [(0, 200, 2.0), (0, 400, 4.0)]


def test_a_deadline_counts_from_a_trials_submit_time():
    made = source(campaign(2, 4, models=(model(deadline_s=500),), arrival=Arrival("every", every_s=60)), [1, 2])
    assert [job.deadline_us // SECOND for job in run(made, start_us=10 * SECOND).submitted.values()] == [510, 570]


def test_models_take_turns_are_drawn_or_are_searched():
    models = (model("a"), model("b", 200.0), model("c"))
    turns = run(source(campaign(5, models=models, kind="nas"), range(5)))
    assert [job.model for job in turns.submitted.values()] == ["a", "b", "c", "a", "b"]
    assert [job.work_samples for job in turns.submitted.values()] == [400, 800, 400, 400, 800]
    drawn = [campaign(90, models=models, kind="nas", model_choice="by-seed").model_of(n, {}).name for n in range(90)]
    assert min(Counter(drawn).values()) > 15
    searched = campaign(5, models=models, kind="nas", model_choice="searched")
    assert searched.model_of(0, {"model": "b"}).name == "b"
    with pytest.raises(InputError, match="names no model"):
        searched.model_of(0, {})


# arrivals and room


def test_trials_come_when_they_arrive():
    made = source(campaign(4, arrival=Arrival("every", every_s=50), start_after_s=100))
    assert submitted_at(run(made)) == [100, 150, 200, 250]


def test_no_more_trials_are_in_flight_than_there_is_room_for():
    made = source(campaign(4, parallel=1, arrival=Arrival("every", every_s=50)))
    assert submitted_at(run(made)) == [0, 400, 800, 1200]


def test_an_arrival_after_room_appeared_is_waited_for():
    made = source(campaign(3, parallel=2, arrival=Arrival("every", every_s=600)), [1, 2, 3])
    assert submitted_at(run(made)) == [0, 600, 1200]


class ThreeTrials:
    """Stops proposing; remembers what it was told."""

    def __init__(self):
        self.told = []

    def begin(self, higher_is_better):
        self.told.clear()

    def propose(self, number):
        return {"number": number} if number < 3 else None

    def ended(self, number, state, score):
        self.told.append((number, state, score))

    def describe(self):
        return {}


def test_a_proposer_may_end_the_campaign_and_hears_how_trials_ended():
    proposer = ThreeTrials()
    made = source(campaign(8), [3, 1, 2], Asha(eta=2), proposer)
    assert len(run(made).submitted) == 3
    pruned, finished = TrialState.PRUNED, TrialState.FINISHED
    assert proposer.told == [(1, pruned, 0.25), (2, pruned, 0.5), (0, finished, 3.0)]
    assert [t.params for t in made.trials] == [{"number": 0}, {"number": 1}, {"number": 2}]


# pruning


def test_pruned_trials_leave_at_the_report():
    driven = run(source(finals=[4, 1, 3, 2], pruner=Asha(eta=2)))
    assert reports(driven)[:4] == [(0, 100, 1.0), (1, 100, 0.25), (2, 100, 0.75), (3, 100, 0.5)]
    # of 1, 2, 3, 4 scores the best 1, 1, 1, 2 go on: trial 3 is third of four
    assert driven.endings == dict.fromkeys(["c-0001", "c-0002", "c-0003"], Ending.PRUNED)
    assert driven.finished == ["c-0000"]


def test_waiting_trials_hold_no_room_and_go_on_when_all_have_reported():
    made = source(campaign(4, parallel=1), [4, 1, 3, 2], SuccessiveHalving(eta=2, first_epochs=2))
    driven = run(made)
    assert submitted_at(driven) == [0, 200, 400, 600]
    paused = [answer.report.job for answer in driven.answers if answer.verdict.pause]
    assert paused == ["c-0000", "c-0001", "c-0002", "c-0003"]
    at_800 = next(orders for time_us, orders in driven.orders if time_us == 800 * SECOND)
    assert at_800.resume == ("c-0000",)  # and trial 2 when there is room
    assert at_800.stop == {"c-0001": Ending.PRUNED, "c-0003": Ending.PRUNED}
    assert reports(driven)[4:] == [(0, 1000, 4.0), (2, 1200, 3.0)]
    assert [t.state for t in made.trials] == [TrialState(s) for s in ("finished", "pruned", "finished", "pruned")]


def test_a_rung_is_decided_when_the_proposer_has_no_more():
    for parallel in (None, 1):  # it says so before anybody waits, and when all of them do
        made = source(campaign(8, parallel=parallel), [1, 2, 3], SuccessiveHalving(eta=3), ThreeTrials())
        assert run(made).finished == ["c-0002"]


def test_a_rung_does_not_wait_for_a_trial_that_failed():
    retries = Retries(failures_per_epoch=0.1, most=0)
    made = source(campaign(30, retries=retries), range(30), SuccessiveHalving(eta=3))
    run(made, slots=30)
    states = Counter(t.state for t in made.trials)
    assert states[TrialState.FAILED] > 2
    assert states[TrialState.FINISHED] > 0
    assert sum(states.values()) == 30
    assert None not in states


def test_a_lower_score_is_better_if_the_campaign_says_so():
    made = source(campaign(4, higher_is_better=False), [1, 2, 3, 4], Asha(eta=2))
    assert not made.higher_is_better
    assert run(made).finished == ["c-0000"]
    assert [t.best_score for t in made.trials] == [0.25, 0.5, 0.75, 1.0]


class Confused(NoPruner):
    def __init__(self, epochs=(1,), advice=Advice.WAIT, released=()):
        self.epochs, self.advice, self.of = epochs, advice, released

    def report_epochs(self, epochs):
        return self.epochs

    def advise(self, number, epoch, score):
        return self.advice

    def released(self, n_under_way):
        return Released(promoted=self.of)


@pytest.mark.parametrize("epochs", [(0, 1), (4,), (2, 1), (1, 1)])
def test_a_pruner_that_wants_reports_outside_a_trial_is_refused(epochs):
    with pytest.raises(BfreplayError, match="must rise"):
        source(pruner=Confused(epochs))


def test_a_pruner_that_gives_no_advice_is_told_so():
    with pytest.raises(BfreplayError, match="advice is None"):
        run(source(pruner=Confused(advice=None)))


@pytest.mark.parametrize("released", [(7,), (0, 0), (0,)])
def test_a_pruner_that_releases_who_does_not_wait_is_told_so(released):
    with pytest.raises(BfreplayError, match="of those that wait"):
        run(source(pruner=Confused(released=released)))


# crashes


def crashing(n=30, **given):
    """Trials of four epochs that crash in every second epoch or so."""
    retries = Retries(**{"failures_per_epoch": 0.4, "most": 2, **given})
    return source(campaign(n, retries=retries, report_every_epochs=1), range(n))


def test_a_retry_is_a_new_job_with_what_is_left_from_the_last_whole_epoch():
    made = crashing()
    driven = run(made, slots=30)
    for answer in driven.answers:
        name = answer.report.job
        if answer.verdict.ending is Ending.FAILED and "retry" not in name and f"{name}-retry-1" in driven.submitted:
            done = answer.report.samples // 100
            retry = driven.submitted[f"{name}-retry-1"]
            assert retry.submit_us == answer.report.time_us
            assert retry.work_samples == 400.0 - 100.0 * done
            assert answer.verdict.score is None
    attempts = Counter(t.attempt.index + 1 for t in made.trials)
    assert set(attempts) == {1, 2, 3}
    assert sum(n * many for n, many in attempts.items()) == len(driven.submitted)


def test_no_epoch_is_reported_twice_and_the_last_is_the_trials():
    for origin in ("checkpoint", "start"):
        made = crashing(origin=origin, most=50)
        driven = run(made, slots=30, end_us=10 * DAY)
        scores = {}
        for number, _, score in reports(driven):
            if score is not None:
                scores.setdefault(number, []).append(score)
        for number in range(1, 30):
            assert scores[number] == [number * epoch / 4 for epoch in (1, 2, 3, 4)]
        assert {t.state for t in made.trials} == {TrialState.FINISHED}


def test_from_the_start_a_retry_has_all_the_work():
    driven = run(crashing(origin="start"), slots=30)
    assert {job.work_samples for job in driven.submitted.values()} == {400.0}


def test_a_trial_whose_retries_are_used_up_has_failed():
    made = crashing(most=1)
    run(made, slots=30)
    failed = [t for t in made.trials if t.state is TrialState.FAILED]
    assert failed
    assert {t.attempt.index + 1 for t in failed} == {2}
    without = crashing(most=0)
    run(without, slots=30)
    assert {t.attempt.index + 1 for t in without.trials} == {1}
    assert sum(t.state is TrialState.FAILED for t in without.trials) > len(failed)


def test_the_deadline_of_a_retry_is_that_of_its_trial():
    retries = Retries(failures_per_epoch=0.4)
    driven = run(source(campaign(30, models=(model(deadline_s=900),), retries=retries), range(30)), slots=30)
    assert len(driven.submitted) > 30
    assert {job.deadline_us for job in driven.submitted.values()} == {900 * SECOND}


def test_a_trial_crashes_at_the_same_progress_whatever_the_others_do():
    def crashes(driven):
        return {t.report.job: t.report.samples for t in driven.answers if t.verdict.ending is Ending.FAILED}

    many, few = crashes(run(crashing(), slots=30)), crashes(run(crashing(), slots=2))
    assert many == few
    assert many


# budgets


def test_after_its_hours_everything_ends():
    made = source(campaign(4, budget=Budget(hours=0.1), parallel=1, start_after_s=40))
    driven = run(made, start_us=DAY, end_us=2 * DAY)
    assert [job.submit_us for job in driven.submitted.values()] == [DAY + 40 * SECOND]
    assert driven.endings == {"c-0000": Ending.STOPPED}
    assert driven.orders[-1][0] == DAY + 400 * SECOND
    assert made.used_up == "hours"


def test_a_trial_that_finishes_at_that_instant_has_finished():
    made = source(campaign(2, budget=Budget(hours=400 / 3600), parallel=1), [1, 2])
    driven = run(made)
    assert (driven.finished, list(driven.submitted)) == (["c-0000"], ["c-0000"])


def test_samples_overshoot_by_less_than_an_epoch_of_each():
    made = source(campaign(4, budget=Budget(samples=450)))
    driven = run(made, slots=2)
    assert sum(t.samples for t in made.trials) == 600  # two of 200 each were too few, two of 300 too many
    assert driven.endings == dict.fromkeys(driven.submitted, Ending.STOPPED)
    assert [t.state for t in made.trials] == [TrialState.STOPPED] * 4


def test_node_hours_count_crashed_attempts_too():
    retries = Retries(failures_per_epoch=0.4, most=9)
    made = source(campaign(30, retries=retries, budget=Budget(node_hours=1.0)), range(30))
    run(made, slots=3)
    assert made.used_up == "node_hours"
    assert 1.0 <= sum(t.node_hours for t in made.trials) <= 1.0 + 3 * 100 / 3600
    assert any(t.attempt.index > 0 for t in made.trials)


def test_too_many_failed_trials_end_the_campaign():
    retries = Retries(failures_per_epoch=0.5, most=0)
    made = source(campaign(30, retries=retries, budget=Budget(failed_trials=3)), range(30))
    run(made, slots=1)
    states = Counter(t.state for t in made.trials)
    assert states[TrialState.FAILED] == 3
    assert states[TrialState.STOPPED] > 0
    assert made.used_up == "failed_trials"


def test_waiting_trials_are_stopped_too():
    made = source(campaign(4, parallel=1, budget=Budget(hours=0.15)), [4, 1, 3, 2], SuccessiveHalving(first_epochs=2))
    driven = run(made)  # 540 s: two wait, one runs
    assert driven.endings == dict.fromkeys(["c-0000", "c-0001", "c-0002"], Ending.STOPPED)


# independence and repetition


@pytest.mark.parametrize("pruner", [NoPruner, lambda: Median(warmup_trials=2), Asha, SuccessiveHalving])
def test_begun_again_a_campaign_repeats(pruner):
    made = source(campaign(12, retries=Retries(0.1)), range(12), pruner())
    first = run(made, slots=3)
    again = run(made, slots=3)
    assert (first.orders, first.answers) == (again.orders, again.answers)
    assert len(first.answers) > 12


def test_trials_are_called_by_number_with_enough_digits():
    assert campaign(20_000).trial_name(7) == "c-00007"
    assert campaign(20).trial_name(7, 2) == "c-0007-retry-2"
