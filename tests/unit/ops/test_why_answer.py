"""Why: what results say of how they were made, and answers as sentences and as tests."""

import ast
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

import pytest

from penstock.errors import FlowError
from penstock.events import Event, Precision
from penstock.log import Topic
from penstock.ops.why import Answer, BehindEvent, Made, exported
from penstock.ops.why.answer import Place
from penstock.pipeline import Pipeline

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Sale(Event):
    customer: str
    amount: Annotated[Decimal, Precision(12, 2)]
    at: datetime


shop = Pipeline("shop")


@shop.flow(reads={"sales": Topic("sales", Sale)}, writes=Topic("large", Sale))
def large(sales):
    return sales


ANSWER = Answer(
    target="large",
    result={"id": "s1", "customer": "ada", "amount": Decimal("2.50"), "at": NOON},
    place=Place("large", 0, 3),
    made=Made("shop.large"),
    events=(
        BehindEvent("sales", Place("sales", 1, 7), NOON, {"id": "s1", "amount": Decimal("2.50"), "at": NOON}),
    ),
    proved=True,
    minimal=True,
    but_for=(),
    compared=("id", "amount", "at"),
    looked_at="events of its key",
    candidates=3,
    runs=2,
)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("shop.large sales/1/17", Made("shop.large", "1", Place("sales", 1, 17))),
        ("team:shop.large@v2 a/b/0/5", Made("team:shop.large", "v2", Place("a/b", 0, 5))),
        ("shop.large", Made("shop.large")),
        ("shop.large 3", Made("shop.large")),
    ],
)
def test_a_header_says_what_made_a_result(text, made):
    headers = [{"key": "other", "value": b"x"}, {"key": "penstock.made-by", "value": text.encode()}]
    assert Made.of_headers(headers) == made


def test_an_event_of_nobody_has_no_maker():
    assert Made.of_headers(None) is None
    assert Made.of_headers([{"key": "trace", "value": b"1"}]) is None


def test_an_answer_is_a_sentence():
    assert (
        ANSWER.summary == "1 event: recomputed from just these, the result is the same; none can be left out"
    )
    near = replace(ANSWER, proved=False, but_for=("before",), minimal=False)
    assert near.summary.startswith(
        "not proved: 1 event; recomputed from just these, the result is the same but"
    )
    assert "but for before:" in near.summary
    assert near.summary.endswith("some may not be needed")
    assert replace(ANSWER, proved=False).summary.startswith("not proved: 1 event of events of its key")


def test_an_export_is_python_with_the_same_values():
    text = exported(ANSWER, shop.flows["large"], "shop", "shop")
    tree = ast.parse(text)
    given = {}
    for each in tree.body:
        if isinstance(each, ast.Assign):
            code = compile(ast.Expression(each.value), "case", "eval")
            given[each.targets[0].id] = eval(code, {"datetime": __import__("datetime"), "Decimal": Decimal})
    [sale] = given["EVENTS"]["sales"]
    assert sale["amount"] == Decimal("2.50")
    assert sale["_source"]["written"] == NOON
    assert given["RESULT"] == {"id": "s1", "amount": Decimal("2.50"), "at": NOON}


def test_what_is_not_proved_is_not_exported():
    with pytest.raises(FlowError, match="was not proved"):
        exported(replace(ANSWER, proved=False), shop.flows["large"], "shop", "shop")


def test_what_agrees_of_a_result_that_is_nearly_the_same_is_exported():
    near = replace(ANSWER, proved=False, but_for=("amount",), compared=("id", "at"))
    text = exported(near, shop.flows["large"], "shop", "shop")
    assert "'amount'" not in text.partition("RESULT")[2]
