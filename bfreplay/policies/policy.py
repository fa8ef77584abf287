"""Interface of policies, their decisions, and policies whose parameters are a dataclass of options."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import IntFlag
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bfreplay.documents import Json
from bfreplay.errors import InputError
from bfreplay.milp.solution import Solution, Solver
from bfreplay.options import check_options
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.state import LONG_AGO_US, PolicyState
from bfreplay.registry import make_from_code
from bfreplay.saved_state import restorable
from bfreplay.workload import ElasticJob

if TYPE_CHECKING:
    from bfreplay.datasets import NodeEvents
    from bfreplay.milp.solution import Solver


@restorable
class Trigger(IntFlag):
    """Events at a decision point; several may happen at once."""

    NONE = 0
    POOL = 1  # nodes became idle or were reclaimed
    ARRIVAL = 2  # a job was admitted
    COMPLETION = 4  # a job finished, was ended, or paused
    ROUND = 8  # the time has come that the last decision named: ``Round.until_us``
    BATCH_SIZE = 16  # a job trains with another batch size, hence along another curve


ANY_TRIGGER = Trigger.POOL | Trigger.ARRIVAL | Trigger.COMPLETION | Trigger.BATCH_SIZE


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Nodes that a policy has chosen itself, for the J jobs of a decision.

    Parameters
    ----------
    assigned
        For each job the node numbers, as many as its count and all of one type.
    partner : (J,) int64
        Row of the job that shares its nodes with this one, -1 for none; both rows then have the same ``assigned``.
        ``None``: nobody shares.
    restart_s : (J,) float64
        As ``Decision.restart_s``, from a policy that always chooses nodes.
    charges_rescales
        A job that has more or fewer nodes than before also pays what it says itself (``scale_up_cost_s``,
        ``scale_down_cost_s``). One that has as many, but others, pays ``restart_s`` alone.
    """

    assigned: tuple[NDArray[np.int64], ...]
    partner: NDArray[np.int64] | None = None
    restart_s: NDArray[np.float64] | None = None
    charges_rescales: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """Rules for the J jobs of a decision until the policy decides again.

    Parameters
    ----------
    until_us
        When the policy wants to be asked next: it wakes on ``Trigger.ROUND``. ``None``: at the next event, and at the
        time that an earlier decision named, if that is still to come; ``policies.NEVER_US`` withdraws that time.
    samples : (J,) float64
        By how much the progress of each job may rise until then, inf for no limit: it then holds its nodes and waits.
        Work that it loses meanwhile may be done again. ``None``: no limit.
    not_before_us : (J,) int64
        A job that is done earlier holds its nodes until then, and completes then; times that are past mean nothing.
        ``None``: none waits.
    failed : (J,) bool
        Jobs that leave now, with a count of 0: the policy has given them up. ``None``: none.
    batch_size : (J,) int64
        What each job trains with from now on; 0: as before. Only from a policy with ``sets_batch_sizes``. ``None``: all
        as before.
    credit : (J,) float64
        Samples that count as done from now on although nobody processed them; negative: samples that are to be done
        again, of which there may be more than were done, as where the work becomes whole steps of another batch size.
        ``None``: none.
    declined
        Why a job leaves now, by its row, with a count of 0: the policy does not take it.
    """

    until_us: int | None = None
    samples: NDArray[np.float64] | None = None
    not_before_us: NDArray[np.int64] | None = None
    failed: NDArray[np.bool_] | None = None
    batch_size: NDArray[np.int64] | None = None
    credit: NDArray[np.float64] | None = None
    declined: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """Counts for the J jobs of a ``PolicyState``, in its order.

    Parameters
    ----------
    counts : (J,) int64
        Nodes per job: 0, or ``min_nodes`` to ``max_nodes``, or what it holds; their sum at most ``n_idle``.
    solution
        What the solver said, when one was asked.
    t_fwd_s
        Forward-looking time that the question was posed with, where one was.
    placement
        The nodes, from a policy that chooses them itself; ``None``: the replay places the counts by its own rule
        (``--placement``).
    round
        What holds until the next decision, from a policy that decides in rounds, limits jobs or gives them up.
    restart_s : (J,) float64
        The policy's own cost of a change: seconds that each job restarts for now, at the rate that it will have,
        besides what it pays itself; 0 for a job that goes on. A job with pauses makes nothing meanwhile, another owes
        the samples; either is at its last checkpoint again if work is at risk. ``None``: none. Only from a policy that
        declares ``restarts_jobs``.
    """

    counts: NDArray[np.int64]
    solution: Solution | None = None
    t_fwd_s: float | None = None
    placement: Placement | None = None
    round: Round | None = None
    restart_s: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        parts = [] if self.t_fwd_s is None else [f"t_fwd {self.t_fwd_s:g} s"]
        parts += [] if self.solution is None else [f"{self.solution.quality} by {self.solution.solver}"]
        return f"<Decision: {', '.join([f'counts {np.array2string(np.asarray(self.counts), threshold=20)}', *parts])}>"


