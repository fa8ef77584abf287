"""What a source of jobs must do."""

from __future__ import annotations

import json
import random
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings, replay_log
from bfreplay.testing.source_driver import Drive, drive
from bfreplay.workload import ElasticJob, JobSource, Orders

SECOND = 1_000_000
START_US = 1_700_000_000 * SECOND
_MEASURED = ("session.json", "timings.parquet")
_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time")


class JobSourceContract:
    """Inherit, and set ``source`` to your class (called without arguments), or override ``make``.

    ``hours`` and ``n_nodes`` are the size of what the tests replay: enough for a job of the source to finish.
    """

    source: type[Any]
    hours: float = 24.0
    n_nodes: int = 16

    def make(self) -> JobSource:
        """Return a new source, as the command line makes one."""
        made: JobSource = self.source()
        return made

    def _driven(self, source: JobSource) -> Drive:
        return drive(source, START_US, START_US + round(self.hours * 3_600) * SECOND)

    def test_it_says_what_it_is(self) -> None:
        made = self.make()
        assert isinstance(made, JobSource)
        assert isinstance(made.name, str)
        assert made.name
        assert isinstance(made.higher_is_better, bool)
        assert all(isinstance(name, str) and isinstance(digest, str) for name, digest in made.sources)
        json.dumps(made.describe(), allow_nan=False)

    def test_a_replay_does_not_change_what_it_says(self) -> None:
        made = self.make()
        before = json.dumps(made.describe(), sort_keys=True)
        self._driven(made)
        assert json.dumps(made.describe(), sort_keys=True) == before

    def test_its_orders_can_be_carried_out(self) -> None:
        driven = self._driven(self.make())  # an order that cannot has raised
        assert driven.submitted, "it submits no job"
        assert all(isinstance(job, ElasticJob) for job in driven.submitted.values())
        assert driven.finished, f"no job finishes within {self.hours:g} h: set `hours`"

    def test_begun_again_it_gives_the_same_orders(self) -> None:
        made = self.make()
        assert _plain(self._driven(made)) == _plain(self._driven(made))

    def test_begun_again_in_the_middle_it_gives_the_same_orders(self) -> None:
        made = self.make()
        wanted = _plain(self._driven(made))
        drive(made, START_US, START_US + round(self.hours * 1_200) * SECOND)
        assert _plain(self._driven(made)) == wanted

    def test_two_of_them_give_the_same_orders(self) -> None:
        assert _plain(self._driven(self.make())) == _plain(self._driven(self.make()))

    def test_another_window_only_moves_its_orders(self) -> None:
        made = self.make()
        length_us = round(self.hours * 3_600) * SECOND
        here = drive(made, START_US, START_US + length_us)
        later = drive(made, START_US + 86_400 * SECOND, START_US + 86_400 * SECOND + length_us)
        assert list(here.submitted) == list(later.submitted)
        assert [told.report.samples for told in here.told] == [told.report.samples for told in later.told]

    def test_neither_the_clock_nor_global_random_numbers_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wanted = _plain(self._driven(self.make()))
        python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            random.seed(12_345)
            np.random.seed(12_345)  # noqa: NPY002
            ticks = count(1_000_000_000, 3_600)
            with monkeypatch.context() as patch:
                for name in _CLOCKS:
                    unit = 10**9 if name.endswith("_ns") else 1.0
                    patch.setattr(time, name, lambda unit=unit: next(ticks) * unit)
                found = _plain(self._driven(self.make()))
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
        assert found == wanted

    def test_a_replay_with_it_closes_its_books_and_repeats_its_bytes(self, tmp_path: Path) -> None:
        log = _log(self.hours, self.n_nodes)
        folders = [tmp_path / "one", tmp_path / "other"]
        for folder in folders:
            run = replay_log(
                log, self.make(), EqualSharePolicy(), ReplaySettings(max_parallel=6), with_efficiency=False, out=folder
            )  # a ledger that does not close has raised
            assert run.summary["ledger"]["samples"] > 0, "nothing was trained"
        files = sorted(path.name for path in folders[0].iterdir())
        assert files == sorted(path.name for path in folders[1].iterdir())
        for name in files:
            if name not in _MEASURED:
                assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name


def _plain(driven: Drive) -> list[Any]:
    """All that a source said, as something that can be compared and shown."""
    asked = [(time_us, _orders(orders)) for time_us, orders in driven.orders]
    told = [(told.report, told.verdict) for told in driven.told]
    return [asked, told]


def _orders(orders: Orders) -> list[Any]:
    submitted = [
        (
            job.name, job.submit_us, job.min_nodes, job.max_nodes, job.scale_up_cost_s, job.scale_down_cost_s,
            job.work_samples, job.throughput.table(job.max_nodes).tolist(), job.weight, job.deadline_us, job.model,
            job.report_at_samples,
        )
        for job in orders.submit
    ]  # fmt: skip
    return [submitted, list(orders.resume), list(orders.stop.items()), orders.ask_again_us]


def _log(hours: float, n_nodes: int) -> NodeEvents:
    """Nodes that come and go."""
    rng = np.random.Generator(np.random.PCG64(0))
    length_s = round(hours * 3_600)
    n_events = min(200, length_s // 4)
    times = np.sort(rng.choice(np.arange(1, length_s), n_events, replace=False)) * SECOND + START_US
    node = rng.integers(0, n_nodes, n_events)
    idle = np.ones(n_nodes, dtype=bool)
    states = []
    for n in node.tolist():
        idle[n] = not idle[n]
        states.append(NodeState.IDLE if idle[n] else NodeState.BUSY)
    opening = np.full(n_nodes, NodeState.IDLE, dtype=np.int8)
    names = [f"n{k:03d}" for k in range(n_nodes)]
    end_us = START_US + length_s * SECOND
    return NodeEvents.from_arrays(names, opening, times.tolist(), node.tolist(), states, START_US, end_us)
