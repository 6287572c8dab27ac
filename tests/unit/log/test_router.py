"""Routing: patterns as a topic exchange has them, and every event somewhere."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import TopicError
from penstock.events import Event
from penstock.log import Binding, Router, Topic
from penstock.log.router import matches

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Order(Event):
    kind: str
    region: str | None
    at: datetime = NOW


@dataclass(frozen=True)
class Other(Event):
    at: datetime = NOW


EUROPE, REFUNDS, ALL, REST = (Topic(name, Order) for name in ("europe", "refunds", "all", "rest"))
ROUTER = Router(
    "orders.{kind}.{region}",
    (Binding(EUROPE, "orders.*.eu"), Binding(REFUNDS, ("orders.refund.#", "#.refund.us"))),
    otherwise=REST,
)


class Sent(list):
    def send(self, topic, event):
        self.append((topic.name, event.id))


@pytest.mark.parametrize(
    ("pattern", "key", "expected"),
    [
        ("orders.*.eu", "orders.new.eu", True), ("orders.*.eu", "orders.eu", False),
        ("orders.*.eu", "orders.new.us", False), ("orders.*.eu", "orders.new.eu.west", False),
        ("orders.#", "orders", True), ("orders.#", "orders.a.b.c", True), ("orders.#", "order", False),
        ("#", "", True), ("#", "a.b", True), ("*", "a.b", False), ("*", "", True),
        ("#.eu", "eu", True), ("#.eu", "a.b.eu", True), ("#.eu", "eu.a", False),
        ("a.#.z", "a.z", True), ("a.#.z", "a.z.b", False), ("a.#.*.z", "a.z", False), ("#.#", "a", True),
        ("*.#.*", "a", False), ("*.#.*", "a.b", True), ("orders", "Orders", False),
    ],
)  # fmt: skip
def test_patterns_match_as_those_of_a_topic_exchange(pattern, key, expected):
    assert matches(pattern, key.split(".")) is expected


WORD = st.sampled_from(["a", "b", ""])


@given(st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=6), st.lists(WORD, max_size=7))
def test_patterns_match_what_the_regular_expression_does(pattern, words):
    expression = "".join({"*": "[ab]?,", "#": "(?:[ab]?,)*"}.get(word, f"{word},") for word in pattern)
    expected = re.fullmatch(expression, "".join(f"{word}," for word in words)) is not None
    assert matches(".".join(pattern), words) is expected


def test_a_hostile_key_takes_no_time():
    assert not matches(".".join(["#", "a"] * 20) + ".b", ["a"] * 3000)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Order("new", "eu"), ["europe"]), (Order("refund", "eu"), ["europe", "refunds"]),
        (Order("refund", "us"), ["refunds"]), (Order("new", "us"), ["rest"]), (Order("new", None), ["rest"]),
        (Order("new.eu", "x"), ["rest"]), (Order("a.refund", "us"), ["rest"]),
    ],
)  # fmt: skip
def test_an_event_goes_to_each_queue_once_and_never_nowhere(order, expected):
    sent = Sent()
    assert [topic.name for topic in ROUTER.send(sent, order)] == expected
    assert sent == [(name, order.id) for name in expected]


@dataclass(frozen=True)
class Tagged(Event):
    tag: bytes
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_field_of_any_bytes_is_a_word():
    marked, other = Topic("marked", Tagged), Topic("other", Tagged)
    router = Router("x.{tag}", (Binding(marked, "x.a"),), otherwise=other)
    assert [router.topics(Tagged(tag)) for tag in (b"a", b"\xff", b"a\xff.a")] == [
        (marked,),
        (other,),
        (other,),
    ]


def test_a_function_may_give_a_key_with_any_number_of_words():
    router = Router(lambda order: order.kind, (Binding(EUROPE, "a.#"),), otherwise=REST)
    assert router.topics(Order("a.b.c", None)) == (EUROPE,)


@pytest.mark.parametrize("pattern", ["", "a..b", "a.b*", "#a", ".a"])
def test_a_pattern_is_checked_when_it_is_declared(pattern):
    with pytest.raises(TopicError, match="has the word"):
        Binding(EUROPE, pattern)


@pytest.mark.parametrize(
    ("by", "bindings", "what"),
    [
        ("{kind}", (Binding(EUROPE, "a"), Binding(EUROPE, "b")), "two bindings"),
        ("{kind}", (Binding(REST, "a"),), "two bindings"),
        ("{kind}", (Binding(Topic("other", Other), "a"),), "takes Other, and 'rest' Order"),
        ("{sort}", (Binding(EUROPE, "a"),), "names 'sort', which Order has no field for"),
    ],
)
def test_a_router_is_checked_when_it_is_declared(by, bindings, what):
    with pytest.raises(TopicError, match=what):
        Router(by, bindings, otherwise=REST)
