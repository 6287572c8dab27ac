"""Headers are whatever a producer wrote: they make no letter unreadable, and show nothing that is not so."""

from datetime import UTC, datetime

import pytest

from penstock.log.dead_letters import DeadLetter
from penstock.log.tail import described


class Message:
    def __init__(self, *headers):
        self._headers = list(headers)

    def headers(self):
        return self._headers

    def topic(self):
        return "sales.dead-letters"

    def partition(self):
        return 0

    def offset(self):
        return 17

    def timestamp(self):
        return 1, 0

    def key(self):
        return b"key"

    def value(self):
        return b"1"


@pytest.mark.parametrize(
    "hostile",
    [
        ("penstock.dead.x", b"\xff\xfe"),
        ("penstock.dead.error", b"\xff"),
        ("penstock.dead.topic", None),
        ("penstock.dead.deliveries", b"many"),
        ("penstock.dead.partition", "²".encode()),
        ("penstock.dead.offset", b"9" * 5000),
        ("penstock.dead.at", b"yesterday"),
    ],
)
def test_a_letter_can_be_read_whatever_stands_in_its_headers(hostile):
    letter = DeadLetter.from_message(Message(("own", b"1"), hostile))
    assert (letter.topic, letter.value, letter.headers) == ("sales", b"1", (("own", b"1"),))


def test_a_letter_says_only_what_we_say_of_it():
    forged = (("penstock.dead.deliveries", b"3"), ("own", b"1"))
    letter = DeadLetter("sales", 0, 1, "no sale", datetime(2026, 1, 1, tzinfo=UTC), None, b"?", forged)
    read = DeadLetter.from_message(Message(*letter.to_headers()))
    assert (read.offset, read.deliveries, read.headers) == (1, None, (("own", b"1"),))


def test_what_is_shown_of_a_message_can_not_be_forged_by_its_headers():
    message = Message(("offset", b"1"), ("key", b"forged"), ("twice", b"1"), ("twice", None))
    line = described(message, None, lambda _: None)
    assert (line["offset"], line["key"], line["value"]) == (17, "key", 1)
    assert line["headers"] == {"offset": "1", "key": "forged", "twice": ["1", None]}
