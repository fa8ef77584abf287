"""How long a decision is expected to last: a number, or what the events so far say."""

from bfreplay.policies.forward_time.auto import AUTO, AutoForwardTime
from bfreplay.policies.forward_time.catalogue import forward_time_of
from bfreplay.policies.forward_time.fixed import FixedForwardTime
from bfreplay.policies.forward_time.forward_time import ForwardTime

__all__ = ["AUTO", "AutoForwardTime", "FixedForwardTime", "ForwardTime", "forward_time_of"]
