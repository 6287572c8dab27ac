"""pgoutput's messages, put together here byte by byte."""

from struct import pack

from penstock.capture import pgoutput
from penstock.capture.pgoutput import UNCHANGED


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def row(*values) -> bytes:
    made = pack(">H", len(values))
    for value in values:
        if value is None:
            made += b"n"
        elif value is UNCHANGED:
            made += b"u"
        else:
            made += b"t" + pack(">I", len(value)) + value
    return made


def test_a_transaction_has_its_place_its_time_and_its_number():
    data = b"B" + pack(">qqI", 0x1_0000_0010, 5, 77)
    assert pgoutput.begin(data) == (0x1_0000_0010, 946_684_800_000_005, 77)
    assert pgoutput.commit(b"C" + pack(">Bqqq", 0, 16, 32, 5)) == (16, 32)


def test_a_table_is_described_with_its_columns():
    columns = pack(">H", 2)
    columns += b"\1" + text("id") + pack(">Ii", 20, -1)
    columns += b"\0" + text("preis €") + pack(">Ii", 1700, 786438)
    found = pgoutput.relation(b"R" + pack(">I", 9) + text("public") + text("orders") + b"d" + columns)
    assert (found.id, found.schema, found.table, found.identity) == (9, "public", "orders", "d")
    assert found.columns == (("id", 20, -1, True), ("preis €", 1700, 786438, False))


def test_rows_that_were_inserted_updated_and_deleted():
    id = pack(">I", 9)
    assert pgoutput.change(b"I" + id + b"N" + row(b"1", None)) == ("c", 9, None, [b"1", None], False)
    plain = b"U" + id + b"N" + row(b"1", UNCHANGED)
    assert pgoutput.change(plain) == ("u", 9, None, [b"1", UNCHANGED], False)
    moved = b"U" + id + b"K" + row(b"1", None) + b"N" + row(b"2", b"x")
    assert pgoutput.change(moved) == ("u", 9, [b"1", None], [b"2", b"x"], True)
    whole = b"U" + id + b"O" + row(b"1", b"a") + b"N" + row(b"1", b"b")
    assert pgoutput.change(whole) == ("u", 9, [b"1", b"a"], [b"1", b"b"], False)
    assert pgoutput.change(b"D" + id + b"K" + row(b"1", None)) == ("d", 9, [b"1", None], None, True)


def test_tables_that_were_emptied_and_messages():
    assert pgoutput.truncate(b"T" + pack(">IB2I", 2, 0, 9, 10)) == ((9, 10),)
    data = b"M" + pack(">Bq", 1, 44) + text("shop") + pack(">I", 5) + b"hello"
    assert pgoutput.message(data) == (True, 44, "shop", b"hello")


def test_streamed_transactions_end_or_are_undone():
    assert pgoutput.streamed_commit(b"c" + pack(">IBqqq", 7, 0, 16, 32, 1)) == (
        7,
        16,
        32,
        946_684_800_000_001,
    )
    assert pgoutput.streamed_abort(b"A" + pack(">II", 7, 8)) == (7, 8)
