"""Records of Kafka's topic of share groups, as a broker of release 4.3 has written them."""

import struct

import pytest
from confluent_kafka import Uuid

from penstock.ops.lag.share_states import SharePlace, ShareState, decode

ID = b'\xf6\xcb"\xe4\xd8[H\xaa\xb2\xbb\xe4\x05jgN\x11'
PLACE = SharePlace("work", "9ssi5NhbSKqyu+QFamdOEQ", 0)


def key(kind, partition=0, id=ID):
    return bytes([0, kind]) + b"\x00\x04work" + id + partition.to_bytes(4, "big")


def update(start, *batches, tags=b"\x00"):
    shown = b"".join(
        first.to_bytes(8, "big") + last.to_bytes(8, "big") + bytes([state]) + b"\x00\x01\x00"
        for first, last, state in batches
    )
    return b"\x00\x00" + bytes(8) + start.to_bytes(8, "big") + bytes([len(batches) + 1]) + shown + tags


def test_a_queue_that_has_not_begun_has_no_position():
    value = bytes.fromhex("0000 00000000 00000002 00000000 ffffffffffffffff") + bytes(16) + b"\x01\x00"
    assert decode(key(0), value) == ShareState(PLACE, None)


def test_what_is_acknowledged_or_archived_behind_the_start_counts_as_done():
    value = update(10, (10, 19, 0), (20, 29, 2), (30, 34, 4))
    found = decode(key(1), value)
    assert found == ShareState(PLACE, 10, 15, returned=10)
    assert found.position == 25


def test_the_count_of_the_broker_is_believed():
    value = b"\x00\x00" + bytes(16) + b"\x02" + bytes(8) + (427).to_bytes(8, "big") + b"\x00\x00\x01\x00"
    assert decode(key(1), value + b"\x01\x00\x04\x00\x00\x00\x07") == ShareState(PLACE, 0, 7, returned=428)


def test_a_tombstone_deletes():
    assert decode(key(1), None) == ShareState(PLACE, None, deleted=True)


@pytest.mark.parametrize(
    ("id", "spelled"), [(ID, "9ssi5NhbSKqyu+QFamdOEQ"), (b"\xff" * 16, "/////////////////////w")]
)
def test_the_id_of_a_topic_is_spelled_as_the_client_spells_it(id, spelled):
    """Kafka's tools write - and _ for + and /, which every other id has."""
    assert str(Uuid(*struct.unpack(">qq", id))) == spelled
    assert decode(key(1, id=id), update(1)).place.topic_id == spelled


def test_other_formats_are_passed_over():
    assert decode(key(2), update(1)) is None
    assert decode(key(1), b"\x00\x01" + bytes(30)) is None
    assert decode(key(0), b"\x00\x00\x00") is None
    assert decode(None, None) is None
