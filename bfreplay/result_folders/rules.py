"""The folder of ``bfreplay compare rules``: its record, declared once, and the result in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from bfreplay.result_folders.reading import AnswerResult
from bfreplay.result_folders.records import RULES, Amount, AnswerRecord, Count, JsonObject, RecordPart
from bfreplay.result_folders.tuning import TuningInputs

if TYPE_CHECKING:
    import pandas as pd


class RulesConfig(RecordPart, frozen=True, kw_only=True):
    """Options of the runs and of the command; ``costs``: what changes cost, as options of a run, by policy."""

    options: JsonObject
    count: str
    yours: str | None
    costs: dict[str, JsonObject]


LABELS = ("useful", "rescaling", "preempted", "repeated", "stalled", "unallocated")
"""Labels of the ledger, to one of which all idle node time belongs."""


class RuleRun(RecordPart, frozen=True, kw_only=True):
    """A rule with one setting on the log, or a policy to compare with.

    Parameters
    ----------
    rule, setting
        Name of the policy; its parameters that differ from the defaults, ``""`` for none.
    run
        Run in the subfolder ``sweep``.
    share, half_shares
        Of the upper bound with free rescaling, in the window and in each half.
    node_us
        Node time by label of the ledger; ``"idle_node_us"`` is their sum.
    n_restarts
        How often a job started, or went on with another number of nodes.
    delay_node_hours
        Node-hours for which batch jobs started late; ``None`` where none started.
    reserved_unused_node_hours
        Node-hours that the rule kept for jobs that could not use them; ``None`` for a rule that does not say.
    """

    rule: str
    setting: str
    run: str
    share: Annotated[float, Meta(ge=0, le=1e6)]  # more cannot be drawn
    half_shares: tuple[float, float]
    node_us: dict[str, Count]
    n_restarts: Count
    delay_node_hours: Amount | None
    reserved_unused_node_hours: Amount | None

    def __post_init__(self) -> None:
        idle_us, names = self.node_us.get("idle_node_us", 0), [f"{label}_node_us" for label in LABELS]
        labelled_us = sum(self.node_us.get(name, 0) for name in names)
        if self.node_us.keys() != {"idle_node_us", *names} or not 0 < labelled_us == idle_us < 2**63:
            raise ValueError("node_us: the labels of the ledger, which add up to idle_node_us")

    @property
    def policy(self) -> str:
        """Name with the setting, as for ``--policy``."""
        return f"{self.rule}({self.setting})" if self.setting else self.rule


class RulesRecord(AnswerRecord, frozen=True, kw_only=True):
    """``rules.json``.

    Parameters
    ----------
    job_hours
        Hours of the window times the number of jobs.
    bound_samples
        Upper bound with free rescaling, in each half of the window.
    rules
        Every rule with every setting, rule by rule, its defaults first.
    yardsticks
        Policies to compare with.
    """

    config: RulesConfig
    inputs: TuningInputs
    job_hours: Annotated[float, Meta(gt=0)]
    bound_samples: tuple[Amount, Amount]
    rules: list[RuleRun]
    yardsticks: list[RuleRun]

    @property
    def by_rule(self) -> dict[str, list[RuleRun]]:
        """Runs by rule; the first of each has the defaults."""
        names = dict.fromkeys(run.rule for run in self.rules)
        return {name: [run for run in self.rules if run.rule == name] for name in names}


def best_of(runs: Sequence[RuleRun]) -> RuleRun:
    """Return the run with the largest share; of equal ones the first."""
    return max(runs, key=lambda run: run.share)


def best_of_first_half(runs: Sequence[RuleRun]) -> RuleRun:
    """Return the run with the largest share of the first half; of equal ones the first."""
    return max(runs, key=lambda run: run.half_shares[0])


@dataclass(frozen=True, repr=False)
class RuleComparison(AnswerResult[RulesRecord]):
    """Rules of products on one log; the runs behind them are in the subfolder ``sweep``."""

    kind = RULES
    record_type = RulesRecord

    @property
    def table(self) -> pd.DataFrame:  # type: ignore[override]  # there is no other table
        """One row per run: the fields of ``RuleRun``, with a column for each label of the ledger."""
        import pandas as pd

        runs = [*self.record.rules, *self.record.yardsticks]
        return pd.DataFrame([{**run.to_json(), **run.node_us} for run in runs]).drop(columns="node_us")
