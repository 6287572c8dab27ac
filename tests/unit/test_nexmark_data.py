"""Nexmark's events are what the benchmark says, and its reference answers are those found by hand."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bench.nexmark.events import AUCTION, BASE, BID, INSTANT, PERSON, Nexmark, generate
from bench.nexmark.reference import answer

COUNT = 50_000
DISORDER = timedelta(seconds=3)
WINDOW = ["window_start", "window_end"]
BY_RANK = ["total_{}", "rank1_{}", "rank2_{}", "rank3_{}"]


@pytest.fixture(scope="module")
def events():
    return generate(COUNT, seed=7)


@pytest.fixture(scope="module")
def disordered():
    return generate(COUNT, seed=7, disorder=DISORDER)


def column(table, name):
    return table[name].to_numpy()


def test_the_same_seed_gives_the_same_events(events):
    assert generate(COUNT, seed=7) == events
    assert generate(COUNT, seed=8) != events


def test_each_kind_has_its_fields_and_its_share(events):
    assert (events.persons.schema, events.auctions.schema, events.bids.schema) == (PERSON, AUCTION, BID)
    shares = [table.num_rows * 50 / COUNT for table in (events.persons, events.auctions, events.bids)]
    assert shares == [1, 3, 46]
    assert not any(col.null_count for table in vars(events).values() for col in table.columns)


def test_every_number_is_one_event_at_its_time(events):
    n = np.concatenate([column(table, "n") for table in vars(events).values()])
    assert sorted(n) == list(range(COUNT))
    assert events.bids.slice(0, 1).to_pylist()[0]["at"] == BASE + timedelta(microseconds=400)
    assert lateness(events.bids).max() == timedelta(0)


def test_ids_count_up_from_1000(events):
    assert column(events.persons, "id").tolist() == list(range(1000, 2000))
    assert column(events.auctions, "id").tolist() == list(range(1000, 4000))
    assert set(column(events.auctions, "category")) == {10, 11, 12, 13, 14}


def test_half_of_the_bids_are_on_the_hot_auction(events):
    last = column(events.bids, "n") // 50 * 3 + 2
    auction = column(events.bids, "auction") - 1000
    hot = auction == last // 100 * 100
    assert hot.mean() == pytest.approx(0.5, abs=0.02)
    cold, newest = auction[~hot], last[~hot]
    assert ((cold >= 0) & (cold > newest - 100) & (cold <= newest + 10)).all()


@pytest.mark.parametrize(("kind", "field", "place"), [("bids", "bidder", 1), ("auctions", "seller", 0)])
def test_three_of_four_are_by_the_hot_person(events, kind, field, place):
    table = getattr(events, kind)
    last, person = column(table, "n") // 50, column(table, field) - 1000
    hot = person == last // 100 * 100 + place
    assert hot.mean() == pytest.approx(0.75, abs=0.03)
    assert ((person >= 0) & (person <= last + 10)).all()


def test_prices_are_spread_evenly_over_six_powers_of_ten(events):
    price = column(events.bids, "price")
    assert price.min() >= 100
    assert price.max() <= 100_000_000
    assert np.log10(price).mean() == pytest.approx(5, abs=0.05)
    assert (column(events.auctions, "reserve") >= column(events.auctions, "initial_bid") + 100).all()


def test_auctions_last_as_long_as_two_hundred_auctions_take_at_most(events):
    lives = column(events.auctions, "expires") - column(events.auctions, "at")
    horizon = np.timedelta64(166_666, "us")
    assert lives.min() >= np.timedelta64(1, "ms")
    assert lives.max() < np.timedelta64(1, "ms") + 2 * horizon
    assert lives.mean() / horizon == pytest.approx(1, abs=0.05)


def test_half_of_the_bids_come_from_four_channels_and_a_channel_keeps_its_url(events):
    few = pc.invert(pc.starts_with(events.bids["channel"], "channel-")).to_numpy()
    assert few.mean() == pytest.approx(0.5, abs=0.02)
    assert len(pc.unique(events.bids["channel"].filter(pa.array(few)))) == 4
    with_id = pc.match_substring(events.bids["url"], "&channel_id=").to_numpy()
    assert with_id[~few].mean() == pytest.approx(0.9, abs=0.02)
    assert not with_id[few].any()
    pairs = events.bids.group_by("channel").aggregate([("url", "count_distinct")])
    assert pc.max(pairs["url_count_distinct"]).as_py() == 1


@pytest.mark.parametrize(
    ("kind", "numbers", "texts", "size"),
    [
        ("persons", 1, ["name", "email", "credit_card", "city", "state", "extra"], 200),
        ("auctions", 6, ["item", "description", "extra"], 500),
        ("bids", 4, ["extra"], 100),
    ],
)
def test_the_filler_makes_up_for_the_size(events, kind, numbers, texts, size):
    lengths = [pc.binary_length(getattr(events, kind)[text]).to_numpy() for text in texts]
    assert (8 * numbers + sum(lengths)).mean() == pytest.approx(size, rel=0.01)


def lateness(table):
    since = column(table, "at") - np.datetime64(BASE.replace(tzinfo=None), "us")
    return (column(table, "n") * 100).astype("timedelta64[us]") - since


def test_disorder_keeps_its_bound_and_touches_a_tenth(disordered):
    for table in vars(disordered).values():
        late = lateness(table)
        assert late.min() == timedelta(0)
        assert np.timedelta64(1, "s") < late.max() <= np.timedelta64(DISORDER)
        assert (late > timedelta(0)).mean() == pytest.approx(0.1, abs=0.03)
        assert (np.diff(column(table, "n")) > 0).all()


@pytest.mark.parametrize(
    ("kind", "times"), [("persons", ["at"]), ("auctions", ["at", "expires"]), ("bids", ["at"])]
)
def test_disorder_changes_nothing_but_times(events, disordered, kind, times):
    before, after = getattr(events, kind), getattr(disordered, kind)
    assert after != before
    assert after.drop_columns(times) == before.drop_columns(times)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"count": -1}, "count is -1"),
        ({"rate": 0}, "rate is 0"),
        ({"base": datetime(2026, 1, 1)}, "time zone"),
        ({"disorder": timedelta(seconds=-1)}, "disorder is"),
    ],
)
def test_what_makes_no_events_is_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        generate(**{"count": 1, "seed": 1, **wrong})


def at(seconds):
    return BASE + timedelta(seconds=seconds)


def bid(n, seconds, *, auction=1, bidder=1, price=100, channel="a"):
    return {
        "n": n,
        "auction": auction,
        "bidder": bidder,
        "price": price,
        "channel": channel,
        "url": f"u{n}",
        "at": at(seconds),
        "extra": f"x{n}",
    }


def made(bids=(), *, persons=(), auctions=()):
    kinds = ((persons, PERSON), (auctions, AUCTION), (bids, BID))
    return Nexmark(*(pa.Table.from_pylist(list(rows), schema) for rows, schema in kinds))


def test_q5_keeps_the_auctions_with_most_bids_of_each_hop():
    found = answer("q5", made([bid(1, 0, auction=1), bid(2, 9, auction=2), bid(3, 10, auction=2)]))
    assert found.columns == [*WINDOW, "auction", "bids"]
    assert found.rows() == [
        (at(-8), at(2), 1, 1),
        (at(-6), at(4), 1, 1),
        (at(-4), at(6), 1, 1),
        (at(-2), at(8), 1, 1),
        (at(0), at(10), 1, 1),
        (at(0), at(10), 2, 1),
        (at(2), at(12), 2, 2),
        (at(4), at(14), 2, 2),
        (at(6), at(16), 2, 2),
        (at(8), at(18), 2, 2),
        (at(10), at(20), 2, 1),
    ]


def test_q7_gives_the_bids_of_the_highest_price_of_each_window():
    found = answer(
        "q7",
        made(
            [
                bid(1, 0, price=100),
                bid(2, 9.999999, price=300, auction=5),
                bid(3, 5, price=300, bidder=6),
                bid(4, 10, price=300),
                bid(5, 12, price=200),
            ]
        ),
    )
    assert found.columns == [*WINDOW, "auction", "bidder", "price", "at", "extra", "n"]
    assert found.rows() == [
        (at(0), at(10), 5, 1, 300, at(9.999999), "x2", 2),
        (at(0), at(10), 1, 6, 300, at(5), "x3", 3),
        (at(10), at(20), 1, 1, 300, at(10), "x4", 4),
    ]


def test_q8_finds_people_who_sell_in_the_window_they_came_in():
    persons = [
        {"n": 1, "id": 7, "name": "Oak Wren", "at": at(3)},
        {"n": 2, "id": 8, "name": "Elm Tern", "at": at(9)},
        {"n": 3, "id": 9, "name": "Fir Lark", "at": at(12)},
    ]
    sold = [(7, 4), (7, 9), (7, 11), (8, 10), (9, 11), (5, 3)]
    auctions = [{"n": 10 + i, "id": i, "seller": who, "at": at(when)} for i, (who, when) in enumerate(sold)]
    found = answer("q8", made(persons=persons, auctions=auctions))
    assert found.columns == [*WINDOW, "id", "name"]
    assert found.rows() == [(at(0), at(10), 7, "Oak Wren"), (at(10), at(20), 9, "Fir Lark")]


def test_q11_merges_sessions_that_touch_and_no_others():
    found = answer(
        "q11",
        made([bid(1, 20.000001), bid(2, 10), bid(3, 0), bid(4, 0), bid(5, 5, bidder=2), bid(6, 30.5)]),
    )
    assert found.columns == ["bidder", "session_start", "session_end", "bids"]
    assert found.rows() == [
        (1, at(0), at(20), 3),
        (1, at(20.000001), at(30.000001), 1),
        (1, at(30.5), at(40.5), 1),
        (2, at(5), at(15), 1),
    ]


def test_q12_counts_by_the_time_of_arrival():
    data = made([bid(1, 0), bid(2, 0), bid(3, 0), bid(4, 0, bidder=2)])
    arrived = pa.array([at(100), at(109), at(110), at(111)], INSTANT)
    found = answer("q12", replace(data, bids=data.bids.append_column("arrived", arrived)))
    assert found.columns == [*WINDOW, "bidder", "bids"]
    assert found.rows() == [
        (at(100), at(110), 1, 2),
        (at(110), at(120), 1, 1),
        (at(110), at(120), 2, 1),
    ]


def test_q12_asks_for_the_time_of_arrival():
    with pytest.raises(ValueError, match="append it to them as `arrived`"):
        answer("q12", made([bid(1, 0)]))


RANKED = [
    bid(1, 0, price=9_999, bidder=1, auction=1),
    bid(2, 61, price=10_000, bidder=1, auction=1, channel="b"),
    bid(3, 59, price=999_999, bidder=2, auction=1, channel="b"),
    bid(4, 2, price=1_000_000, bidder=2, auction=2),
    bid(5, -1, price=100, bidder=3, auction=1),
]


def counted(*what):
    return [name.format(each) for each in what for name in BY_RANK]


def test_q15_counts_a_day_by_rank():
    found = answer("q15", made(RANKED))
    assert found.columns == ["day", *counted("bids", "bidders", "auctions")]
    assert found.rows() == [
        ("2025-12-31", 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0),
        ("2026-01-01", 4, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1),
    ]


def test_q16_counts_a_channels_day_and_shows_its_latest_minute():
    found = answer("q16", made(RANKED))
    assert found.columns == ["channel", "day", "minute", *counted("bids", "bidders", "auctions")]
    assert found.rows() == [
        ("a", "2025-12-31", "23:59", 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0),
        ("a", "2026-01-01", "00:00", 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1),
        ("b", "2026-01-01", "00:01", 2, 0, 2, 0, 2, 0, 2, 0, 1, 0, 1, 0),
    ]


def test_q17_sums_up_an_auctions_day():
    found = answer("q17", made(RANKED))
    prices = ["min_price", "max_price", "avg_price", "sum_price"]
    assert found.columns == ["auction", "day", *counted("bids"), *prices]
    assert found.rows() == [
        (1, "2025-12-31", 1, 1, 0, 0, 100, 100, 100.0, 100),
        (1, "2026-01-01", 3, 1, 2, 0, 9_999, 999_999, 1_019_998 / 3, 1_019_998),
        (2, "2026-01-01", 1, 0, 0, 1, 1_000_000, 1_000_000, 1_000_000.0, 1_000_000),
    ]


def test_q18_gives_the_last_bid_by_event_time_then_by_arrival():
    found = answer(
        "q18",
        made(
            [
                bid(1, 5, price=1),
                bid(2, 9, price=2),
                bid(3, 9, price=3),
                bid(4, 8, price=4),
                bid(5, 0, auction=2),
                bid(6, 0, bidder=2),
            ]
        ),
    )
    assert found.columns == ["bidder", "auction", "price", "channel", "url", "at", "extra", "n"]
    assert found.rows() == [
        (1, 1, 3, "a", "u3", at(9), "x3", 3),
        (1, 2, 100, "a", "u5", at(0), "x5", 5),
        (2, 1, 100, "a", "u6", at(0), "x6", 6),
    ]


def test_q19_gives_ten_prices_of_an_auction_the_earlier_of_equal_ones_first():
    crowd = [bid(n, 20 - n, price=500 if n in (3, 7) else 100) for n in range(1, 13)]
    found = answer("q19", made([*crowd, bid(13, 0, auction=2, price=7)]))
    assert found.columns == ["auction", "rank", "bidder", "price", "channel", "url", "at", "extra", "n"]
    assert found.select("auction", "rank", "price", "n").rows() == [
        (1, 1, 500, 3),
        (1, 2, 500, 7),
        (1, 3, 100, 1),
        (1, 4, 100, 2),
        (1, 5, 100, 4),
        (1, 6, 100, 5),
        (1, 7, 100, 6),
        (1, 8, 100, 8),
        (1, 9, 100, 9),
        (1, 10, 100, 10),
        (2, 1, 7, 13),
    ]


@pytest.mark.parametrize("name", ["q5", "q8", "q17"])
def test_no_events_give_no_rows(name):
    assert answer(name, made()).is_empty()


def test_a_query_without_reference_is_refused():
    with pytest.raises(ValueError, match="no reference for q6; there are q3, q4"):
        answer("q6", made())
