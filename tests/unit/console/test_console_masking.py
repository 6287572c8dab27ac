"""What is masked is shown nowhere: not in events, dead letters, errors, keys or searches."""

import json

import pytest
from tests.console import client
from tests.observed_system import system

from penstock.console.decoding import Decoding
from penstock.console.masking import HIDDEN, Masks
from penstock.console.server import Watched
from penstock.errors import SettingsError
from penstock.gateway import Declared
from penstock.gateway.database import Databases
from penstock.gateway.view import View
from penstock.ops.doctor.probes import Probes
from penstock.settings import Settings
from penstock.targets import PostgresTable

SECRET = "4929123412341234"
NOWHERE = Settings(kafka={"bootstrap.servers": "127.0.0.1:1"})


class Message:
    """A message as a client hands it out."""

    def __init__(self, value, topic="orders", key=b"k", headers=()):
        self._found = {"value": value, "topic": topic, "key": key, "headers": list(headers)}

    def __getattr__(self, name):
        found = {"partition": 0, "offset": 7, "timestamp": (1, 1_800_000_000_000), **self._found}[name]
        return lambda: found


def shown(masks, value, topic="orders", **more):
    decode = Decoding(NOWHERE, Declared(), Masks.of(masks)).decoder(topic)
    return decode(Message(value, topic, **more))


def test_a_field_is_hidden_at_any_depth_whatever_its_case():
    value = json.dumps({"Card": SECRET, "paid": [{"card": SECRET, "by": {"CARD": SECRET}}], "amount": 3})
    found = shown("card", value.encode())
    assert SECRET not in json.dumps(found)
    assert found["value"] == {"Card": HIDDEN, "paid": [{"card": HIDDEN, "by": {"CARD": HIDDEN}}], "amount": 3}


def test_a_rule_of_another_topic_hides_nothing():
    value = json.dumps({"card": SECRET}).encode()
    assert shown("payments:card", value)["value"] == {"card": SECRET}
    assert shown("orders:card", value)["value"] == {"card": HIDDEN}


@pytest.mark.parametrize(
    "value", [b'{"card": "' + SECRET.encode(), SECRET.encode(), b'"' + SECRET.encode() + b'"']
)
def test_what_has_no_fields_is_hidden_as_a_whole(value):
    assert SECRET not in json.dumps(shown("card", value))


def test_dead_letters_are_masked_as_their_topic_with_what_their_error_quotes():
    headers = [
        ("penstock.dead.error", f"card is '{SECRET}'".encode()),
        ("penstock.dead.topic", b"orders"),
        ("trace", SECRET.encode()),
    ]
    found = shown("orders:card", f'{{"card": "{SECRET}"}}'.encode(), "orders.dead-letters", headers=headers)
    assert SECRET not in json.dumps(found)
    assert found["letter"]["topic"] == "orders"


@pytest.mark.parametrize("topic", ["_penstock_dead-letters.shop.partner", "_penstock_status.shop"])
def test_a_topic_of_the_platform_is_hidden_as_a_whole(topic):
    headers = [("penstock.webhook.response", SECRET.encode()), ("penstock.dead.topic", b"orders")]
    value = json.dumps({"email": SECRET, "troubles": [{"text": SECRET}]}).encode()
    found = shown("customers:email", value, topic, key=SECRET.encode(), headers=headers)
    assert SECRET not in json.dumps(found)
    assert SECRET in json.dumps(shown("", value, topic))


def test_a_rule_for_keys_hides_what_quotes_them():
    headers = [("penstock.dead.error", SECRET.encode()), ("trace", SECRET.encode())]
    found = shown("users:@key", b"{}", "users.dead-letters", key=SECRET.encode(), headers=headers)
    assert SECRET not in json.dumps(found)


