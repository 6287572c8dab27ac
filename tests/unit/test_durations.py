"""Durations as people write them."""

from datetime import timedelta

import pytest

from penstock.durations import duration
from penstock.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 minutes", 600),
        ("1 second", 1),
        ("5ms", 0.005),
        ("1.5 hours", 5400),
        ("2 d", 172800),
        ("3 WEEKS", 1814400),
    ],
)
def test_a_duration_is_read(text, seconds):
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("wrong", ["", "soon", "10", "-1 second", "0 seconds", "10 parsecs", timedelta(0)])
def test_what_is_no_duration_is_refused(wrong):
    with pytest.raises(ConfigurationError, match="duration"):
        duration(wrong)


@pytest.mark.parametrize("nothing", ["0 seconds", "0.0 h", timedelta(0)])
def test_no_time_at_all_is_a_duration_where_it_may_be(nothing):
    assert duration(nothing, zero=True) == timedelta(0)
    with pytest.raises(ConfigurationError, match="negative"):
        duration(timedelta(seconds=-1), zero=True)
