"""Regular expressions that are matched in linear time say what Python's own matcher says."""

import re
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.schemas.compatibility.jsonschema.expression import search

LEAVES = st.sampled_from(
    ["a", "b", ".", r"\d", r"\w", r"\W", "[ab]", "[^a-c]", "^", "$", r"\b", r"\B", r"\Z", "", r"[\d_]"]
)
PATTERNS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
        inner.map(lambda each: f"(?={each})"),
        inner.map(lambda each: f"(?!{each})"),
        st.sampled_from(["(?<=a)", "(?<!ab)", "(?<=[^b])", "(?<=a$)", r"(?<=\b)"]),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(PATTERNS, st.text("ab1_ \n", max_size=7))
def test_matches_are_pythons(pattern, text):
    assume(text or r"\B" not in pattern)  # Python came to agree with ECMAScript about it in 3.14 only
    assert search(pattern, text) is (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a*)*b$", "(a?){30}a{30}$", "^(?=(a+)+$)b", "a*" * 20 + "b"]
)
def test_hostile_expressions_take_no_time(pattern):
    begun = time.process_time()
    assert search(pattern, "a" * 200 + "!") is False
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "pattern", ["(", r"(a)\1", "(?i)a", "(?>a+)b", "(" * 5_000, "((a{1000}){1000}){1000}", "(?<=a|bc)x"]
)
def test_what_is_not_regular_is_undecided(pattern):
    assert search(pattern, "a" * 50) is None


def test_a_text_that_is_too_long_is_undecided():
    assert search("(a|b)*" * 300 + "c", "ab" * 5_000) is None
