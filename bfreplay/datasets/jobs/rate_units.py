"""Units of measured rates: the one table of them, and how a column becomes samples/s of all nodes together."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.options import option_name

Numbers = Mapping[str, float]

NEEDS: Mapping[str, str] = {
    "global_batch": "samples in a step, of all nodes together",
    "batch_per_gpu": "samples in a step, of each GPU",
    "gpus_per_node": "GPUs in a node; 1 where jobs get single GPUs",
    "samples": "samples in the measured time, of all nodes together",
}
"""Numbers that a unit may need: columns of the table, or options of ``jobs fit``, with their meaning."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measured rates.

    Parameters
    ----------
    title
        The unit in words.
    examples
        Columns in it; other words for the same (``img/sec``, ``iter_time_ms``) are read as well.
    keys
        Its words, numerators before and denominators after the ``/``, each sorted; ``T`` is any unit of time.
    factors
        What a rate (or one over a time) is multiplied by to be samples/s of all nodes: ``nodes``, and names in `NEEDS`;
        the first of these alternatives whose numbers are known.
    doubt
        Question to ask where rates fall or hardly rise with the nodes; empty for that of `Measurements`.
    """

    title: str
    examples: tuple[str, ...]
    keys: tuple[str, ...]
    factors: tuple[tuple[str, ...], ...] = ((),)
    doubt: str = "did the job do the same work at every count?"

    @property
    def is_rate(self) -> bool:
        """False for times, whose inverse is a rate."""
        return "T" in self.keys[0].partition("/")[2]

    @property
    def needs(self) -> str:
        """Names of the numbers that it needs, in words; empty for none."""
        return " or ".join(" and ".join(name for name in choice if name in NEEDS) for choice in self.factors)


_BATCH = ("global_batch",), ("batch_per_gpu", "gpus_per_node", "nodes")
_IS_PER_GPU = "is the batch that of each GPU (batch_per_gpu), not of all nodes together?"
UNITS = (
    Unit("samples, images, sequences, tokens a second, of all nodes",
         ("samples_per_s", "images_per_s", "tokens_per_s"), ("sample/T",), doubt=""),
    Unit("the same of one GPU", ("samples_per_s_per_gpu",),
         ("sample/T gpu", "gpu sample/T", "/T gpu sample"), (("nodes", "gpus_per_node"),)),
    Unit("the same of one node", ("samples_per_s_per_node",),
         ("sample/T node", "node sample/T", "/T node sample"), (("nodes",),)),
    Unit("time of a step", ("seconds_per_step", "step_s", "ms_per_step"),
         ("T/step", "T step/", "/T step"), _BATCH, _IS_PER_GPU),
    Unit("steps a second", ("steps_per_s", "iterations_per_s"), ("step/T",), _BATCH, _IS_PER_GPU),
    Unit("time of the training, or of an epoch", ("minutes", "time_to_train_h", "epoch_s"),
         ("T/", "T epoch/", "T/epoch", "/T epoch"), (("samples",),)),
    Unit("epochs an hour", ("epochs_per_h",), ("epoch/T",), (("samples",),)),
)  # fmt: skip
"""All units: reader, error messages, ``jobs fit --help`` and docs/curves.md read this table."""

_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_WORDS = {
    "ms": "ms msec millisecond",
    "s": "s sec second",
    "min": "min minute",
    "h": "h hr hour",
    "sample": "sample image img sequence seq sentence example token tok record item frame",
    "step": "step iteration iter it batch batches",
    "epoch": "epoch",
    "gpu": "gpu ngpu accelerator device gcd",
    "node": "node nnode",
    "": "time throughput rate speed the of to train training mean avg average median total wall elapsed duration n num "
    "number count nr",
}
_WORD_OF = {spelling: word for word, spellings in _WORDS.items() for spelling in spellings.split()}
_GPU_KEY = "gpu/"
_COUNT_KEYS = ("node/", _GPU_KEY)
_UNIT_OF_KEY = {key: unit for unit in UNITS for key in unit.keys}


@dataclass(frozen=True, slots=True)
class RateColumns:
    """How two columns of a table, of node or GPU counts and of rates, are read.

    Parameters
    ----------
    counts, rates
        Names of the columns.
    unit, seconds
        Unit of the rates, and the seconds of its unit of time.
    factors
        The unit's factors.
    numbers
        Those of the numbers needed that no column has.
    """

    counts: str
    rates: str
    unit: Unit
    seconds: float
    factors: tuple[str, ...]
    numbers: Numbers

    @property
    def in_gpus(self) -> bool:
        """True if counts are of GPUs."""
        return _key(self.counts)[0] == _GPU_KEY

    @property
    def needs(self) -> list[str]:
        """Names of the numbers that counts and rates need."""
        names = (*self.factors, *(("gpus_per_node",) if self.in_gpus else ()))
        return [name for name in NEEDS if name in names]

    @property
    def source(self) -> str:
        """What the rates are calculated from; empty for samples/s by nodes."""
        numbers = (f"{name} {self.numbers[name]:,.15g}" if name in self.numbers else name for name in self.needs)
        is_plain = (self.counts, self.rates) == ("nodes", "samples_per_s")
        return "" if is_plain else f"from {', '.join((self.counts, self.rates, *numbers))}"

    def measurement(self, cell: Callable[[str], float]) -> tuple[float, float]:
        """Return nodes and samples/s of a row, ``cell`` giving its cells by column; a rate not above 0 as it stands."""
        numbers = {name: self.numbers[name] if name in self.numbers else cell(name) for name in self.needs}
        for name, number in numbers.items():
            checks.number(name, number, above=0.0)
        count, rate = cell(self.counts), cell(self.rates)
        nodes = count / numbers["gpus_per_node"] if self.in_gpus else count
        if self.in_gpus and count > 0 and not nodes.is_integer():
            fault = f"holds {count:g} GPUs, no whole number of nodes of {numbers['gpus_per_node']:g} GPUs"
            fix = "correct gpus_per_node; 1 where jobs get single GPUs, not nodes"
            raise checks.refusal(self.counts, count, fault, "GPUs of whole nodes", fix)
        if not rate > 0:
            return nodes, rate
        per_s = rate / self.seconds if self.unit.is_rate else 1.0 / self.seconds / rate
        return nodes, per_s * math.prod({**numbers, "nodes": nodes}[name] for name in self.factors)


def count_and_rate_columns(columns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the columns whose names are those of node counts, and those of rates."""
    keys = {name: _key(name)[0] for name in columns}
    return [name for name in keys if keys[name] in _COUNT_KEYS], [name for name in keys if keys[name] in _UNIT_OF_KEY]


