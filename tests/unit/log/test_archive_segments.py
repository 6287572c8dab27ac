"""Segments, checksums and files of archives, without a broker."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import ArchiveError
from penstock.log.archive.archive import Archive
from penstock.log.archive.checksum import Checksum
from penstock.log.archive.parquet import SegmentFile, encoded, footer_of
from penstock.log.archive.rows import Row, message_of, row_of
from penstock.log.archive.segment import Segment, cover, gaps, reached_from

PLACES = st.integers(0, 60)
RANGES = st.lists(st.tuples(PLACES, PLACES).filter(lambda each: each[0] < each[1]), max_size=8)
BYTES = st.none() | st.binary(max_size=12)
HEADERS = st.none() | st.lists(st.tuples(st.text("abé", max_size=4), BYTES), min_size=1, max_size=3)


@st.composite
def rows(draw):
    """Rows of a partition in the order of the log, with gaps between their offsets."""
    offsets = draw(st.lists(st.integers(0, 500), unique=True, max_size=40).map(sorted))
    times = st.integers(-1, 2**41)
    return [Row(each, draw(times), draw(st.sampled_from([0, 1])), draw(BYTES), draw(BYTES), draw(HEADERS))
            for each in offsets]  # fmt: skip


def held(ranges):
    return {offset for first, end in ranges for offset in range(first, end)}


@given(RANGES, PLACES, PLACES)
def test_a_cover_reads_each_offset_once_up_to_the_first_hole(ranges, start, end):
    segments = [Segment(0, *each) for each in ranges]
    expected = []
    for offset in range(start, end):
        if offset not in held(ranges):
            break
        expected.append(offset)
    parts = cover(segments, start, end)
    assert [offset for part in parts for offset in range(part.first, part.next)] == expected
    assert all(part.segment.first <= part.first < part.next <= part.segment.next for part in parts)
    assert reached_from(segments, start) == start + len(
        [part for part in cover(segments, start) for _ in range(part.first, part.next)]
    )


@given(RANGES, PLACES, PLACES)
def test_gaps_are_what_no_segment_holds(ranges, start, end):
    found = held(gaps([Segment(0, *each) for each in ranges], start, end))
    assert found == set(range(start, end)) - held(ranges)


@settings(deadline=None)
@given(rows(), st.integers(0, 500))
def test_checksums_add_up_however_the_log_is_cut(some, cut):
    before, after = ([row for row in some if (row.offset < cut) is side] for side in (True, False))
    whole = Checksum.of(3, reversed(some))
    assert Checksum.of(3, before).adding(Checksum.of(3, after)) == whole
    assert whole.without(Checksum.of(3, before)) == Checksum.of(3, after)
    assert Checksum.parse(str(whole)) == whole


@settings(deadline=None)
@given(rows(), st.integers(0, 500))
def test_a_file_gives_back_what_was_written_in_the_order_of_the_log(some, start):
    footer = footer_of("orders", "u1", Segment(3, 0, 501), some)
    file = SegmentFile(pa.py_buffer(encoded(footer, some)), "f")
    assert file.footer == footer
    assert list(file.rows()) == some
    assert list(file.rows(start, start + 50)) == [row for row in some if start <= row.offset < start + 50]
    assert file.checksum() == footer.checksum
    for moment in {row.timestamp for row in some}:
        late = [row.offset for row in some if row.timestamp >= moment]
        assert file.first_since(moment) == late[0]


@pytest.mark.parametrize(
    "other",
    [
        Row(8, 5, 0, b"k", b"v", [("h", b"1")]),
        Row(7, 6, 0, b"k", b"v", [("h", b"1")]),
        Row(7, 5, 1, b"k", b"v", [("h", b"1")]),
        Row(7, 5, 0, None, b"kv", [("h", b"1")]),
        Row(7, 5, 0, b"", b"kv", [("h", b"1")]),
        Row(7, 5, 0, b"kv", b"", [("h", b"1")]),
        Row(7, 5, 0, b"k", None, [("h", b"1")]),
        Row(7, 5, 0, b"k", b"v", [("h", None)]),
        Row(7, 5, 0, b"k", b"v", [("h1", b"")]),
        Row(7, 5, 0, b"k", b"v", None),
    ],
)
def test_whatever_changes_in_a_record_changes_its_checksum(other):
    assert Checksum.of(0, [Row(7, 5, 0, b"k", b"v", [("h", b"1")])]) != Checksum.of(0, [other])


def test_a_row_is_a_message_and_a_message_a_row():
    row = Row(7, 5, 0, b"k", None, [("h", None)])
    message = message_of("orders", 2, row)
    assert (message.topic(), message.partition(), message.error()) == ("orders", 2, None)
    assert message.timestamp() == (1, 5)
    assert row_of(message) == row


@pytest.mark.parametrize(
    ("to", "more", "said"),
    [
        ("archive", {}, "whole path"),
        ("s3://", {}, "no bucket"),
        ("/srv", {"connection": "store"}, "needs no connection"),
        ("/srv", {"records": 0}, "at least one record"),
    ],
)
def test_an_archive_checks_itself(to, more, said):
    with pytest.raises(ArchiveError, match=said):
        Archive("orders", to, "u1", **more)


def test_what_is_no_segment_is_no_file_of_ours():
    assert Segment.parse(0, "notes.txt") is None
    assert Segment.parse(4, Segment(4, 3, 9).path.split("/")[1]) == Segment(4, 3, 9)
    with pytest.raises(ArchiveError, match="can't be read"):
        SegmentFile(pa.py_buffer(b"no parquet"), "f")
