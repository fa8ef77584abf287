"""A job source of ten lines: a rung at which half of the trials go on, and one crash."""

from __future__ import annotations

from dataclasses import replace

from bfreplay.workload import Ending, JobReport, Orders, Verdict
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
