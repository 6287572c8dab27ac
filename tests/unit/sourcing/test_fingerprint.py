"""A snapshot's tag changes when the code that made it does, and not otherwise."""

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from functools import singledispatch

import pytest

from penstock.apps.bank.account import Account, account
from penstock.apps.bank.views import balances
from penstock.sourcing.fingerprint import fingerprint
from penstock.sourcing.totals import count, total

CODE = """
import functools
from dataclasses import dataclass
from decimal import Decimal
from penstock.schemas import default, rename, upcast
from penstock.sourcing import DomainEvent
LIMIT = 3
FEE = Decimal("0.10")
RATES = {"a": (1, 2), "b": [3]}
UPCASTS = (upcast(1, default("m", "x")), upcast(2, default("n", "x"), rename("o", to="p")))
def helper(x, by=1):
    return x + by
def twice(x, y):
    return x * y
double = functools.partial(twice, 2)
class Adder:
    def __init__(self, n):
        self.n = n
    def __call__(self, x):
        return x + self.n
add = Adder(7)
class Base:
    def grown(self):
        return more(self.n + 1)
def more(x):
    return x
@dataclass(frozen=True)
class State(Base):
    n: int = 0
    def __add__(self, other):
        return State(self.n + other)
    @property
    def rich(self):
        return self.n > 100
    @staticmethod
    def zero():
        return 0
@dataclass(frozen=True)
class Happened(DomainEvent, upcasts=UPCASTS):
    n: int
def evolve(state, event):
    if event in {"b", "a", "c"}:
        return State(helper(state.n) + LIMIT + int(FEE) + RATES["a"][0] + double(state.n) + add(1))
    return state.grown()
"""


def tag(code):
    scope = {"__name__": "shop.model"}
    exec(textwrap.dedent(code), scope)
    return fingerprint(scope["evolve"], scope["State"], (scope["Happened"],))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return x + by", "return x + 2 * by"),
        ("by=1", "by=2"),
        ("LIMIT = 3", "LIMIT = 4"),
        ('"0.10"', '"0.20"'),
        ("(1, 2)", "(1, 3)"),
        ("[3]", "[4]"),
        ("partial(twice, 2)", "partial(twice, 3)"),
        ("return x * y", "return x * y * 2"),
        ("Adder(7)", "Adder(8)"),
        ("return x + self.n", "return x - self.n"),
        ("n: int = 0", "n: int = 0\n    m: int = 0"),
        ("n: int = 0", "n: float = 0"),
        ("n: int = 0", "n: int = 1"),
        ("more(self.n + 1)", "more(self.n + 2)"),
        ("def more(x):\n    return x", "def more(x):\n    return x * 2"),
        ("State(self.n + other)", "State(self.n - other)"),
        ("self.n > 100", "self.n > 200"),
        ("return 0", "return 1"),
        ('"b", "a"', '"b", "d"'),
        ('default("m", "x")', 'default("m", "y")'),
        ('default("n", "x")', 'default("n", "y")'),
        ('to="p"', 'to="q"'),
    ],
)
def test_what_matters_changes_it(old, new):
    assert old in CODE
    assert tag(CODE) != tag(CODE.replace(old, new, 1))


def test_what_does_not_matter_leaves_it():
    assert tag(CODE) == tag("\n\n# a comment\n" + CODE)


def test_it_is_the_same_in_every_process():
    program = "from penstock.apps.bank.account import account; print(account.tag)"
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        )
        assert found.stdout.strip() == account.tag, found.stderr


def test_functions_by_type_count():
    def evolve(word):
        @singledispatch
        def dispatched(event):
            return event

        @dispatched.register
        def _(event: int):
            return word

        return dispatched

    def other(word):
        @singledispatch
        def dispatched(event):
            return event

        @dispatched.register
        def _(event: int):
            return word + word

        return dispatched

    assert fingerprint(evolve("a")) != fingerprint(other("a"))


def test_a_view_is_its_totals_and_what_its_rows_are_made_of():
    def of(columns, rows=None):
        return replace(balances, columns=columns, rows=rows or balances.rows).tag

    first = {"a": total("x"), "b": total("y"), "c": count()}
    assert of(first) == of(dict(first))
    assert len({of(first), of({**first, "b": count("y")}), of({**first, "c": count("z")})}) == 3
    assert of(first) != of(first, lambda records: records)


def test_an_aggregate_with_another_state_has_another_tag():
    @dataclass(frozen=True)
    class Richer:
        owner: str = ""

    assert replace(account, initial=Richer()).tag != account.tag
    assert replace(account, initial=Account(owner="x")).tag != account.tag
