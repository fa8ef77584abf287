"""What the contract of job sources asks for is broken, one thing at a time."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.scalability import TabulatedCurve
from bfreplay.testing import JobSourceContract
from bfreplay.workload import ElasticJob, Ending, Orders, Verdict

CURVE = TabulatedCurve((0, 1, 4), (0.0, 1.0, 3.0))
ORDERS = (
    "test_its_orders_can_be_carried_out",
    "test_begun_again_it_gives_the_same_orders",
    "test_two_of_them_give_the_same_orders",
)


class Good:
    """Three jobs, one after the other; each pauses at half of its work and is resumed a minute later."""

    name = "good"
    higher_is_better = True
    sources = ()
    made = itertools.count()

    def begin(self, window_start_us, window_end_us):
        self.start_us, self.number, self.is_running, self.paused = window_start_us, 0, False, None

    def ask(self, now_us):
        if self.paused is not None:
            name, since_us = self.paused
            if now_us < since_us + 60_000_000:
                return Orders(ask_again_us=since_us + 60_000_000)
            self.paused = None
            return Orders(resume=(name,))
        if self.is_running or self.number == 3:
            return Orders()
        self.number += 1
        self.is_running = True
        return Orders(submit=(self.job(now_us),))

    def job(self, now_us):
        return ElasticJob(
            f"job-{self.number}", now_us, 1, 4, 1.0, 1.0, self.work(), CURVE, report_at_samples=(self.work() / 2,)
        )

    def work(self):
        return 1_000.0

    def tell(self, report):
        if report.is_finished:
            self.is_running = False
            return Verdict(1.0)
        self.paused = (report.job, report.time_us)
        return Verdict(0.5, pause=True)

    def describe(self):
        return {"name": self.name}


class Nameless(Good):
    name = ""


class Undescribed(Good):
    def describe(self):
        return {"rate": float("nan")}


class Undecided(Good):
    higher_is_better = None


class DescribesWhereItIs(Good):
    number = 0

    def describe(self):
        return {"number": self.number}


class Submitless(Good):
    def ask(self, now_us):
        return Orders()


class NeverDone(Good):
    def work(self):
        return 1e12


class NamesTwice(Good):
    def job(self, now_us):
        return replace(super().job(now_us), name="job")


class SubmitsInThePast(Good):
    def job(self, now_us):
        return super().job(now_us - 1)


class ResumesWhoRuns(Good):
    def ask(self, now_us):
        orders = super().ask(now_us)
        return replace(orders, resume=(*orders.resume, "job-1")) if self.number == 2 else orders


class StopsWhoHasGone(Good):
    def ask(self, now_us):
        orders = super().ask(now_us)
        return replace(orders, stop={"job-1": Ending.STOPPED}) if self.number == 3 else orders


class AsksForNow(Good):
    def ask(self, now_us):
        return replace(super().ask(now_us), ask_again_us=now_us)


class ScoresNothing(Good):
    def tell(self, report):
        return replace(super().tell(report), score=float("nan"))


class PausesAndEnds(Good):
    def tell(self, report):
        return replace(super().tell(report), pause=True, ending=Ending.PRUNED)


class AnswersNothing(Good):
    def tell(self, report):
        super().tell(report)


class Remembers(Good):
    def begin(self, window_start_us, window_end_us):
        number = getattr(self, "number", 0)
        super().begin(window_start_us, window_end_us)
        self.number = min(number, 1)


class CountsItself(Good):
    def __init__(self):
        self.which = next(self.made)

    def work(self):
        return 1_000.0 + self.which


class LooksAtTheClock(Good):
    def work(self):
        return 1_000.0 + time.time() % 1_000


class LooksAtTheOtherClock(Good):
    def work(self):
        return 1_000.0 + time.perf_counter_ns() % 1_000


class DrawsFromPython(Good):
    def begin(self, window_start_us, window_end_us):
        super().begin(window_start_us, window_end_us)
        self.drawn = random.random()

    def work(self):
        return 1_000.0 + self.drawn


class DrawsFromNumpy(DrawsFromPython):
    def begin(self, window_start_us, window_end_us):
        super().begin(window_start_us, window_end_us)
        self.drawn = float(np.random.random())  # noqa: NPY002


class KnowsTheCalendar(Good):
    def work(self):
        return 1_000.0 + self.start_us // 86_400_000_000 % 7


class FailsInAReplay(Good):
    def begin(self, window_start_us, window_end_us):
        super().begin(window_start_us, window_end_us)
        self.number = 3


def broken(source, test):
    """What the test says of the source; None if it passes."""
    contract = type("Contract", (JobSourceContract,), {"source": source, "hours": 4.0})()
    with pytest.MonkeyPatch.context() as patch:
        arguments = {"test_neither_the_clock_nor_global_random_numbers_matter": (patch,)}.get(test, ())
        try:
            getattr(contract, test)(*arguments)
        except (AssertionError, ValueError) as error:
            return error
    return None


class TestTheGoodOne(JobSourceContract):
    source = Good
    hours = 4.0


@pytest.mark.parametrize(
    ("source", "test"),
    [
        (Nameless, "test_it_says_what_it_is"),
        (Undescribed, "test_it_says_what_it_is"),
        (Undecided, "test_it_says_what_it_is"),
        (DescribesWhereItIs, "test_a_replay_does_not_change_what_it_says"),
        *(
            (source, ORDERS[0])
            for source in (
                Submitless,
                NeverDone,
                NamesTwice,
                SubmitsInThePast,
                ResumesWhoRuns,
                StopsWhoHasGone,
                AsksForNow,
                ScoresNothing,
                PausesAndEnds,
                AnswersNothing,
            )
        ),
        (Remembers, "test_begun_again_it_gives_the_same_orders"),
        (Remembers, "test_begun_again_in_the_middle_it_gives_the_same_orders"),
        (CountsItself, "test_two_of_them_give_the_same_orders"),
        (LooksAtTheClock, "test_neither_the_clock_nor_global_random_numbers_matter"),
        (LooksAtTheOtherClock, "test_neither_the_clock_nor_global_random_numbers_matter"),
        (DrawsFromPython, "test_neither_the_clock_nor_global_random_numbers_matter"),
        (DrawsFromNumpy, "test_neither_the_clock_nor_global_random_numbers_matter"),
        (KnowsTheCalendar, "test_another_window_only_moves_its_orders"),
    ],
)
def test_a_broken_source_breaks_the_contract(source, test):
    assert broken(Good, test) is None
    assert broken(source, test) is not None


def test_a_source_without_work_breaks_the_contract_in_a_replay(tmp_path):
    contract = type("Contract", (JobSourceContract,), {"source": FailsInAReplay, "hours": 4.0})()
    with pytest.raises(AssertionError, match="nothing was trained"):
        contract.test_a_replay_with_it_closes_its_ledger_and_repeats_its_bytes(tmp_path)


def test_a_source_that_differs_when_asked_again_breaks_the_contract_of_saved_states():
    contract = type("Contract", (JobSourceContract,), {"source": CountsItself, "hours": 4.0})()
    with pytest.raises(InputError, match="answers otherwise than before the state was saved"):
        contract.test_a_replay_with_it_can_be_saved_and_resumed_at_any_instant()


def test_a_source_that_differs_breaks_the_contract_in_a_replay(tmp_path):
    contract = type("Contract", (JobSourceContract,), {"source": CountsItself, "hours": 4.0})()
    with pytest.raises(AssertionError, match=r"parquet|json"):
        contract.test_a_replay_with_it_closes_its_ledger_and_repeats_its_bytes(tmp_path)
