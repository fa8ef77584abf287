"""A job source of your own: a learning rate is searched by halving an interval. ``python examples/own_job_source.py``.

Each job trains one model, and the next pair of jobs depends on which of the last two was better. The command line
takes it too: ``bfreplay replay sample --jobs own_job_source:Bisection``.
"""

import math

import bfreplay
from bfreplay.workload import JobReport, Orders, Verdict


class Bisection:
    """Two jobs at a time, at one and two thirds of an interval of log10(learning rate); the better one shrinks it."""

    name = "bisection"
    higher_is_better = False  # scores are losses
    sources = ()  # files that it was made from, with their SHA-256: none
    rounds = 6
    curve = bfreplay.TabulatedCurve([0, 1, 8], [0.0, 100.0, 640.0])

    def begin(self, window_start_us: int, window_end_us: int) -> None:
        """A replay begins: forget everything."""
        self.low, self.high = -6.0, 0.0
        self.round = 0
        self.losses: dict[str, float] = {}

    def ask(self, now_us: int) -> Orders:
        """The next two jobs, when both of the last round are done."""
        if self.round > 0:
            if len(self.losses) < 2:
                return Orders()  # asked again when a job reports
            left, right = self.losses[f"round-{self.round}-left"], self.losses[f"round-{self.round}-right"]
            third = (self.high - self.low) / 3
            if left < right:
                self.high -= third
            else:
                self.low += third
        if self.round == self.rounds:
            return Orders()
        self.round += 1
        self.losses = {}
        return Orders(submit=tuple(self.job(f"round-{self.round}-{side}", now_us) for side in ("left", "right")))

    def tell(self, report: JobReport) -> Verdict:
        """A job has finished: what it scored. Here a formula stands for the training."""
        exponent = self.low + (self.high - self.low) * (1 if report.job.endswith("left") else 2) / 3
        loss = 0.2 + (exponent + 2.5) ** 2 / 10
        self.losses[report.job] = loss
        return Verdict(loss)

    def job(self, name: str, now_us: int) -> bfreplay.ElasticJob:
        """A job of 200,000 samples on one to eight nodes, submitted now."""
        return bfreplay.ElasticJob(
            name,
            now_us,
            min_nodes=1,
            max_nodes=8,
            scale_up_cost_s=20.0,
            scale_down_cost_s=5.0,
            work_samples=200_000.0,
            throughput=self.curve,
            model="net",
        )

    def describe(self) -> dict[str, object]:
        """Every parameter, for the run's record."""
        return {"source": self.name, "rounds": self.rounds}


if __name__ == "__main__":
    search = Bisection()
    run = bfreplay.replay_log("sample", search)
    best = math.pow(10, (search.low + search.high) / 2)
    hours = run.summary["ledger"]["node_hours"]["useful"]
    print(f"Used {hours:.1f} idle node-hours for {run.summary['jobs']['finished']} jobs; learning rate near {best:.2g}")
