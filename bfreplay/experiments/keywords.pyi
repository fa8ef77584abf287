"""Options of a run as keywords, made from their declarations by ``python benchmarks/write_keywords.py``."""

from collections.abc import Mapping, Sequence
from datetime import date
from os import PathLike
from typing import Any, Literal, TypedDict

from bfreplay.replay import Semantics

class ReplayKeywords(TypedDict, total=False):
    curves: str | PathLike[str] | None
    cluster: str | None
    node_type: str | None
    pool: Literal["startable", "idle"]
    partition: str | None
    only_nodes: str | None
    without: str | None
    window: tuple[str | float | date, str | float | date] | list[Any] | None
    measure: Sequence[int] | str | None
    round: float | None
    objective: str | None
    t_fwd: float | str
    max_parallel: int | None
    settle: float | str
    placement: Literal["lowest-id", "runs"]
    restart_cost: float | str | None
    work_saved_every: float | str | None
    saves: Literal["never", "on-notice", "on-resize"] | None
    unlimited_work: bool
    until_done: bool
    learn_curves: Literal["job", "model"] | None
    measurement_noise: float
    solver: str
    formulation: str | None
    fallback: Literal["exact", "keep"]
    time_limit: float
    gap: float
    threads: int
    solver_seed: int
    warm_start: bool
    reformulate_sets: bool
    memory_limit: int | None
    semantics: Literal["continuous", "published"] | Semantics
    seed: int
    batch_jobs: str | PathLike[str] | None
    clear: float | str
    notice: bool
    reserve: int
    min_age: float | str
    record_nodes: bool
    prices: str | Mapping[str, float] | None
    fairness: bool
    ideal: bool
    efficiency: bool
    bound: bool
    allow_code: bool

class FinishKeywords(TypedDict, total=False):
    curves: str | PathLike[str] | None
    node_type: str | None
    pool: Literal["startable", "idle"]
    partition: str | None
    only_nodes: str | None
    without: str | None
    window: tuple[str | float | date, str | float | date] | list[Any] | None
    policy: str
    round: float | None
    objective: str | None
    t_fwd: float | str
    max_parallel: int | None
    settle: float | str
    placement: Literal["lowest-id", "runs"]
    restart_cost: float | str | None
    work_saved_every: float | str | None
    saves: Literal["never", "on-notice", "on-resize"] | None
    learn_curves: Literal["job", "model"] | None
    measurement_noise: float
    solver: str
    formulation: str | None
    fallback: Literal["exact", "keep"]
    time_limit: float
    gap: float
    threads: int
    solver_seed: int
    warm_start: bool
    reformulate_sets: bool
    memory_limit: int | None
    clear: float | str
    notice: bool
    reserve: int
    min_age: float | str
    prices: str | Mapping[str, float] | None
    allow_code: bool

class TuneKeywords(TypedDict, total=False):
    curves: str | PathLike[str] | None
    node_type: str | None
    pool: Literal["startable", "idle"]
    partition: str | None
    only_nodes: str | None
    without: str | None
    window: tuple[str | float | date, str | float | date] | list[Any] | None
    measure: Sequence[int] | str | None
    policy: str
    round: float | None
    objective: str | None
    settle: float | str
    placement: Literal["lowest-id", "runs"]
    restart_cost: float | str | None
    work_saved_every: float | str | None
    saves: Literal["never", "on-notice", "on-resize"] | None
    until_done: bool
    learn_curves: Literal["job", "model"] | None
    measurement_noise: float
    solver: str
    formulation: str | None
    fallback: Literal["exact", "keep"]
    time_limit: float
    gap: float
    threads: int
    solver_seed: int
    warm_start: bool
    reformulate_sets: bool
    memory_limit: int | None
    semantics: Literal["continuous", "published"] | Semantics
    seed: int
    batch_jobs: str | PathLike[str] | None
    clear: float | str
    notice: bool
    record_nodes: bool
    prices: str | Mapping[str, float] | None
    fairness: bool
    ideal: bool
    efficiency: bool
    bound: bool
    allow_code: bool

class RuleKeywords(TypedDict, total=False):
    curves: str | PathLike[str] | None
    node_type: str | None
    pool: Literal["startable", "idle"]
    partition: str | None
    only_nodes: str | None
    without: str | None
    window: tuple[str | float | date, str | float | date] | list[Any] | None
    max_parallel: int | None
    settle: float | str
    placement: Literal["lowest-id", "runs"]
    restart_cost: float | str | None
    work_saved_every: float | str | None
    saves: Literal["never", "on-notice", "on-resize"] | None
    solver: str
    formulation: str | None
    fallback: Literal["exact", "keep"]
    time_limit: float
    gap: float
    threads: int
    solver_seed: int
    warm_start: bool
    reformulate_sets: bool
    memory_limit: int | None
    batch_jobs: str | PathLike[str] | None
    clear: float | str
    notice: bool
    reserve: int
    min_age: float | str
    prices: str | Mapping[str, float] | None
    allow_code: bool
