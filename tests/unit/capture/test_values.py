"""Values as PostgreSQL spells them, and as Debezium writes them."""

import base64
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.capture import times, values
from penstock.capture.arrays import elements
from penstock.capture.chunks import copied_row
from penstock.capture.types import Type
from penstock.capture.values import Encoding

EPOCH = datetime(1970, 1, 1)


def encoded(name, text, **more):
    return json.loads(Encoding().of(Type(name, **more))(text.encode()))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("bool", "t", True),
        ("int8", "-9223372036854775808", -(2**63)),
        ("float8", "1e+20", 1e20),
        ("float8", "NaN", "NaN"),
        ("float4", "-Infinity", "-Infinity"),
        ("numeric", "12345678901234567890.12345678901234567890", "12345678901234567890.12345678901234567890"),
        ("numeric", "NaN", "NaN"),
        ("text", 'a "b" \\ \n €', 'a "b" \\ \n €'),
        ("bytea", "\\x00ff", "AP8="),
        ("uuid", "a0ee-1", "a0ee-1"),
        ("jsonb", '{"a": 1}', '{"a": 1}'),
        ("date", "1970-01-02", 1),
        ("date", "0001-01-01 BC", -719528),
        ("date", "20000-01-01", 6585322),
        ("time", "24:00:00", 86_400_000_000),
        ("timestamp", "1969-12-31 23:59:59.5", -500_000),
        ("timestamptz", "2026-01-02 03:04:05+00", "2026-01-02T03:04:05.000000Z"),
        ("timestamptz", "2026-01-02 03:04:05.1+00", "2026-01-02T03:04:05.100000Z"),
        ("timetz", "01:00:00.5+02", "23:00:00.5Z"),
        ("interval", "1 year 2 mons -3 days -04:05:06.789", "P1Y2M-3DT-4H-5M-6.789S"),
        ("varbit", "00000001", "AQ=="),
    ],
)
def test_each_type_has_its_spelling(name, text, expected):
    assert encoded(name, text) == expected


def test_precision_decides_about_milliseconds():
    assert encoded("timestamp", "1970-01-01 00:00:01.5", modifier=3) == 1500
    assert encoded("timestamp", "1970-01-01 00:00:01.5", modifier=6) == 1_500_000
    assert encoded("time", "00:00:01", modifier=0) == 1000


def test_arrays_are_lists_with_nulls_and_dimensions():
    assert encoded("_int4", "{1,NULL,3}", element=Type("int4")) == [1, None, 3]
    assert encoded("_int4", "{{1,2},{3,4}}", element=Type("int4")) == [[1, 2], [3, 4]]
    assert encoded("_text", r'{"a,\"b\"",NULL,"NULL",""}', element=Type("text")) == [
        'a,"b"',
        None,
        "NULL",
        "",
    ]
    assert encoded("_int4", "[0:1]={7,8}", element=Type("int4")) == [7, 8]
    assert encoded("_text", "{}", element=Type("text")) == []


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
def test_times_are_exact_to_the_microsecond(moment):
    spelled = moment.isoformat(sep=" ").encode()
    assert times.timestamp_micros(spelled) == (moment - EPOCH) // timedelta(microseconds=1)
    zoned = json.loads(times.zoned(spelled + b"+00"))
    assert datetime.fromisoformat(zoned) == moment.replace(tzinfo=UTC)


@given(st.dates())
def test_days_are_those_since_1970(day):
    assert times.days(day.isoformat().encode()) == b"%d" % (day - date(1970, 1, 1)).days
    assert times._far_days(day.isoformat()) == (day - date(1970, 1, 1)).days


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**15), max_value=10**15))
def test_a_precise_number_is_what_java_reads(number):
    made = values.unscaled(number, 3)
    assert Decimal(int.from_bytes(made, "big", signed=True)).scaleb(-3) == number
    if len(made) > 1:  # as few bytes as can be
        assert int.from_bytes(made[1:], "big", signed=True) != int.from_bytes(made, "big", signed=True)


def test_a_precise_number_without_a_scale_has_its_own():
    encode = Encoding(decimals="precise").of(Type("numeric"))
    assert json.loads(encode(b"1.50")) == {"scale": 2, "value": base64.b64encode(b"\0\x96").decode()}


@given(
    st.lists(st.one_of(st.none(), st.text(st.characters(exclude_characters="\0", codec="utf-8"))), min_size=1)
)
def test_rows_of_copy_come_back(fields):
    escapes = {"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\b": r"\b", "\f": r"\f", "\v": r"\v"}
    spelled = ["\\N" if each is None else "".join(escapes.get(c, c) for c in each) for each in fields]
    line = ("\t".join(spelled) + "\n").encode()
    assert copied_row(line) == [None if each is None else each.encode() for each in fields]


@given(st.lists(st.one_of(st.none(), st.text(st.characters(exclude_characters="\0", codec="utf-8")))))
def test_arrays_of_any_text_come_back(items):
    def quoted(each):
        return "NULL" if each is None else '"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"'

    literal = "{" + ",".join(map(quoted, items)) + "}"
    assert elements(literal.encode()) == [None if each is None else each.encode() for each in items]


def test_a_precise_number_has_all_its_digits():
    encode = Encoding(decimals="precise").of(Type("numeric", modifier=(38 << 16 | 2) + 4))
    made = base64.b64decode(json.loads(encode(b"123456789012345678901234567890123456.78")))
    assert int.from_bytes(made, "big", signed=True) == 12345678901234567890123456789012345678
    assert encode(b"NaN") == b"null"
