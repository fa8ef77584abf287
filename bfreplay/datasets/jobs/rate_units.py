"""Units of measured rates: the one table of them, and how rates become samples/s of all nodes together."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.options import option_name

NEEDS = {
    "global_batch": "Samples in a step, of all nodes together",
    "batch_per_gpu": "Samples in a step, of each GPU",
    "gpus_per_node": "GPUs in a node; 1 where jobs get single GPUs",
    "samples": "Samples in the measured time, of all nodes together",
}
"""Numbers that a unit may need: columns of the table, or options of ``jobs fit``, with their meaning."""


class Unit(NamedTuple):
    """A unit of measured rates, or of times, whose inverse is a rate.

    Parameters
    ----------
    title
        The unit in words.
    examples
        Columns in it; other words for the same (``img/sec``, ``iter_time_ms``) are read as well.
    factors
        What the rate is multiplied by to be samples/s of all nodes: ``nodes``, and names in `NEEDS`; the first of
        these alternatives whose numbers are known.
    """

    title: str
    examples: str
    factors: tuple[tuple[str, ...], ...] = ((),)


_BATCH = ("global_batch",), ("batch_per_gpu", "gpus_per_node", "nodes")
_SAMPLES = (("samples",),)
UNITS = {
    "sample/T": Unit("samples, images or tokens a second, of all nodes", "samples_per_s, images_per_s, tokens_per_s"),
    "gpu sample/T": Unit("the same of one GPU", "samples_per_s_per_gpu", (("gpus_per_node", "nodes"),)),
    "node sample/T": Unit("the same of one node", "samples_per_s_per_node", (("nodes",),)),
    "T/step": Unit("time of a step", "seconds_per_step, step_s, ms_per_step", _BATCH),
    "step/T": Unit("steps a second", "steps_per_s, iterations_per_s", _BATCH),
    "T/": Unit("time of the training", "minutes, time_to_train_h", _SAMPLES),
    "T/epoch": Unit("time of an epoch", "epoch_s, minutes_per_epoch", _SAMPLES),
    "epoch/T": Unit("epochs an hour", "epochs_per_h", _SAMPLES),
}
"""All units by their words, ``T`` for any unit of time: reader, messages, ``jobs fit --help`` and docs/curves.md."""

_COUNTS: dict[str, tuple[str, ...]] = {"node": (), "gpu": ("gpus_per_node",)}
"""Columns of counts by their words, and the numbers that they are divided by to be nodes."""

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_WORDS = {
    "us": "us usec microsecond",
    "ms": "ms msec millisecond",
    "s": "s sec second",
    "min": "min minute",
    "h": "h hr hour",
    "d": "d day",
    "epoch": "epoch",
    "sample": "sample image img sequence seq sentence example token tok record item frame",
    "step": "step iteration iter it batch batches",
    "gpu": "gpu ngpu accelerator device gcd chip tpu",
    "node": "node nnode",
    "": "time throughput rate speed the of to train training mean avg average median total wall walltime "
    "runtime elapsed duration n num number count nr",
}
_WORD_OF = {spelling: word for word, spellings in _WORDS.items() for spelling in spellings.split()}


class RateColumns(NamedTuple):
    """Reading of two columns of a table: node or GPU counts, and rates.

    Parameters
    ----------
    counts, rates
        Names of the columns.
    factors
        One of the alternatives of the unit.
    """

    counts: str
    rates: str
    factors: tuple[str, ...]

    @property
    def needs(self) -> list[str]:
        """Numbers that counts and rates need, names in `NEEDS`."""
        return [name for name in NEEDS if name in (*self.factors, *_COUNTS[_key(self.counts)[0]])]

    def measurement(self, cell: Callable[[str], float]) -> tuple[float, float]:
        """Return nodes and samples/s of a row, ``cell`` giving its cells by column; no rate at all as it stands.

        Raises
        ------
        InputError
            A number is not above 0, or the GPUs are not those of whole nodes.
        """
        numbers = {name: checks.number(name, cell(name), above=0.0) for name in self.needs}
        count, rate = cell(self.counts), cell(self.rates)
        gpus_per_node = math.prod(numbers[name] for name in _COUNTS[_key(self.counts)[0]])
        nodes = count / gpus_per_node
        if count.is_integer() and not nodes.is_integer():
            fault = f"is no whole number of nodes of {gpus_per_node:g} GPUs"
            fix = "correct gpus_per_node; 1 where jobs get single GPUs, not nodes"
            raise checks.refusal(self.counts, count, fault, "GPUs of whole nodes", fix)
        key, seconds = _key(self.rates)
        if 0 < rate < math.inf:
            rate = (rate if key.endswith("T") else 1 / rate) / seconds
            rate *= math.prod({**numbers, "nodes": nodes}[name] for name in self.factors)
        return nodes, rate


def count_and_rate_columns(columns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the columns whose names are those of node counts, and those of rates."""
    key_of = {name: _key(name)[0] for name in columns}
    return [name for name in key_of if key_of[name] in _COUNTS], [name for name in key_of if key_of[name] in UNITS]


def rate_columns(counts: str, rates: str, columns: Sequence[str]) -> RateColumns:
    """Return how two of all columns are read.

    Raises
    ------
    InputError
        A number is missing that the units need, is there twice, or is there although they do not need it.
    """
    ways = [RateColumns(counts, rates, factors) for factors in UNITS[_key(rates)[0]].factors]
    read = next((way for way in ways if {*way.needs} <= {*columns}), None)
    if read is None:
        wanted = [name for name in NEEDS if name not in columns and any(name in way.needs for way in ways)]
        options = ", ".join(f"--{option_name(name)} N" for name in wanted)
        raise InputError(
            f"{rates} by {counts} cannot be read without {', or '.join(' and '.join(way.needs) for way in ways)}",
            column=rates,
            value=[*columns],
            expected="; ".join(f"{name}: {NEEDS[name]}" for name in wanted),
            fix=f"add a column, or give an option to `bfreplay jobs fit`: {options}",
        )
    for name in NEEDS:
        if columns.count(name) > (name in read.needs):
            fault = "is given twice" if name in read.needs else f"has no effect on {rates} by {counts}"
            fix = f"drop the column, or --{option_name(name)}"
            raise checks.refusal(name, [*columns], fault, ", ".join(read.needs) or "no further number", fix)
    return read


def _key(column_name: str) -> tuple[str, float]:
    """Return the words of a column as a key of `UNITS`, and the seconds of its unit of time."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column_name).lower().replace("/", " per ")
    words = [_WORD_OF.get(part, _WORD_OF.get(part.removesuffix("s"), part)) for part in re.findall(r"[^\W_]+", spaced)]
    names = sorted({*words} - {"", "per"})
    times = [name for name in names if name in _SECONDS]
    if len(times) != 1:
        return " ".join(names), 1.0
    names.remove(times[0])
    is_rate = words[: words.index(times[0])][-1:] == ["per"]
    return f"{' '.join(names)}/T" if is_rate else f"T/{' '.join(names)}", _SECONDS[times[0]]
