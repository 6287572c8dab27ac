"""Records of Kafka's own topic of commits, as its brokers have written them over the years."""

import struct

import pytest

from penstock.ops.lag.ends import thinned
from penstock.ops.lag.offset_commits import OffsetCommit, Place, decode

PLACE = Place("billing", "orders", 3)


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def key(version=1):
    return struct.pack(">h", version) + text("billing") + text("orders") + struct.pack(">i", 3)


VALUES = {
    0: struct.pack(">hq", 0, 42) + text("note") + struct.pack(">q", 1_700_000_000_500),
    1: struct.pack(">hq", 1, 42) + text("") + struct.pack(">qq", 1_700_000_000_500, 1_800_000_000_000),
    2: struct.pack(">hq", 2, 42) + text("note") + struct.pack(">q", 1_700_000_000_500),
    3: struct.pack(">hqi", 3, 42, 7) + text("note") + struct.pack(">q", 1_700_000_000_500),
    4: struct.pack(">hqi", 4, 42, 7) + b"\x05note" + struct.pack(">q", 1_700_000_000_500) + b"\x00",
}


@pytest.mark.parametrize("version", VALUES)
@pytest.mark.parametrize("key_version", [0, 1])
def test_every_version_of_a_commit_is_decoded(version, key_version):
    assert decode(key(key_version), VALUES[version]) == OffsetCommit(PLACE, 42, 1_700_000_000.5)


def test_a_tombstone_is_a_place_without_a_position():
    assert decode(key(), None) == OffsetCommit(PLACE, None, 0.0)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (struct.pack(">h", 2) + text("billing"), b"a group's members"),
        (struct.pack(">h", 3) + text("billing"), b""),
        (key(), struct.pack(">hq", 5, 42)),
        (key(), VALUES[3][:-4]),
        (key()[:-2], VALUES[3]),
        (None, None),
        (b"", b""),
    ],
)
def test_what_is_of_another_kind_or_cut_off_is_passed_over(key, value):
    assert decode(key, value) is None


def test_long_metadata_has_a_length_of_several_bytes():
    note = "n" * 300
    value = struct.pack(">hqi", 4, 42, 7) + b"\xad\x02" + note.encode() + struct.pack(">q", 5000) + b"\x00"
    assert decode(key(), value) == OffsetCommit(PLACE, 42, 5.0)


def test_of_many_commits_a_few_are_kept_the_ends_and_the_last_fall_back_among_them():
    made = [
        OffsetCommit(PLACE, position, float(n)) for n, position in enumerate([*range(100), *range(50, 90)])
    ]
    kept = thinned(made)
    assert kept[0] is made[0]
    assert kept[-1] is made[-1]
    assert len(kept) <= 14
    assert [made[99], made[100]] == [each for each in kept if each.at in (99.0, 100.0)]
    assert thinned(made[:12]) == made[:12]