def rate_columns(counts: str, rates: str, columns: Iterable[str], numbers: Numbers) -> RateColumns:
    """Return how two of all columns are read, with ``numbers`` given by options.

    Raises
    ------
    InputError
        A number is missing that the units need, or one is there that they do not.
    """
    known, (key, seconds) = {*columns, *numbers}, _key(rates)
    unit = _UNIT_OF_KEY[key]
    ways = [RateColumns(counts, rates, unit, seconds, factors, numbers) for factors in unit.factors]
    read = next((way for way in ways if known.issuperset(way.needs)), None)
    if read is None:
        wanted = [name for name in NEEDS if name not in known and any(name in way.needs for way in ways)]
        ways_out = " or ".join(" and ".join(f"--{option_name(name)} N" for name in way.needs) for way in ways)
        raise InputError(
            f"{counts} and {rates} become samples/s by number of nodes only with {' or '.join(wanted)}",
            column=counts if wanted == ["gpus_per_node"] else rates,
            value=[*columns],
            expected="; ".join(f"{name}: {NEEDS[name]}" for name in wanted),
            fix=f"give {ways_out} to `bfreplay jobs fit`, or the same as columns: {', '.join(wanted)}",
        )
    for name in NEEDS:
        if name in known and (name not in read.needs or (name in columns and name in numbers)):
            place = f"--{option_name(name)}" if name in numbers else name
            fault = "is given twice" if name in read.needs else f"has no effect on {counts}, {rates}"
            raise checks.refusal(place, numbers.get(name, name), fault, "what the unit needs, once", f"drop {place}")
    return read


def units_text() -> str:
    """Return the units for the help of a command: columns, what they hold, and what they need."""
    lines = (f"{', '.join(unit.examples)}: {unit.title}{unit.needs and f'; needs {unit.needs}'}." for unit in UNITS)
    return "\n\n".join(lines)


def _key(column_name: str) -> tuple[str, float]:
    """Return the words of a column as a key of a unit, and the seconds of its unit of time."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column_name).lower().replace("/", " per ")
    parts = re.findall(r"[^\W_]+", spaced)
    words = [_WORD_OF.get(part, _WORD_OF.get(part.removesuffix("s"), part)) for part in parts]
    per = words.index("per") if "per" in words else len(words)
    seconds = [_SECONDS[word] for word in words if word in _SECONDS]
    names = ["T" if word in _SECONDS else word for word in words]
    halves = (sorted(name for name in half if name not in ("", "per")) for half in (names[:per], names[per:]))
    return "/".join(map(" ".join, halves)), seconds[0] if seconds else 1.0
