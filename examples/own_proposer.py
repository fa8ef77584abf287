"""A proposer of your own, which climbs a hill. ``python examples/own_proposer.py``.

``own_proposer.toml`` names it; the command line: ``bfreplay replay sample --jobs own_proposer.toml --allow-code``.
"""

from pathlib import Path
from typing import Any

import bfreplay
from bfreplay.campaigns.parts import Purpose, stream


class HillClimbing:
    """Steps of shrinking size around the best trial so far, after ``first`` random ones."""

    def __init__(self, setting: Any, first: int = 10, step: float = 0.3) -> None:
        self.space, self.seed, self.first, self.step = setting.space, setting.seed, first, step

    @classmethod
    def from_campaign(cls, setting: Any, options: dict[str, Any]) -> "HillClimbing":
        """Make the proposer of a campaign; ``options`` are the keys of ``[proposer]``."""
        return cls(setting, **options)

    def begin(self, higher_is_better: bool) -> None:
        """A replay begins: forget everything."""
        self.sign = 1 if higher_is_better else -1
        self.proposed: dict[int, dict[str, Any]] = {}
        self.best: dict[str, Any] | None = None
        self.best_score = 0.0

    def propose(self, number: int) -> dict[str, Any] | None:
        """Hyper-parameters of trial ``number``; ``None``: no more trials."""
        rng = stream(self.seed, Purpose.PARAMS, number)
        params: dict[str, Any] = self.space.sample(rng)
        if number >= self.first and self.best is not None:
            near = self.best["lr"] * 10 ** rng.normal(0.0, self.step)
            params["lr"] = min(max(near, 1e-5), 1e-1)
        self.proposed[number] = params
        return params

    def ended(self, number: int, state: str, score: float | None) -> None:
        """A trial has finished, was pruned, failed or stopped, with its last score if it has one."""
        if score is not None and (self.best is None or self.sign * score > self.sign * self.best_score):
            self.best, self.best_score = self.proposed[number], score

    def describe(self) -> dict[str, Any]:
        """Every parameter, as plain data, for ``run.json``."""
        return {"kind": "hill-climbing", "seed": self.seed, "first": self.first, "step": self.step}


if __name__ == "__main__":
    campaign = bfreplay.load_campaign(Path(__file__).with_suffix(".toml"), allow_code=True)
    run = bfreplay.replay_log("sample", campaign, efficiency=False)
    print(f"best simulated score {run.summary['scores']['best_score']:.4f}")
