"""Events come back from their bytes as they went in, and damaged bytes never crash a reader."""

import io
import json
from datetime import UTC, datetime
from random import Random

import fastavro
import pytest
from hypothesis import given, settings
from tests.event_samples import Order, orders, random_order
from tests.schema_directory import MemoryDirectory, Outage

from penstock.errors import DataError, DecodeError, LogError, TopicError
from penstock.log import Topic
from penstock.schemas import avro_schema

FORMATS = ["json", "avro", "json-schema", "protobuf"]


def codec_for(cls, format, **options):
    return Topic("orders", cls, format=format, **options).codec(MemoryDirectory())


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(order=orders)
def test_an_event_survives_the_round_trip(format, order):
    codec = codec_for(Order, format)
    data = codec.encode(order)
    read = codec.decode(data)
    assert read == order
    assert type(read) is Order
    assert type(read.first) is type(order.first)
    assert codec.encode(read) == data


@settings(max_examples=50, deadline=None, derandomize=True)
@given(order=orders)
def test_avro_is_plain_avro_for_other_readers(order):
    data = codec_for(Order, "avro").encode(order)
    read = fastavro.schemaless_reader(io.BytesIO(data[5:]), fastavro.parse_schema(avro_schema(Order)), None)
    assert read["total"] == order.total
    assert read["at"] == order.at
    assert [line["product"] for line in read["lines"]] == [line.product for line in order.lines]


def damaged(data: bytes, rng: Random) -> bytes:
    """Flip, cut, insert or repeat a few bytes."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(result) or 1)
        match rng.randrange(4):
            case 0 if result:
                result[place] ^= 1 << rng.randrange(8)
            case 1:
                del result[place : place + rng.randrange(1, 9)]
            case 2:
                result[place:place] = rng.randbytes(rng.randrange(1, 5))
            case 3:
                result[place:place] = result[place : place + rng.randrange(1, 9)]
    return bytes(result)


@pytest.mark.parametrize("format", FORMATS)
def test_each_of_10_000_damaged_messages_re_encodes_identically_or_is_refused(format):
    """Identically: to the same bytes, or, where the damage only changed the spelling (1.5 and 1.50),
    to bytes that read as the same event again. Any other exception fails the test."""
    codec, rng = codec_for(Order, format, unknown="refuse"), Random(20261115)
    outcomes = {"refused": 0, "same bytes": 0, "same event": 0}
    for _ in range(10_000):
        raw = damaged(codec.encode(random_order(rng)), rng)
        try:
            event = codec.decode(raw)
        except DataError:
            outcomes["refused"] += 1
            continue
        again = codec.encode(event)
        assert codec.decode(again) == event
        outcomes["same bytes" if again == raw else "same event"] += 1
    assert outcomes["refused"] > 8_000
    assert outcomes["same event"] < 200


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weight": "heavy"}, "weight"),
        ({"at": "2026-01-01T00:00:00"}, "timezone"),
        ({"count": 2**63}, "count"),
        ({"total": "1.005"}, "digits"),
        ({"channel": "phone"}, "channel"),
    ],
)
def test_json_that_does_not_fit_is_refused_with_its_field(change, says):
    codec = codec_for(Order, "json")
    document = json.loads(codec.encode(random_order(Random(1)))) | change
    with pytest.raises(DecodeError, match=says):
        codec.decode(json.dumps(document).encode())


def surprising(data, *, nested):
    """A message with a field that the class, or one in it, does not have."""
    start = data.index(b"{")
    document = json.loads(data[start:])
    (document["first"] if nested else document)["surprise"] = 1
    return data[:start] + json.dumps(document).encode()


@pytest.mark.parametrize("format", ["json", "json-schema"])
@pytest.mark.parametrize("nested", [False, True])
def test_unknown_fields_of_json_are_ignored_or_refused_as_the_topic_says(format, nested):
    order = random_order(Random(1))
    lenient, strict = codec_for(Order, format), codec_for(Order, format, unknown="refuse")
    message = surprising(lenient.encode(order), nested=nested)
    assert message == surprising(strict.encode(order), nested=nested)
    assert lenient.decode(message) == order
    with pytest.raises(DecodeError, match="unknown field `surprise`"):
        strict.decode(message)
    with pytest.raises(DecodeError, match="utf-8"):
        lenient.decode(message.replace(b'"surprise": 1', b'"surprise": "\xff"'))


def test_a_topic_that_does_neither_is_refused():
    with pytest.raises(TopicError, match="unknown='drop'"):
        Topic("orders", Order, unknown="drop")


def test_a_missing_field_is_named():
    codec = codec_for(Order, "json")
    document = json.loads(codec.encode(random_order(Random(1))))
    for name in ("id", "total"):
        shorter = {key: value for key, value in document.items() if key != name}
        with pytest.raises(DecodeError, match=name):
            codec.decode(json.dumps(shorter).encode())


def test_a_field_with_a_default_may_be_missing():
    codec = codec_for(Order, "json")
    document = json.loads(codec.encode(random_order(Random(1))))
    del document["currency"], document["reminded"]
    read = codec.decode(json.dumps(document).encode())
    assert (read.currency, read.reminded) == ("EUR", [])


@pytest.mark.parametrize("format", ["avro", "json-schema"])
def test_a_message_names_its_schema(format):
    codec = codec_for(Order, format)
    data = codec.encode(random_order(Random(1)))
    assert data[:5] == b"\0\0\0\0\1"
    with pytest.raises(DataError, match="no schema has the id 7"):
        codec.decode(b"\0\0\0\0\7" + data[5:])
    with pytest.raises(DecodeError, match="do not begin with"):
        codec.decode(b"\1" + data[1:])


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_message_is_refused(format):
    with pytest.raises(DecodeError, match="without a value"):
        codec_for(Order, format).decode(None)


def test_json_is_what_other_readers_expect():
    order = random_order(Random(1))
    document = json.loads(codec_for(Order, "json").encode(order))
    assert document["total"] == str(order.total)
    assert datetime.fromisoformat(document["at"]).astimezone(UTC) == order.at
    assert document["channel"] == order.channel.value


@pytest.mark.parametrize("format", ["avro", "json-schema"])
@pytest.mark.parametrize("error", [LogError("no answer"), ConnectionRefusedError(), RuntimeError("a bug")])
def test_an_outage_of_the_registry_is_no_fault_of_the_message(format, error):
    directory = Outage()
    topic = Topic("orders", Order, format=format)
    order = random_order(Random(1))
    data = topic.codec(directory).encode(order)
    codec = topic.codec(directory)
    directory.error = error
    with pytest.raises(type(error)):
        codec.decode(data)
    with pytest.raises(type(error)):
        codec.decode_all([b"malformed", None, data])
    directory.error = None
    events, failures = codec.decode_all([b"malformed", None, data])
    assert events == [None, None, order]
    assert failures.keys() == {0, 1}


def test_what_may_pass_is_no_fault_of_the_message_in_any_format():
    for format in FORMATS:
        codec = codec_for(Order, format)
        data = codec.encode(random_order(Random(1)))
        codec.decode(data)
        codec._revive = _unreachable
        with pytest.raises(LogError, match="no answer"):
            codec.decode(data)
        with pytest.raises(LogError, match="no answer"):
            codec.decode_all([data])


def _unreachable(_):
    raise LogError("no answer")