def test_a_key_is_hidden_and_can_not_be_looked_for():
    assert shown("orders:@key", b"{}", key=SECRET.encode())["key"] == HIDDEN
    with client(masks=Masks.of("orders:@key")) as web:
        answer = web.get("/api/events", params={"name": "orders", "key": SECRET})
    assert (answer.status_code, answer.json()["id"]) == (403, "console.masked")


def test_markup_in_a_payload_stays_a_text():
    evil = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    found = shown("", json.dumps({"name": evil}).encode(), key=evil.encode())
    assert found["value"] == {"name": evil}
    assert found["key"] == evil


def test_a_message_that_is_too_long_is_cut():
    found = shown("", json.dumps({"text": "x" * 100_000}).encode())
    assert len(found["value"]) < 21_000
    assert found["bytes"] > 100_000


def test_whatever_a_producer_wrote_what_is_shown_is_small():
    headers = [(f"h{number}", b"x" * 100_000) for number in range(5_000)]
    found = shown("", b"{}", key=b"k" * 1_000_000, headers=headers)
    assert len(json.dumps(found)) < 50_000
    assert len(found["headers"]["h0"]) == 2_001
    assert found["headers"]["…"] == "4,991 more"


def test_a_message_that_is_nested_very_deeply_is_masked_too():
    for depth in (70, 300, 320, 480):
        text = '{"a":[' * depth + f'{{"card":"{SECRET}"}}' + "]}" * depth
        assert SECRET not in json.dumps(shown("card", text.encode()))


@pytest.mark.parametrize("text", ["a b", "orders:", ":card", "orders:a:b", "a;b"])
def test_a_rule_that_is_none(text):
    with pytest.raises(SettingsError, match=r"console\.mask"):
        Masks.of(text)


@pytest.fixture
def users(monkeypatch):
    """A view whose rows are there without a database; it asks for two at a time."""

    async def rows(_, query):
        row = json.dumps({"email": SECRET, "Address": {"City": "Oslo"}, "amount": 3}).encode()
        return [(row, (SECRET,))] * query.limit

    monkeypatch.setattr(Databases, "rows", rows)
    view = View(PostgresTable("users", key="email", write="upsert"))
    declared = Declared(views={"users": view, "others": view})
    return Watched(system, lambda: (system(), Probes()), declared)


def asked_view(users, masks, name="users", **query):
    with client(watched=users, masks=Masks.of(masks)) as web:
        return web.get("/api/view", params={"name": name, "limit": 2, **query})


def test_the_next_page_of_a_view_does_not_name_a_key_that_is_hidden(users):
    assert asked_view(users, "amount").json()["next"] == [SECRET]
    found = asked_view(users, "users:email")
    assert SECRET not in found.text
    assert (found.json()["next"], found.json()["rows"][0]["email"]) == (None, HIDDEN)
    assert asked_view(users, "users:email", "others").json()["next"] == [SECRET]


@pytest.mark.parametrize(
    "query",
    [{"key": SECRET}, {"key": ""}, {"after": SECRET}, {"order": "email"}, {"order": "amount,-email"},
     {"order": "Address"}],
)  # fmt: skip
def test_what_is_hidden_can_not_be_guessed_or_ordered_by(users, query):
    answer = asked_view(users, "email, address.city", **query)
    assert (answer.status_code, answer.json()["id"]) == (403, "console.masked")
    assert asked_view(users, "card", **query).status_code == 200


def test_a_view_says_whether_its_key_is_hidden(users):
    with client(watched=users, masks=Masks.of("users:email")) as web:
        found = {each["name"]: each["masked"] for each in web.get("/api/views").json()["views"]}
    assert found == {"users": True, "others": False}


def test_a_row_with_half_of_a_surrogate_pair_is_shown(users, monkeypatch):
    async def rows(*_):
        return [(b'{"email": "\\ud83d", "amount": 1}', ("x",))]

    monkeypatch.setattr(Databases, "rows", rows)
    assert asked_view(users, "").json()["rows"] == [{"email": "\\ud83d", "amount": 1}]
