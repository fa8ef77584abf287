"""Laws: their values, bounds and names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.errors import InputError
from bfreplay.scalability import (
    Amdahl,
    CommunicationStrong,
    CommunicationWeak,
    Curve,
    Gustafson,
    PowerLaw,
    Scaling,
    UniversalScalability,
    find_law,
    name_of,
)
from bfreplay.scalability.law import LAWS, Law, Parameter, laws_for
from bfreplay.workload import ElasticJob

EVERY_LAW = [find_law(name) for name in LAWS.names()]


@st.composite
def some_law(draw, law=None):
    law = law or draw(st.sampled_from(EVERY_LAW))
    others = [draw(st.floats(each.low, min(each.high, 2.0))) for each in law.parameters[1:]]
    return law(draw(st.floats(1e-3, 1e6)), *others)


@pytest.mark.parametrize(
    ("law", "nodes", "rate"),
    [
        (Amdahl(10.0, 0.1), 11, 10 * 11 / 2),
        (Gustafson(10.0, 0.1), 11, 10 * (11 - 1)),
        (UniversalScalability(10.0, 0.1, 0.01), 11, 10 * 11 / (1 + 1 + 0.01 * 110)),
        (PowerLaw(10.0, 0.5), 16, 40.0),
        (CommunicationWeak(10.0, 0.3, 0.01), 4, 10 * 4 / (1 + 0.3 * 1.5 + 0.03)),
        (CommunicationStrong(10.0, 0.3, 0.01), 4, 10 / (0.25 + 0.3 * 1.5 + 0.03)),
    ],
    ids=lambda value: getattr(value, "law", None),
)
def test_a_law_gives_what_its_formula_says(law, nodes, rate):
    table = law.table(nodes)
    assert table.shape == (nodes + 1,)
    assert table[:2].tolist() == [0.0, 10.0]
    assert table[nodes] == pytest.approx(rate, rel=1e-12)


@given(some_law())
def test_every_law_is_a_curve_with_the_rate_of_one_node_at_one_node(law):
    assert isinstance(law, Curve)
    table = law.table(64)
    assert table[0] == 0
    assert table[1] == pytest.approx(law.rate_1)
    assert np.isfinite(table).all()
    assert (table[1:] > 0).all()


@pytest.mark.parametrize("kind", EVERY_LAW, ids=name_of)
@given(data=st.data())
def test_only_laws_that_say_so_fall(kind, data):
    law = data.draw(some_law(kind))
    if not kind.can_fall:
        rates = law.table(200)[2 if kind is CommunicationWeak else 1 :]  # this one may fall from one node to two
        assert (np.diff(rates) >= -1e-12 * rates[1:]).all()


@pytest.mark.parametrize("law", [UniversalScalability(10.0, 0.1, 0.01), CommunicationStrong(10.0, 0.1, 0.01)])
def test_laws_that_say_so_can_end_below_their_peak(law):
    assert law.can_fall
    assert law.table(200)[200] < 0.5 * law.table(200).max()


def test_strong_communication_is_the_universal_law_under_other_names():
    one, other = CommunicationStrong(7.0, 0.04, 0.001), UniversalScalability(7.0, 0.08, 0.001)
    assert one.table(100) == pytest.approx(other.table(100), rel=1e-12)


def test_a_law_is_no_limit_to_the_nodes_of_a_job():
    job = ElasticJob("big", 0, 1, 200_000, 0, 0, 1, Amdahl(10.0, 0.001))
    assert job.throughput.last_nodes >= job.max_nodes


@pytest.mark.parametrize(
    ("make", "column", "value"),
    [
        (lambda: Amdahl(10.0, -0.1), "serial", -0.1),
        (lambda: Amdahl(10.0, 1.5), "serial", 1.5),
        (lambda: Amdahl(0.0, 0.1), "rate_1", 0.0),
        (lambda: Amdahl(float("inf"), 0.1), "rate_1", float("inf")),
        (lambda: Gustafson(-1.0, 0.1), "rate_1", -1.0),
        (lambda: UniversalScalability(1.0, 0.1, -1e-9), "kappa", -1e-9),
        (lambda: PowerLaw(1.0, 2.5), "exponent", 2.5),
        (lambda: CommunicationWeak(1.0, -1.0, 0.0), "bandwidth", -1.0),
        (lambda: CommunicationStrong(1.0, 0.0, "fast"), "latency", "fast"),
        (lambda: CommunicationStrong(1.0, 0.0, True), "latency", True),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(make, column, value):
    with pytest.raises(InputError, match=f"{column} is out of range") as caught:
        make()
    assert (caught.value.column, caught.value.value) == (column, value)


def test_no_number_is_no_parameter():
    with pytest.raises(InputError, match="serial is out of range"):
        Amdahl(10.0, float("nan"))


def test_every_law_says_which_scaling_it_describes():
    assert {law.law: law.scaling.value for law in EVERY_LAW} == {
        "amdahl": "strong",
        "gustafson": "weak",
        "usl": "either",
        "power": "either",
        "communication-weak": "weak",
        "communication-strong": "strong",
    }
    assert [law.law for law in laws_for(Scaling.WEAK)] == ["gustafson", "usl", "power", "communication-weak"]
    assert [law.law for law in laws_for(Scaling.STRONG)] == ["amdahl", "usl", "power", "communication-strong"]
    assert laws_for(Scaling.EITHER) == EVERY_LAW


def test_an_unknown_law_gets_a_suggestion():
    with pytest.raises(InputError, match="did you mean 'amdahl'"):
        find_law("amdal")


@dataclass(frozen=True, slots=True)
class Logarithm(Law):
    """P(n) = rate_1 (1 + slope ln n): a stranger's law."""

    rate_1: float
    slope: float
    law: ClassVar = "logarithm"
    scaling: ClassVar = Scaling.STRONG
    can_fall: ClassVar = False
    formula: ClassVar = "P(n) = rate_1 (1 + slope ln n)"
    parameters: ClassVar = (Amdahl.parameters[0], Parameter("slope", 0.0, 10.0, "gain of each factor e"))

    @staticmethod
    def shape(nodes, *parameters):
        return 1.0 + parameters[0] * np.log(nodes)

    @staticmethod
    def starts(nodes, rates):
        return [[0.5]]


def test_a_stranger_s_law_is_named_by_its_place():
    assert name_of(Logarithm) == f"{__name__}:Logarithm"
    assert find_law(name_of(Logarithm)) is Logarithm
    assert [name_of(law) for law in EVERY_LAW] == LAWS.names()