@dataclass(frozen=True, slots=True)
class PolicyCapabilities:
    """Abilities and needs of a policy, as data on its class: known before a policy is made.

    Parameters
    ----------
    node_types
        It chooses nodes of one of several types for each job.
    asks_solver
        The solver of the run may have a say in what it decides.
    in_rounds
        It decides in rounds, whatever the forward-looking time.
    chooses_nodes
        All its decisions name the nodes of each job (``Decision.placement``), not only how many.
    linear_programs
        It solves linear programs of its own with HiGHS, whose version then belongs to the identity of a run.
    restarts_jobs
        It brings its own cost of a change (``Decision.restart_s``).
    sees_queue
        It looks at the jobs that wait to be admitted (``PolicyState.waiting``).
    decides_again
        A rerun asks the policy itself, not only its recorded counts: it makes the same decisions from the same states,
        and says ``why``. For built-in policies with options alone: a record does not have code imported.
    learns_with
        Its own parameter that, where it is set, hides from it what it then learns (``Policy.with_known_curves``).
    fixed_nodes
        It keeps a state of its own by node, of the nodes that were there at the start: none may appear later.
    warm_up
        Spec of a policy whose replay compiles the loops of this one; ``None`` for one without compiled loops.
    """

    node_types: bool = False
    asks_solver: bool = True
    in_rounds: bool = False
    chooses_nodes: bool = False
    linear_programs: bool = False
    restarts_jobs: bool = False
    sees_queue: bool = False
    decides_again: bool = False
    learns_with: str | None = None
    fixed_nodes: bool = False
    warm_up: str | None = None


_DESCRIBED_BY_MAPPINGS = ("solver", "forward_time", "objective")


class Policy(ABC):
    """Decides what runs now. Inherit from it, and write ``name`` and ``decide``; all else has a default.

    Attributes
    ----------
    name
        Label for tables.
    wakes_on
        Events after which ``decide`` is called; after others every job keeps what it has. A policy that wakes on
        ``Trigger.ROUND`` is asked at every event as long as it has named no time (``Round.until_us``).
    capabilities
        Abilities and needs, known before a policy is made.
    sets_batch_sizes
        It decides itself when a job changes its batch size (``Round.batch_size``); otherwise jobs do so on their own,
        at the progress that ``ElasticJob.adaptation`` names.
    round_s
        Length of its rounds in seconds, if it decides at the end of each.
    objective
        What it maximises, or its spec, if it maximises anything: the dedicated nodes that a run is compared with follow
        the same objective.
    not_saved
        Attributes that are no part of its state, since the constructor, ``check_jobs`` and ``foresee`` make them anew;
        those of its bases besides. All others are what a checkpoint saves of it (``bfreplay.saved_state``): numbers,
        texts, arrays, containers, generators of random numbers, objects.
    """

    name: str
    wakes_on: Trigger = ANY_TRIGGER
    capabilities: PolicyCapabilities = PolicyCapabilities()
    sets_batch_sizes: bool = False
    round_s: float | None = None
    objective: Objective | str | None = None
    not_saved: ClassVar[tuple[str, ...]] = ("solver", "objective", "_given")
    _given: Mapping[str, object] = MappingProxyType({})

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """Keep what ``__init__`` is called with, its defaults included, for ``describe``."""
        policy = super().__new__(cls)
        with suppress(TypeError, ValueError):  # arguments that do not fit, as __init__ says; no signature
            bound = inspect.signature(cls.__init__).bind_partial(policy, *arguments, **keywords)
            bound.apply_defaults()
            object.__setattr__(policy, "_given", dict(list(bound.arguments.items())[1:]))  # a dataclass may be frozen
        return policy

    @property
    def knows_costs(self) -> bool:
        """Its decisions count the costs in ``PolicyState.costs``; if not, runs of jobs with such costs warn of it."""
        return False

    @classmethod
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver) -> Policy:
        """Make one from what a user can set: by default with the parameters of ``__init__`` alone.

        A policy that optimises may take a keyword ``objective`` as well: an ``Objective``, its spec, or ``None``. One
        that looks at what nodes cost may take ``prices``: dollars for an hour of a node by its type, or ``None``.
        Further keywords are the policy's own parameters, set in brackets after its name; ``round_s`` is the length of a
        round, which can be set by an option of the run as well.
        """
        fix = "give each parameter of its __init__ a default, or write from_options"
        return make_from_code(cls, f"the policy {cls.__name__}", fix=fix)

    @abstractmethod
    def decide(self, state: PolicyState) -> Decision:
        """Decide on the jobs in ``state``; called only when there is at least one job and one idle node."""

    def check_types(self, type_names: Sequence[str]) -> None:
        """Raise ``InputError`` if the policy, as it was made, cannot decide on nodes of several types."""
        if not self.capabilities.node_types:
            raise InputError(
                f"the policy {self.name!r} decides on nodes of one type",
                column="policy",
                value=self.name,
                expected=f"a policy that tells {', '.join(type_names)} apart, such as gavel.max_min_fairness_perf",
                fix="choose another policy, or nodes of one type",
            )

    def check_jobs(self, jobs: Sequence[ElasticJob], most_nodes: int) -> None:  # noqa: B027
        """Raise ``InputError`` if the policy cannot schedule all ``jobs``; called before the first decision.

        Parameters
        ----------
        jobs
            All jobs of the replay. Those of a job source are not known yet, and not checked.
        most_nodes
            Nodes of the largest type.
        """

    def seconds_alone(self, job: ElasticJob, n_nodes: int) -> float:
        """Seconds that a job takes on ``n_nodes`` nodes of its own, which fairness is measured by.

        A policy that repeats a published program may know it otherwise.
        """
        return job.seconds_alone(n_nodes)

    def __repr__(self) -> str:
        words = [f"{option} {_short_text(value)}" for option, value in self.describe().items() if option != "name"]
        return f"<{type(self).__name__}{': ' if words else ''}{', '.join(words)}>"

    def why(self, state: PolicyState, job_row: int) -> str | None:
        """Return a clause on the nodes that a job got in the last decision, which was on ``state``; ``None``: nothing.

        ``explain`` shows it for policies that declare ``decides_again``.
        """
        return None

    def foresee(self, events: NodeEvents) -> None:  # noqa: B027
        """See the log that is about to be replayed, to measure what a forecast would be worth."""

    def add_nodes(self, n_nodes: int) -> None:  # noqa: B027
        """Learn that nodes have appeared after all others, and that there are ``n_nodes`` now, before it is asked.

        A policy that keeps something by node makes room here, or declares ``fixed_nodes``.
        """

    def with_known_curves(self) -> Policy | None:
        """The same policy told what this one has to learn, which a run compares with; ``None`` if it learns nothing."""
        return None

    def describe(self) -> dict[str, object]:
        """Every parameter with its value, JSON-ready, for the run's record: what tells two runs apart.

        By default ``name``, and the finite numbers and texts that ``__init__`` was called with, or has as defaults.
        ``name`` must be there. Where they are, ``t_fwd_s`` is a number, ``solver`` and ``forward_time`` (in place of a
        number) are mappings with ``name``, and ``objective`` is one with ``spec``.
        """
        described: dict[str, object] = {"name": self.name}
        for name, value in self._given.items():
            is_plain = isinstance(value, str | int | None) or (isinstance(value, float) and math.isfinite(value))
            if is_plain and name not in _DESCRIBED_BY_MAPPINGS:
                described.setdefault(name, value)
        return described

    def summary(self) -> Mapping[str, object] | None:
        """Return the policy's own counts, JSON-ready, for the run's record; ``None`` for nothing."""
        return None

    def close(self) -> None:  # noqa: B027
        """Release what the policy holds (worker processes); harmless when called twice."""


