"""Records that nobody expected are shown, each for itself: none of them hides the others."""

import json

import msgspec
import pytest

from penstock.documents import presentable
from penstock.log.tail import described


class Message:
    def __init__(self, value=b"1", at=0, headers=()):
        self._found = {"value": value, "timestamp": (1, at), "headers": list(headers)}

    def __getattr__(self, name):
        found = {"partition": 0, "offset": 17, "key": b"key", **self._found}[name]
        return lambda: found


def shown(*args, plain=lambda _: None, **more):
    """What is shown of a message, written as JSON and read again."""
    return json.loads(msgspec.json.encode(described(Message(*args, **more), None, plain)))


def test_half_of_a_surrogate_pair_is_spelled_out():
    found = shown(rb'{"name": "\ud83d", "\udc00": ["\ud83d\ude00", "\u00e9"]}')["value"]
    assert found == {"name": "\\ud83d", "\\udc00": ["😀", "é"]}
    assert shown(b"\x00", plain=lambda _: {"name": "\ud83d"})["value"] == {"name": "\\ud83d"}


@pytest.mark.parametrize("at", [1_800_000_000_000_000, -(10**17), 2**63 - 1])
def test_a_time_that_is_none_is_shown_as_its_number(at):
    assert shown(at=at)["written"] == at
    assert shown(at=1_800_000_000_000)["written"] == "2027-01-15T08:00:00+00:00"


@pytest.mark.parametrize("depth", [65, 300, 900, 980, 100_000])
@pytest.mark.parametrize("pair", ["[]", '{"a":}'])
def test_what_is_nested_very_deeply_is_shown_in_part(depth, pair):
    text = pair[:-1] * depth + "1" + pair[-1] * depth
    found = shown(text.encode())["value"]
    assert found == text or text.startswith(json.dumps(found, separators=(",", ":"), ensure_ascii=False)[:60])


def test_what_can_be_shown_stays_as_it_is():
    value = {"a": [1, 2.5, None, True, {"b": "é😀"}], "c": b"bytes"}
    assert presentable(value) == value
