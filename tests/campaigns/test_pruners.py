import pytest

from bfreplay.campaigns.parts import Advice, TrialState
from bfreplay.campaigns.pruners import PRUNERS, Asha, Median, SuccessiveHalving, pruner_of
from bfreplay.errors import InputError

GO, PRUNE, WAIT = Advice.CONTINUE, Advice.PRUNE, Advice.WAIT


def advices(pruner, scores, epoch=1, higher_is_better=True):
    pruner.begin(higher_is_better)
    return [pruner.advise(number, epoch, score) for number, score in enumerate(scores)]


# asynchronous successive halving


def test_asha_compares_a_trial_with_those_that_came_before():
    # kept of 1, 2, 3, 4, 5, 6 scores so far with eta 3: 1, 1, 1, 1, 1, 2
    assert advices(Asha(eta=3), [5, 4, 6, 5.5, 1, 5.9]) == [GO, PRUNE, GO, PRUNE, PRUNE, GO]


def test_asha_turns_round_where_lower_is_better():
    up = advices(Asha(), [5, 4, 6, 5.5, 1, 5.9])
    assert advices(Asha(), [-5, -4, -6, -5.5, -1, -5.9], higher_is_better=False) == up


def test_of_equal_scores_asha_lets_all_go_on():
    assert advices(Asha(), [1, 1, 1, 0.5]) == [GO, GO, GO, PRUNE]


def test_rungs_of_asha_do_not_mix():
    pruner = Asha()
    pruner.begin(True)
    pruner.advise(0, 1, 0.9)
    assert pruner.advise(1, 3, 0.1) == GO


def test_rungs_lie_at_powers_of_eta_below_the_end():
    assert list(Asha(eta=3, first_epochs=1).report_epochs(27)) == [1, 3, 9]
    assert list(Asha(eta=3, first_epochs=1).report_epochs(28)) == [1, 3, 9, 27]
    assert list(SuccessiveHalving(eta=2, first_epochs=3).report_epochs(20)) == [3, 6, 12]


@pytest.mark.parametrize("kind", [Asha, SuccessiveHalving])
def test_a_first_rung_at_the_end_of_a_trial_is_refused(kind):
    with pytest.raises(InputError, match="no trial would ever be compared"):
        kind(first_epochs=4).report_epochs(4)


def test_begun_again_a_pruner_has_forgotten():
    pruner = Asha()
    assert advices(pruner, [9]) == [GO]
    assert advices(pruner, [1]) == [GO]


# synchronous successive halving


def test_successive_halving_decides_when_nobody_is_under_way():
    pruner = SuccessiveHalving(eta=3)
    assert advices(pruner, [1, 7, 3, 5, 2, 6]) == [WAIT] * 6
    assert pruner.released(1).promoted == ()
    released = pruner.released(0)
    assert (released.promoted, released.pruned) == ((1, 5), (3, 2, 4, 0))
    assert pruner.released(0).promoted == ()


def test_of_equal_scores_successive_halving_takes_the_lower_number():
    pruner = SuccessiveHalving(eta=2)
    advices(pruner, [4, 4, 4, 4])
    assert pruner.released(0).promoted == (0, 1)


def test_at_least_one_trial_goes_on_from_a_rung():
    pruner = SuccessiveHalving(eta=4)
    advices(pruner, [1, 2], higher_is_better=False)
    assert pruner.released(0).promoted == (0,)


def test_a_trial_that_ended_while_it_waited_does_not_count():
    pruner = SuccessiveHalving(eta=2)
    advices(pruner, [1, 2, 9])
    pruner.ended(2, TrialState.STOPPED, 9.0)
    assert pruner.released(0).promoted == (1,)


# the median


def test_the_median_needs_enough_others():
    # the others before each: none, one, two (median 2), three (median 1), four (median 1.5)
    assert advices(Median(warmup_trials=2), [3, 1, 0, 2, 1.4]) == [GO, GO, PRUNE, GO, PRUNE]


def test_a_trial_at_the_median_goes_on():
    assert advices(Median(warmup_trials=1), [2, 2, 2]) == [GO, GO, GO]


def test_nobody_is_pruned_before_the_warm_up_epochs():
    pruner = Median(warmup_trials=1, warmup_epochs=3)
    pruner.begin(True)
    for epoch, wanted in ((1, GO), (2, GO), (3, PRUNE)):
        pruner.advise(0, epoch, 5)
        assert pruner.advise(1, epoch, 1) == wanted


@pytest.mark.parametrize(("compare", "wanted"), [("best", GO), ("last", PRUNE)])
def test_the_median_takes_the_best_score_or_the_last_one(compare, wanted):
    pruner = Median(warmup_trials=1, compare=compare)
    pruner.begin(True)
    pruner.advise(0, 1, 3)
    pruner.advise(1, 1, 9)
    pruner.advise(0, 2, 4)
    assert pruner.advise(1, 2, 1) == wanted  # best 9, last 1, against 4


def test_the_median_looks_every_so_many_epochs():
    assert list(Median(every_epochs=5).report_epochs(20)) == [5, 10, 15]


# by name


@pytest.mark.parametrize("kind", PRUNERS.names())
def test_what_a_pruner_says_of_itself_makes_it_again(kind):
    said = pruner_of(kind).describe()
    assert said.pop("kind") == kind
    assert pruner_of(kind, said).describe() == {"kind": kind, **said}


@pytest.mark.parametrize(
    ("kind", "options", "column"),
    [
        ("asha", {"eta": 1}, "eta"),
        ("asha", {"eta": True}, "eta"),
        ("asha", {"eta": 2.5}, "eta"),
        ("asha", {"first_epochs": 0}, "first_epochs"),
        ("asha", {"ate": 3}, "ate"),
        ("successive-halving", {"eta": "3"}, "eta"),
        ("median", {"warmup_trials": 0}, "warmup_trials"),
        ("median", {"warmup_epochs": -1}, "warmup_epochs"),
        ("median", {"every_epochs": 0}, "every_epochs"),
        ("median", {"compare": "bets"}, "compare"),
        ("none", {"eta": 3}, "eta"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(kind, options, column):
    with pytest.raises(InputError) as caught:
        pruner_of(kind, options)
    assert caught.value.column == column
    assert caught.value.expected
    assert caught.value.fix


def test_a_strangers_pruner_is_made_from_its_options(tmp_path, monkeypatch):
    (tmp_path / "my_pruner.py").write_text(
        "from bfreplay.campaigns.pruners import NoPruner\n"
        "class Mine(NoPruner):\n"
        "    def __init__(self, strict=False):\n"
        "        self.strict = strict\n"
        "class Broken(NoPruner):\n"
        "    def __init__(self):\n"
        "        raise ValueError('not today')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert pruner_of("my_pruner:Mine", {"strict": True}).strict is True
    with pytest.raises(InputError, match=r"not today.*my_pruner\.py, line 7"):
        pruner_of("my_pruner:Broken")
    with pytest.raises(InputError, match="did you mean 'strict'"):
        pruner_of("my_pruner:Mine", {"stict": True})