def _short_text(value: object) -> object:
    """Return what stands for a part of a policy's description: of a mapping its ``spec`` or ``name``."""
    if not isinstance(value, Mapping):
        return value
    return value.get("spec") or value.get("name") or ", ".join(f"{option} {part}" for option, part in value.items())


def not_a_policy(problem: str, value: object) -> InputError:
    """Return the error for a class, or an object of one, that is no ``Policy``, or for a class of one."""
    if isinstance(value, type) and issubclass(value, Policy):
        return InputError(problem, value=value, expected="an object", fix=f"give an object: {value.__name__}()")
    return InputError(
        problem,
        value=value,
        expected="a class that inherits from bfreplay.Policy, and an object of it to replay with",
        fix="declare it as 'class Mine(bfreplay.Policy):'",
    )


@dataclass(frozen=True)
class PolicyOptions:
    """Base of the options of a policy: frozen dataclasses with fields made by ``option``.

    Raises
    ------
    InputError
        A value out of range.
    """

    def __post_init__(self) -> None:
        check_options(self, keep_equal=True)

    def to_json(self) -> dict[str, Json]:
        """Return every option, for the run record."""
        return asdict(self)


class PolicyWithOptions(Policy):
    """Base of policies with such options, each of which is a parameter of the policy; solver and T_fwd have no effect.

    Parameters
    ----------
    options
        Options of the policy, of its ``options_type``.
    """

    options_type: ClassVar[type[PolicyOptions]]
    not_saved = ("options",)

    def __init__(self, options: PolicyOptions | None = None) -> None:
        self.options = options or self.options_type()
        self._last_us = LONG_AGO_US

    @classmethod
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver, **options: Any) -> Self:
        """Return the policy with these options."""
        return cls(cls.options_type(**options))

    def note_time(self, state: PolicyState) -> None:
        """Forget the last replay if the clock has gone back: another one has begun."""
        if state.time_us < self._last_us:
            self.forget()
        self._last_us = state.time_us

    def forget(self) -> None:
        """Forget a replay: by default there is nothing to forget."""

    def close(self) -> None:
        """Forget the replay."""
        self._last_us = LONG_AGO_US
        self.forget()

    def describe(self) -> dict[str, object]:
        """Return every option."""
        return {"name": self.name, **self.options.to_json()}
