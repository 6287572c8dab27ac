"""A snapshot's tag changes when the code that made it does, and not otherwise."""

import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from functools import singledispatch

import pytest

from penstock.apps.bank.account import Account, account
from penstock.sourcing.fingerprint import fingerprint

CODE = """
from dataclasses import dataclass
LIMIT = 3
def helper(x):
    return x + 1
@dataclass(frozen=True)
class State:
    n: int = 0
    def grown(self):
        return State(self.n + 1)
def evolve(state, event):
    if event in {"b", "a", "c"}:
        return State(helper(state.n) + LIMIT)
    return state.grown()
"""


def tag(code):
    scope = {"__name__": "shop.model"}
    exec(textwrap.dedent(code), scope)
    return fingerprint(scope["State"], scope["evolve"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x + 1", "x + 2"),
        ("LIMIT = 3", "LIMIT = 4"),
        ("n: int = 0", "n: int = 0\n    m: int = 0"),
        ("n: int = 0", "n: float = 0"),
        ("State(self.n + 1)", "State(self.n + 2)"),
        ('"b", "a"', '"b", "d"'),
    ],
)
def test_what_matters_changes_it(old, new):
    assert tag(CODE) != tag(CODE.replace(old, new))


def test_what_does_not_matter_leaves_it():
    assert tag(CODE) == tag("\n\n# a comment\n" + CODE)


def test_it_is_the_same_in_every_process():
    program = "from penstock.apps.bank.account import account; print(account.tag)"
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True
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


def test_an_aggregate_with_another_state_has_another_tag():
    @dataclass(frozen=True)
    class Richer:
        owner: str = ""

    assert replace(account, initial=Richer()).tag != account.tag
    assert replace(account, initial=Account(owner="x")).tag != account.tag
