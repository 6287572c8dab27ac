"""Values go to Debezium's JSON and back to PostgreSQL's spelling without a loss."""

import json
from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.capture.chunks import copied_row
from penstock.capture.types import Type
from penstock.capture.values import Encoding
from penstock.replica.spelling import is_key_of, lost, plain, spelling
from penstock.replica.table_writer import escaped

START = datetime(1970, 1, 1)


def there_and_back(type, text):
    return spelling(type)(Encoding().of(type)(text.encode())).decode()


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (Type("int8"), "-9223372036854775808"),
        (Type("float8"), "-0"),
        (Type("float8"), "1.7976931348623157e+308"),
        (Type("float4"), "NaN"),
        (Type("numeric"), "123456789012345678901234567890.12345678900"),
        (Type("numeric"), "-Infinity"),
        (Type("text"), 'a "b" \\ \n\t €\u2028\u0001'),
        (Type("bytea"), "\\x00ff10"),
        (Type("bytea"), "\\x"),
        (Type("date"), "infinity"),
        (Type("date"), "4713-01-01 BC"),
        (Type("date"), "5874897-12-31"),
        (Type("time"), "24:00:00"),
        (Type("time", 3), "12:34:56.789000"),
        (Type("timestamp"), "-infinity"),
        (Type("timestamp", 3), "infinity"),
        (Type("timestamp"), "0044-03-15 12:00:00 BC"),
        (Type("timestamp"), "294276-12-31 23:59:59.999999"),
        (Type("timestamptz"), "infinity"),
        (Type("timestamptz"), "-infinity"),
        (Type("bit", 1), "1"),
        (Type("bit", 19), "0010000000000000011"),
        (Type("bit", 8), "00000000"),
        (Type("point"), "(1e+300,-1e-300)"),
        (Type("point"), "(NaN,-0)"),
        (Type("jsonb"), '{"a": [1, null, "\\"x\\""]}'),
        (Type("jsonb"), "null"),
    ],
)
def test_each_type_comes_back_as_it_was(type, text):
    assert there_and_back(type, text) == text


def test_zoned_times_and_intervals_are_spelled_by_iso():
    assert there_and_back(Type("timestamptz"), "2026-01-02 03:04:05.1+00") == "2026-01-02T03:04:05.100000Z"
    assert (
        there_and_back(Type("timestamptz"), "0044-03-15 12:00:00+00 BC") == "0044-03-15 12:00:00.000000+00 BC"
    )
    assert there_and_back(Type("interval"), "1 year 2 mons -3 days -04:05:06.789") == "P1Y2M-3DT-4H-5M-6.789S"


def test_arrays_keep_nulls_quotes_and_dimensions():
    texts, numbers = Type("_text", element=Type("text")), Type("_int4", element=Type("int4"))
    assert there_and_back(texts, '{a,"b \\"c\\"",NULL,"NULL",""}') == '{"a","b \\"c\\"",NULL,"NULL",""}'
    assert there_and_back(numbers, "{{1,2},{3,NULL}}") == '{{"1","2"},{"3",NULL}}'
    assert there_and_back(texts, "{}") == "{}"


@given(st.dates())
def test_dates(value):
    assert there_and_back(Type("date"), value.isoformat()) == value.isoformat()


@given(st.integers(-1_721_425, 2_932_896 * 10))
def test_days_that_python_has_no_date_for(days):
    text = spelling(Type("date"))(b"%d" % days)
    assert Encoding().of(Type("date"))(text) == b"%d" % days


@given(st.datetimes())
def test_timestamps(value):
    text = there_and_back(Type("timestamp"), value.isoformat(" "))
    assert datetime.fromisoformat(text) == value
    millis = value - timedelta(microseconds=value.microsecond % 1000)
    assert datetime.fromisoformat(there_and_back(Type("timestamp", 3), millis.isoformat(" "))) == millis


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_texts_survive_json_and_copy(value):
    line = escaped(plain(json.dumps(value).encode())) + b"\n"
    assert copied_row(line) == [value.encode()]


@given(st.binary(max_size=50))
def test_bytes(value):
    assert there_and_back(Type("bytea"), f"\\x{value.hex()}") == f"\\x{value.hex()}"


def test_what_json_does_not_hold_is_known():
    assert lost(Type("varbit"))
    assert lost(Type("_varbit", element=Type("varbit")))
    assert lost(Type("bit", 8)) is None


def test_keys_from_before_their_type_was_changed_are_recognised():
    assert is_key_of(Type("int4"), b"1")
    assert not is_key_of(Type("int4"), b'"1"')
    assert is_key_of(Type("text"), b'"1"')
    assert not is_key_of(Type("text"), b"1")
    assert is_key_of(Type("float8"), b'"NaN"')


def test_a_value_of_an_earlier_type_is_left_to_postgresql():
    assert spelling(Type("text"))(b"5") == b"5"
    assert spelling(Type("int4"))(b'"5"') == b"5"
    assert spelling(Type("date"))(b'"2026-01-01"') == str(date(2026, 1, 1)).encode()
