"""What strangers send: every body is an event, or is refused with field, value and rule."""

from dataclasses import dataclass
from datetime import datetime

import pytest
from tests.gateway import Kind, Line, captured, client, declared, orders, post

from penstock.events import Event
from penstock.gateway.incoming import EventReader, parsed
from penstock.gateway.refusal import Refusal
from penstock.log import Table


@dataclass(frozen=True)
class Named(Event):
    name: str | None
    at: datetime


FITS = {"customer": "ada", "amount": "12.50"}


@pytest.fixture(scope="module")
def web():
    return client()


def read(body, topic=orders, **more):
    return EventReader(topic).read(parsed(body), **more)


def test_json_becomes_an_event_as_python_would_make_it():
    event = read(
        b'{"id": "o1", "customer": "ada", "amount": 12.5, "at": "2026-01-01T00:00:00+01:00",'
        b' "kind": "refund", "lines": [{"product": "lamp"}, {"product": "pen", "pieces": 3}],'
        b' "weight": 1, "photo": "AAE="}'
    )
    assert (event.id, str(event.amount), event.at.isoformat()) == ("o1", "12.50", "2025-12-31T23:00:00+00:00")
    assert event.lines == [Line("lamp"), Line("pen", 3)]
    assert (event.kind, event.weight, event.photo) == (Kind.REFUND, 1.0, b"\0\1")


def test_what_the_class_makes_anew_may_be_missing():
    first, second = read(b'{"customer": "a", "amount": 1}'), read(b'{"customer": "a", "amount": 1}')
    assert first.id != second.id
    assert first.at.tzinfo is not None
    assert read(b'{"customer": "a", "amount": 1}', id="given").id == "given"
    assert read(b'{"id": "own", "customer": "a", "amount": 1}', id="given").id == "own"


def test_numbers_keep_their_digits():
    assert str(read(b'{"customer": "a", "amount": 9999999999.99}').amount) == "9999999999.99"


@pytest.mark.parametrize(
    ("change", "field", "rule"),
    [
        ({"customer": 3}, "customer", "expected str, got int"),
        ({"customer": None}, "customer", "expected str, got null"),
        ({"amount": "1.234"}, "amount", "at most 12 digits"),
        ({"amount": "NaN"}, "amount", "expected Decimal"),
        ({"amount": 1e300}, "amount", "at most 12 digits"),
        ({"amount": -1}, "", "an amount is not negative"),
        ({"at": "2026-01-01T00:00:00"}, "at", "timezone"),
        ({"at": 1}, "at", "expected"),
        ({"kind": "gift"}, "kind", "invalid enum value"),
        ({"lines": [{"product": "a"}, {"product": "b", "pieces": "2"}]}, "lines[1].pieces", "got str"),
        ({"lines": [{}]}, "lines[0].product", "it is missing"),
        ({"notes": {"a": 2**70}}, "notes[...]", "9223372036854775807"),
        ({"weight": "heavy"}, "weight", "expected float"),
        ({"photo": "§"}, "photo", "base64"),
        ({"colour": "red"}, "colour", "there is no such field"),
        ({"id": 7}, "id", "expected str"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_field_value_and_rule(web, change, field, rule):
    answer = post(web, {**FITS, **change})
    assert answer.status_code == 422
    assert answer.json()["id"] == "data.event"
    assert answer.json()["field"] == field
    assert rule in answer.json()["rule"]
    listed = post(web, [FITS, {**FITS, **change}])
    assert listed.status_code == 422
    assert listed.json()["field"] == f"[1].{field}".rstrip(".")


def test_the_value_that_was_seen_is_shown(web):
    assert post(web, {**FITS, "customer": 3}).json()["value"] == 3
    assert post(web, {**FITS, "lines": [{"product": "a", "pieces": "2"}]}).json()["value"] == "2"
    assert "value" not in post(web, {"customer": "a"}).json()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "valid JSON"),
        (b"{", "valid JSON"),
        (b'{"customer": "a", "customer": "b", "amount": 1}', "'customer' twice"),
        (b'{"customer": "a", "amount": NaN}', "finite"),
        (b'{"customer": "a", "amount": -Infinity}', "finite"),
        (b'{"customer": "\xff", "amount": 1}', "utf-8"),
        (b'{"customer": "\\ud800", "amount": 1}', "surrogate"),
        (b"[" * 500_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b'{"customer": "a", "amount": 1e99999999999999999999}', "no number that can be held"),
        ('{"customer": "a"}'.encode("utf-16"), "valid JSON"),
    ],
)
def test_what_is_not_json_is_not_understood(web, body, said):
    answer = post(web, body)
    assert answer.status_code == 400
    assert said in answer.json()["message"]


@pytest.mark.parametrize("body", [b"null", b"3", b'"text"', b"true", b"[1]", b"[[]]", b"[null]", b"[]"])
def test_json_that_is_no_event_is_refused(web, body):
    assert post(web, body).status_code == 422


def test_huge_numbers_are_refused_soon(web):
    body = b'{"customer": "a", "amount": ' + b"9" * 900_000 + b"}"
    assert post(web, body).status_code == 422
    assert post(web, b'{"customer": "a", "amount": 1e999999999}').status_code == 422
    assert post(web, b'{"customer": "a", "amount": 1, "weight": 1e999}').status_code == 422


def test_a_list_has_a_limit(web):
    answer = post(web, [FITS] * 1_001)
    assert answer.status_code == 422
    assert "1001 events, expected 1 to 1000" in answer.json()["message"]


@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "json"],
)
def test_a_body_is_said_to_be_json(web, kind):
    answer = web.post("/topics/orders", content=b"{}", headers={"content-type": kind} if kind else {})
    assert answer.status_code == 415


def test_a_compressed_body_is_refused(web):
    assert post(web, b"\x1f\x8b", content_encoding="gzip").status_code == 415


@pytest.mark.parametrize("kind", ["application/json; charset=UTF-8", "application/vnd.x+json"])
def test_json_may_be_said_in_several_ways(web, kind):
    assert post(web, b"{}", content_type=kind).status_code == 422


@pytest.mark.parametrize("key", ["", "x" * 201, "k\u00e9y".encode("latin-1")])
def test_a_key_that_is_none(web, key):
    assert post(web, FITS, idempotency_key=key).status_code == 400


def test_only_what_is_declared_is_served(web):
    answer = post(web, FITS, "/topics/payments")
    assert (answer.status_code, answer.json()["id"]) == (404, "gateway.unknown-topic")
    for path in ("/topics/orders/", "/topics//orders", "/TOPICS/orders", "/topics/orders%2F", "/topics/"):
        assert post(web, FITS, path).status_code == 404, path


def test_what_flows_and_captures_write_is_read_only():
    web = client(declared(orders, captured, written={"orders": "shop.checked"}))
    answer = post(web, FITS)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert "written by shop.checked" in answer.json()["message"]
    assert "a capture" in post(web, FITS, "/topics/shop.public.customers").json()["message"]


def test_a_table_has_no_row_without_a_key():
    with pytest.raises(Refusal, match="a table's key can't be null"):
        EventReader(Table("names", Named, key="name")).read({"name": None, "at": "2026-01-01T00:00:00Z"})


@pytest.mark.timeout(20)
def test_a_name_twice_among_very_many_is_found_at_once(web):
    names = [f'"{number:x}":0' for number in range(4096, 90_000)]
    body = f"{{{','.join(names)},{names[-1]}}}".encode()
    answer = post(web, body)
    assert (answer.status_code, answer.json()["id"]) == (400, "gateway.json")
    assert "'15f8f' twice" in answer.json()["message"]
