"""Where a client begins to read, and how much it may have on its way."""

import pytest
from tests.gateway import client

from penstock.gateway.refusal import Refusal
from penstock.gateway.start import BEGINNING, Start, moment, refuse_unknown
from penstock.gateway.window import Window


def test_a_beginning_is_said_in_several_ways():
    assert Start.of({}).position.kind == "end"
    assert Start.of({"from": "beginning", "partition": "2"}).partition == 2
    assert Start.of({"from": "2026-01-01T00:00:00Z"}).position.time.year == 2026
    assert Start.of({"from": "3:0,1:99"}).offsets == {3: 0, 1: 99}


@pytest.mark.parametrize(
    "asked",
    [
        {"from": "yesterday"}, {"from": "0:"}, {"from": "0:-1"}, {"from": "0:1,"}, {"from": "٣:1"},
        {"from": "99999999999-01-01"}, {"offset": "3"}, {"offset": "-1", "partition": "0"},
        {"partition": "x"}, {"offset": "3", "partition": "0", "from": "end"}, {"from": "9" * 40},
        {"from": "0:1", "partition": "0"}, {"offset": "9" * 30, "partition": "0"},
    ],
)  # fmt: skip
def test_a_beginning_that_is_none_is_refused(asked):
    with pytest.raises(Refusal) as refused:
        Start.of(asked)
    assert refused.value.status == 400


def test_a_time_without_a_zone_is_utc():
    assert moment("at", "2026-01-01T00:00:00").isoformat() == "2026-01-01T00:00:00+00:00"
    assert moment("at", "2026-01-01T02:00:00+02:00").isoformat() == "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "wait=31", "wait=-1", "wait=0.5", "offset=1"]
)
def test_a_query_that_does_not_fit_is_refused(query):
    answer = client().get(f"/topics/orders/events?{query}")
    assert (answer.status_code, answer.json()["id"]) == (400, "gateway.query")


def test_a_topic_that_is_not_served_is_not_read():
    assert client().get("/topics/other/events").status_code == 404


def test_a_window_counts_events_and_bytes():
    window = Window(3)
    window.sent([10, 20])
    assert window.room == 1
    assert not window.acknowledge(3)
    assert not window.acknowledge(0)
    assert window.acknowledge(2)
    window.sent([5 * 2**20])
    assert window.room == 0
    assert window.acknowledge(1)
    assert window.room == 3


def test_a_word_that_means_nothing_is_refused():
    refuse_unknown({"from": "end", "limit": "3"}, *BEGINNING, "limit")
    with pytest.raises(Refusal, match="'limt' is not asked for here") as refused:
        refuse_unknown({"limt": "3"}, *BEGINNING, "limit")
    assert refused.value.status == 400
    assert "partition" in refused.value.hint
