"""Elastic Horovod: every host that a job sees, and a blacklist of those that died."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from bfreplay import checks
from bfreplay.options import OneOf, Whole, option
from bfreplay.policies.policy import Decision
from bfreplay.policies.state import NEVER_US, PolicyState
from bfreplay.systems.products.rule import US_PER_S, RuleJobs, RuleOptions, RulePolicy, Shares
from bfreplay.wording import count

FOREVER = "forever"
_TIMEOUT_US = 600 * US_PER_S


def check_cooldown(name: str, value: object) -> str:
    """Return a checked ``cooldown``; ``InputError`` for anything but ``forever`` and ``lo:hi``."""
    text = checks.text(name, value)
    with suppress(ValueError):
        low, high = (1.0, 1.0) if text == FOREVER else map(float, text.split(":"))
        if 0 < low <= high <= 1e9:
            return text
    raise checks.refusal(name, value, "is not a range of seconds", f"{FOREVER}, or lo:hi such as 60:600")


def cooldown_s(cooldown: str, n_failures: int) -> float:
    """Return for how many seconds a host is blacklisted after so many failures, ``lo:hi`` given.

    ``min(hi, lo * (2 ** n_failures + u))``, where the product draws u from 0 to 1; here it is 0.5.
    """
    low, high = map(float, cooldown.split(":"))
    return min(high, low * (2.0 ** min(n_failures, 99) + 0.5))


@dataclass(frozen=True)
class HorovodOptions(RuleOptions):
    """Options of ``products.horovod``.

    Parameters
    ----------
    start_nodes
        Nodes that a job needs to start (``-np``), within its bounds. ``None``: its minimum.
    cooldown
        How long a host that died is blacklisted: ``forever``, or ``lo:hi`` in seconds, doubled at each failure.
    reclaims
        ``die``: a reclaimed node is a host that died. ``orderly``: the discovery script has removed it before, so that
        it is not blacklisted.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    start_nodes: int | None = option(None, Whole(1))
    cooldown: str = option(FOREVER, check_cooldown)
    reclaims: str = option("die", OneOf(("die", "orderly")))


class Horovod(RulePolicy):
    """Each job takes every free host that it has not blacklisted, up to its maximum, in the order it first saw them.

    Survivors keep the state in memory. So nothing is lost by an orderly change, and a restart takes about 10 s (not
    published): replay it with ``--restart-cost 10 --saves on-resize``, the seconds between two commits as
    ``--work-saved-every``, and ``--notice`` where reclaims are orderly. The rule has no costs of its own.
    """

    name = "products.horovod"
    capabilities = replace(RulePolicy.capabilities, chooses_nodes=True)
    options_type = HorovodOptions
    options: HorovodOptions
    product = "Elastic Horovod 0.28.1"
    readings = (
        "free hosts go first come first served; too few for a job's minimum go to the next, and none is taken away",
        "a job sees its own hosts and all that are free: those that have been free longest first, then by number",
        "with too few hosts a job waits for 600 s, then goes back into the queue; the product ends it",
        "back in the queue, or with all its hosts gone, it starts anew, with an empty blacklist: it has a new driver",
        "the random part of a cooldown is its mean",
    )

    def forget(self) -> None:
        """Forget all hosts."""
        self._free: dict[int, None] = {}
        self._hosts: dict[int, list[int]] = {}
        self._failures: dict[int, dict[int, tuple[int, int]]] = {}  # of a job, by host: how many, blacklisted until
        self._give_up_us: dict[int, int] = {}

    def shares(self, jobs: RuleJobs) -> Shares:
        """Return the hosts of each job."""
        nodes = [self._kept(jobs, row) for row in jobs]
        self._see_hosts(jobs, nodes)
        free, until_us = list(self._free), NEVER_US
        for row, number in enumerate(jobs.number):
            kept, failures = nodes[row], self._failures.get(number, {})
            if len(kept) == jobs.most[row]:
                continue
            hosts = kept + [host for host in free if host not in failures or failures[host][1] <= jobs.now_us]
            count = jobs.fit(row, len(hosts))
            if not kept and count < min(self.options.start_nodes or 1, jobs.most[row]):
                count = 0
            if count:
                nodes[row] = hosts[:count]
                self._give_up_us.pop(number, None)
                taken = set(nodes[row])
                free = [host for host in free + kept if host not in taken]
            elif kept:
                until_us = min(until_us, self._give_up_us.setdefault(number, jobs.now_us + _TIMEOUT_US))
        for row, number in enumerate(jobs.number):
            if nodes[row] and len(nodes[row]) < jobs.most[row]:
                failures = self._failures.get(number, {})
                ends_us = [failures[host][1] for host in free if host in failures]
                until_us = min([until_us, *(end_us for end_us in ends_us if end_us > jobs.now_us)])
        return Shares([len(hosts) for hosts in nodes], until_us, nodes=nodes)

    def _kept(self, jobs: RuleJobs, row: int) -> list[int]:
        """Return the hosts that a job has left and keeps, and blacklist those that died."""
        assert jobs.nodes is not None
        number = jobs.number[row]
        held = set(jobs.nodes.held(row).tolist())
        if not held or self._give_up_us.get(number, NEVER_US) <= jobs.now_us:
            self._give_up_us.pop(number, None)
            self._failures.pop(number, None)
            return []
        hosts = list(dict.fromkeys([*self._hosts.get(number, ()), *sorted(held)]))
        for host in hosts:
            if host not in held and self.options.reclaims == "die":
                failures = self._failures.setdefault(number, {})
                n_failures, until_us = failures.get(host, (0, 0))[0] + 1, NEVER_US
                if self.options.cooldown != FOREVER:
                    until_us = jobs.now_us + round(cooldown_s(self.options.cooldown, n_failures) * US_PER_S)
                failures[host] = n_failures, until_us
        return [host for host in hosts if host in held]

    def _see_hosts(self, jobs: RuleJobs, nodes: list[list[int]]) -> None:
        """Order the hosts that no job keeps by the time since which they are free."""
        assert jobs.nodes is not None
        kept = {host for hosts in nodes for host in hosts}
        free = dict.fromkeys(host for host in np.flatnonzero(jobs.nodes.is_idle).tolist() if host not in kept)
        for hosts in self._hosts.values():
            for host in hosts:
                self._free.pop(host, None)
        self._free = {host: None for host in self._free if host in free} | free

    def decide(self, state: PolicyState) -> Decision:
        """Return the decision of the rule, and remember which hosts it gave to whom."""
        decision = super().decide(state)
        assert decision.placement is not None
        nodes = [chosen.tolist() for chosen in decision.placement.assigned]
        self._hosts = dict(zip(state.job.tolist(), nodes, strict=True))
        self._failures = {number: hosts for number, hosts in self._failures.items() if number in self._hosts}
        return decision

    def why(self, state: PolicyState, job_row: int) -> str:
        """Return why a job waits, or how many hosts it has blacklisted."""
        number = int(state.job[job_row])
        if number in self._give_up_us:
            left_s = (self._give_up_us[number] - state.time_us) / US_PER_S
            return f"it has fewer hosts than its minimum, and gives up in {left_s:g} s"
        if not self._hosts.get(number):
            return "the hosts that it needs to start were not free at its turn"
        ends_us = [end_us for _, end_us in self._failures.get(number, {}).values()]
        n_blacklisted = sum(end_us > state.time_us for end_us in ends_us)
        blacklist = f", except {count(n_blacklisted, 'blacklisted host')}" if n_blacklisted else ""
        return f"it uses every free host at its turn, up to its maximum{blacklist}"
