"""How objectives are written, and what is said of what cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bfreplay.errors import InputError
from bfreplay.policies.spec import TermSpec, parse, write_spec


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("own", (TermSpec("own"),)),
        ("  speed-up ", (TermSpec("speed-up"),)),
        ("cost(price=0.4)", (TermSpec("cost", (("price", 0.4),)),)),
        ("a.b:c.d( x = 1 ,y=-2e-3 )", (TermSpec("a.b:c.d", (("x", 1), ("y", -0.002))),)),
        (
            "f(a=true, b=False, c=word, d='two words', e=\"it's\")",
            (TermSpec("f", (("a", True), ("b", False), ("c", "word"), ("d", "two words"), ("e", "it's"))),),
        ),
        ("0.7*throughput + .3*speed-up", (TermSpec("throughput", (), 0.7), TermSpec("speed-up", (), 0.3))),
        ("2*a+b+1e-3*c(k=1)", (TermSpec("a", (), 2), TermSpec("b"), TermSpec("c", (("k", 1),), 0.001))),
        ("__main__:mine", (TermSpec("__main__:mine"),)),
    ],
)
def test_what_a_spec_says(text, parts):
    assert parse(text) == parts
    assert parse(write_spec(parts)) == parts


names = st.from_regex(r"\A[A-Za-z_][\w.\-]{0,8}(:[A-Za-z_]\w{0,5})?\Z")
numbers = st.floats(1e-30, 1e30) | st.integers(1, 10**9)
keys = st.from_regex(r"\A[a-z_][a-z0-9_]{0,5}\Z")
values = numbers | numbers.map(lambda n: -n) | st.booleans() | st.text("ab '=,()*+-:1 é", max_size=6)


@given(
    st.lists(
        st.builds(
            TermSpec,
            names,
            st.dictionaries(keys, values, max_size=3).map(lambda found: tuple(found.items())),
            st.none() | numbers,
        ),
        min_size=1,
        max_size=4,
    ).map(tuple)
)
@example((TermSpec("f", (("x", "true"), ("y", True), ("z", ""))),))
def test_what_is_written_is_read_back(parts):
    again = parse(write_spec(parts))
    assert again == parts
    assert [list(map(type, dict(part.parameters).values())) for part in again] == [
        list(map(type, dict(part.parameters).values())) for part in parts
    ]


@pytest.mark.parametrize(
    ("text", "problem", "where", "fix"),
    [
        ("", "a name is missing at the end", "the end", ""),
        ("a +", "a name is missing at the end", "the end", ""),
        ("+ a", "a name is missing before '+'", "character 1", ""),
        ("a + + b", "a name is missing before '+'", "character 5", ""),
        ("0.7 throughput", "no '*' after a weight", "character 5", "write 0.7*NAME"),
        ("0.7throughput", "no '*' after a weight", "character 4", "write 0.7*NAME"),
        ("throughput*0.7", "no '+' before '*'", "character 11", "the weight stands before the name"),
        ("speed up", "no '+' before 'up'", "character 7", "did you mean 'speed-up'?"),
        ("a - b", "no '+' before '-'", "character 3", "weights are positive"),
        ("-1*a", "a name is missing before '-'", "character 1", "weights are positive"),
        ("0*a", "a weight of 0 leaves nothing", "character 1", "leave the term out"),
        ("1e31*a", "a number is too large", "character 1", ""),
        ("1e999*a", "a number is too large", "character 1", ""),
        ("0.5*(a + b)", "a name is missing before '('", "character 5", "each term of a sum"),
        ("a()", "a parameter is missing in the brackets", "character 3", "NAME alone"),
        ("a(1)", "a parameter is missing in the brackets", "character 3", "key=value"),
        ("a(b.c=1)", "a parameter is missing in the brackets", "character 3", "key=value"),
        ("a(x)", "no '=' after 'x'", "character 4", "write x=VALUE"),
        ("a(x=)", "the value of 'x' is missing", "character 5", "write x=VALUE"),
        ("a(x=-)", "the value of 'x' is no number", "character 6", "write x=-NUMBER"),
        ("a(x=-y)", "the value of 'x' is no number", "character 6", "write x=-NUMBER"),
        ("a(x=1 y=2)", "no ',' before 'y'", "character 7", ""),
        ("a(x=1", "a ')' is missing at the end", "the end", ""),
        ("a(x=1,", "a parameter is missing", "the end", ""),
        ("a(x=1, x=2)", "'x' is set twice", "character 8", ""),
        ("a(x='open)", "the value of 'x' is missing", "character 5", ""),
        ("a b:", "no '+' before 'b'", "character 3", ""),
        ("a é", "no '+' before 'é'", "character 3", ""),
    ],
)
def test_what_cannot_be_read_is_shown(text, problem, where, fix):
    with pytest.raises(InputError) as refused:
        parse(text)
    assert refused.value.problem.startswith("the objective cannot be read: ")
    assert problem in refused.value.problem
    assert refused.value.column == where
    assert fix in (refused.value.fix or "")
    assert refused.value.value == text


def test_an_objective_is_a_text():
    with pytest.raises(InputError, match="named by a text"):
        parse(3)
