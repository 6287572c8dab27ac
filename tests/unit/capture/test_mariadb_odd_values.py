"""Values that a MariaDB takes though they are none: they don't stop a capture."""

from types import SimpleNamespace

import pytest

from penstock.capture.mysql.charsets import Charsets
from penstock.capture.mysql.types import declared_type
from penstock.capture.times import is_zero
from penstock.capture.values import Encoding


@pytest.fixture
def charsets():
    answers = {"collations": [("13", "sjis"), ("19", "euckr"), ("35", "ucs2")]}
    server = SimpleNamespace(one=lambda *_: "1", ask=lambda query: answers.get(query.rpartition(".")[2], []))
    return Charsets(server)


def test_a_text_that_is_not_in_its_character_set_has_marks_for_it(charsets):
    assert charsets.of(13, "x")(b"a\xff").decode() == "a\ufffd"
    assert charsets.of(35, "x")(b"\0a\xd8\0").decode() == "a\ufffd"
    assert charsets.of(13, "x")("ア".encode("shift-jis")).decode() == "ア"


def test_the_servers_korean_has_all_syllables(charsets):
    assert charsets.of(19, "x")("똠".encode("cp949")).decode() == "똠"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"2026-02-31", True),
        (b"2026-02-29 10:00:00", True),
        (b"0000-00-00", True),
        (b"2026-00-01", True),
        (b"2024-02-29", False),
        (b"2026-12-31 23:59:59", False),
    ],
)
def test_a_day_that_never_was_is_like_a_zero_date(text, expected):
    assert is_zero(text) is expected


def test_a_day_that_never_was_is_null():
    date = declared_type("date", "date", 0, 0, 0)
    moment = declared_type("datetime", "datetime(6)", 0, 0, 6)
    assert Encoding().of(date)(b"2026-02-31") == b"null"
    assert Encoding().of(moment)(b"2026-04-31 10:00:00.000000") == b"null"
    assert Encoding().of(date)(b"1970-01-31") == b"30"
