"""Job sources of few lines: a rung at which half of the trials go on, and one crash; and one that goes by the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bfreplay.workload import ElasticJob, Ending, JobReport, Orders, Verdict
from tests.replay.tiny import SECOND, job


class LittleHalving:
    """``n`` trials that pause at 100 samples until all have reported; the better half goes on, the others are pruned.

    Trial 1 crashes at 50 samples. Scores are ``(7 * trial) % 5``, plus a hundredth of the samples.
    """

    name = "little halving"
    higher_is_better = True
    sources = ()

    def __init__(self, n: int = 4, up_s: float = 0.0, down_s: float = 0.0, work: float = 400.0) -> None:
        self.n, self.up_s, self.down_s, self.work = n, up_s, down_s, work

    def begin(self, window_start_us: int, window_end_us: int) -> None:
        self.start_us = window_start_us
        self.submitted = False
        self.at_rung: dict[str, float] = {}
        self.n_left = self.n

    def ask(self, now_us: int) -> Orders:
        if not self.submitted:
            self.submitted = True
            return Orders(submit=tuple(self._trial(k, now_us) for k in range(self.n)))
        if self.at_rung and len(self.at_rung) == self.n_left:
            ranked = sorted(self.at_rung, key=lambda name: (-self.at_rung[name], name))
            keep = (len(ranked) + 1) // 2
            self.at_rung, self.n_left = {}, -1
            return Orders(resume=tuple(sorted(ranked[:keep])), stop=dict.fromkeys(ranked[keep:], Ending.PRUNED))
        return Orders()

    def tell(self, report: JobReport) -> Verdict:
        score = (7 * int(report.job[1:])) % 5 + report.samples / 100
        if report.job == "t1" and report.samples == 50.0:
            self.n_left -= 1
            return Verdict(ending=Ending.FAILED)
        if report.samples == 100.0:
            self.at_rung[report.job] = score
            return Verdict(score, pause=True)
        return Verdict(score)

    def describe(self) -> dict[str, object]:
        return {"n": self.n, "higher_is_better": True, "budget": {"node_hours": 1.0, "hours": None}}

    def _trial(self, k: int, now_us: int):
        trial = job(f"t{k}", work=self.work, up_s=self.up_s, down_s=self.down_s, submit_s=now_us / SECOND)
        return replace(trial, model="net", report_at_samples=(50.0, 100.0))


class Scripted:
    """Jobs that all come at the start and pause at 100 samples if told to; resumed and stopped at given seconds."""

    name = "scripted"
    higher_is_better = True
    sources = ()

    def __init__(
        self,
        jobs: Sequence[ElasticJob] = (),
        *,
        pausing: Sequence[str] = (),
        resume: Mapping[int, Sequence[str]] | None = None,
        stop: Mapping[int, Mapping[str, Ending]] | None = None,
        start_s: int = 0,
    ) -> None:
        self.jobs, self.pausing, self.start_s = tuple(jobs), tuple(pausing), start_s
        self.resume, self.stop = dict(resume or {}), dict(stop or {})

    def begin(self, window_start_us: int, window_end_us: int) -> None:
        self.to_come = sorted({self.start_s, *self.resume, *self.stop})

    def ask(self, now_us: int) -> Orders:
        second = None
        if self.to_come and self.to_come[0] * SECOND <= now_us:
            second = self.to_come.pop(0)
        return Orders(
            submit=self.jobs if second == self.start_s else (),
            resume=tuple(self.resume.get(second, ())),
            stop=self.stop.get(second, {}),
            ask_again_us=self.to_come[0] * SECOND if self.to_come else None,
        )

    def tell(self, report: JobReport) -> Verdict:
        return Verdict(1.0, pause=report.job in self.pausing and report.samples == 100.0)

    def describe(self) -> dict[str, object]:
        return {"n": len(self.jobs), "higher_is_better": True}


def pausing_job(name: str = "a", **given):
    """One that reports, and may pause, at 100 samples: after 10 s on one node, 2.5 s on four."""
    return replace(job(name, **given), report_at_samples=(100.0,))
