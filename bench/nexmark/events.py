"""The events of Nexmark: people, auctions and bids, made from a seed, a column at a time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Times = np.ndarray[tuple[int], np.dtype[np.datetime64]]

BASE = datetime(2026, 1, 1, tzinfo=UTC)
ROUND, AUCTIONS_OF_ROUND = 50, 3
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
HOT_GROUP, ACTIVE_PEOPLE, OPEN_AUCTIONS, LEAD = 100, 1000, 100, 10
HOT_AUCTION, HOT_PERSON = 1 / 2, 3 / 4
WELL_KNOWN, CHANNELS, WITH_CHANNEL_ID = ("Google", "Facebook", "Baidu", "Apple"), 10_000, 0.9
PERSON_SIZE, AUCTION_SIZE, BID_SIZE, SPREAD = 200, 500, 100, 0.2
LATE = 0.1

TREES = ("Alder", "Birch", "Cedar", "Elm", "Fir", "Larch", "Maple", "Oak", "Pine", "Rowan", "Willow")
BIRDS = ("Crane", "Finch", "Heron", "Kestrel", "Lark", "Plover", "Swift", "Tern", "Wren")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)

WHOLE, TEXT, INSTANT = pa.int64(), pa.large_string(), pa.timestamp("us", "UTC")
PERSON = pa.schema(
    {
        "n": WHOLE,
        "id": WHOLE,
        "name": TEXT,
        "email": TEXT,
        "credit_card": TEXT,
        "city": TEXT,
        "state": TEXT,
        "at": INSTANT,
        "extra": TEXT,
    }
)
AUCTION = pa.schema(
    {
        "n": WHOLE,
        "id": WHOLE,
        "item": TEXT,
        "description": TEXT,
        "initial_bid": WHOLE,
        "reserve": WHOLE,
        "at": INSTANT,
        "expires": INSTANT,
        "seller": WHOLE,
        "category": WHOLE,
        "extra": TEXT,
    }
)
BID = pa.schema(
    {
        "n": WHOLE,
        "auction": WHOLE,
        "bidder": WHOLE,
        "price": WHOLE,
        "channel": TEXT,
        "url": TEXT,
        "at": INSTANT,
        "extra": TEXT,
    }
)


@dataclass(frozen=True)
class Nexmark:
    """The events by kind; `n` is an event's number and the order of arrival, `at` its event time."""

    persons: pa.Table
    auctions: pa.Table
    bids: pa.Table


def generate(
    count: int,
    *,
    seed: int,
    rate: int = 10_000,
    base: datetime = BASE,
    disorder: timedelta = timedelta(0),
) -> Nexmark:
    """Make the events 0 to count - 1; the same arguments give the same events.

    Of every 50 events the first is a person, three are auctions and 46 are bids. Ids start at 1000: this
    is added once to a bidder's id, so that bidders are people of the run (the benchmark's own generator
    adds it twice). The filler `extra` makes up for the benchmark's sizes, in which a bid's channel and url
    don't count. A channel keeps its url. Nobody's name is used: people are called after trees and birds.

    Arguments:
        count: how many events, of all kinds together.
        seed: what the events are drawn from.
        rate: events a second of event time.
        base: the event time of event 0.
        disorder: a tenth of the events gets an event time up to this much earlier than its turn; all else
            stays as it is without disorder.
    """
    _check(count, rate, base, disorder)
    clock, people, items, offers = np.random.default_rng(seed).spawn(4)
    n = np.arange(count, dtype=np.int64)
    at = _times(clock, n, rate, base, disorder)
    turn = n % ROUND
    person, bid = turn == 0, turn > AUCTIONS_OF_ROUND
    auction = ~(person | bid)
    return Nexmark(
        _persons(people, n[person], at[person]),
        _auctions(items, n[auction], at[auction], rate),
        _bids(offers, n[bid], at[bid]),
    )


def _check(count: int, rate: int, base: datetime, disorder: timedelta) -> None:
    if count < 0:
        raise ValueError(f"count is {count}, expected 0 or more events")
    if rate < 1:
        raise ValueError(f"rate is {rate}, expected at least 1 event a second")
    if base.utcoffset() is None:
        raise ValueError(f"base is {base}, expected a datetime with a time zone")
    if disorder < timedelta(0):
        raise ValueError(f"disorder is {disorder}, expected a timedelta of 0 or more")


def _times(rng: np.random.Generator, n: Numbers, rate: int, base: datetime, disorder: timedelta) -> Times:
    start = np.datetime64(base.astimezone(UTC).replace(tzinfo=None), "us")
    micros = n * 1_000_000 // rate
    most = disorder // timedelta(microseconds=1)
    if most:
        late = rng.random(len(n)) < LATE
        micros = micros - late * rng.integers(1, most + 1, len(n))
    return start + micros.astype("timedelta64[us]")


def _persons(rng: np.random.Generator, n: Numbers, at: Times) -> pa.Table:
    count = len(n)
    texts = {
        "name": _join(_pick(rng, TREES, count), _pick(rng, BIRDS, count), " "),
        "email": _join(_words(rng, count, 3, 6), _join(_words(rng, count, 3, 4), "com", "."), "@"),
        "credit_card": _cards(rng, count),
        "city": _pick(rng, CITIES, count),
        "state": _pick(rng, STATES, count),
    }
    extra = _filler(rng, 8 + _bytes_of(*texts.values()), PERSON_SIZE)
    return pa.table({"n": n, "id": FIRST_ID + _last_person(n), **texts, "at": at, "extra": extra}, PERSON)


def _auctions(rng: np.random.Generator, n: Numbers, at: Times, rate: int) -> pa.Table:
    count = len(n)
    item, description = _words(rng, count, 3, 19), _words(rng, count, 3, 99)
    initial = _prices(rng, count)
    columns = {
        "n": n,
        "id": FIRST_ID + _last_auction(n),
        "item": item,
        "description": description,
        "initial_bid": initial,
        "reserve": initial + _prices(rng, count),
        "at": at,
        "expires": at + _lives(rng, count, rate),
        "seller": FIRST_ID + _people(rng, n, hot=0),
        "category": FIRST_CATEGORY + rng.integers(0, CATEGORIES, count),
        "extra": _filler(rng, 6 * 8 + _bytes_of(item, description), AUCTION_SIZE),
    }
    return pa.table(columns, AUCTION)


def _bids(rng: np.random.Generator, n: Numbers, at: Times) -> pa.Table:
    count = len(n)
    names, urls = _channels(rng)
    well_known = rng.random(count) < 1 / 2
    few, many = rng.integers(0, len(WELL_KNOWN), count), rng.integers(len(WELL_KNOWN), len(names), count)
    channel = np.where(well_known, few, many)
    columns = {
        "n": n,
        "auction": FIRST_ID + _auctions_bid_on(rng, n),
        "bidder": FIRST_ID + _people(rng, n, hot=1),
        "price": _prices(rng, count),
        "channel": names.take(channel),
        "url": urls.take(channel),
        "at": at,
        "extra": _filler(rng, np.full(count, 4 * 8), BID_SIZE),
    }
    return pa.table(columns, BID)


def _last_person(n: Numbers) -> Numbers:
    return n // ROUND


def _last_auction(n: Numbers) -> Numbers:
    """Return the auction an event is, or the last one before a bid."""
    return n // ROUND * AUCTIONS_OF_ROUND + np.minimum(n % ROUND, AUCTIONS_OF_ROUND) - 1


def _auctions_bid_on(rng: np.random.Generator, n: Numbers) -> Numbers:
    last = _last_auction(n)
    hot = rng.random(len(n)) < HOT_AUCTION
    return np.where(hot, last // HOT_GROUP * HOT_GROUP, _recent(rng, last, OPEN_AUCTIONS))


def _people(rng: np.random.Generator, n: Numbers, *, hot: int) -> Numbers:
    """Draw people; `hot` is the place of the hot one in each group: sellers and bidders differ."""
    last = _last_person(n)
    is_hot = rng.random(len(n)) < HOT_PERSON
    return np.where(is_hot, last // HOT_GROUP * HOT_GROUP + hot, _recent(rng, last, ACTIVE_PEOPLE))


def _recent(rng: np.random.Generator, last: Numbers, many: int) -> Numbers:
    """Draw from the last so many that exist and a few that are still to come."""
    return rng.integers(np.maximum(last - many + 1, 0), last + LEAD + 1)


def _prices(rng: np.random.Generator, count: int) -> Numbers:
    return np.rint(100 * 10 ** (6 * rng.random(count))).astype(np.int64)


def _lives(rng: np.random.Generator, count: int, rate: int) -> np.ndarray:
    """Draw how long auctions last: on average as long as it takes until all open ones are new."""
    horizon = OPEN_AUCTIONS * ROUND * 1_000_000 // (AUCTIONS_OF_ROUND * rate)
    micros = 1_000 + rng.integers(0, max(2 * horizon, 1), count)
    return micros.astype("timedelta64[us]")


def _channels(rng: np.random.Generator) -> tuple[pa.Array, pa.Array]:
    """Return the names of all channels, the well-known ones first, and the url of each."""
    folders = [_words(rng, CHANNELS, 3, 5).to_pylist() for _ in range(3)]
    numbered = (rng.random(CHANNELS) < WITH_CHANNEL_ID).tolist()
    names, urls = list(WELL_KNOWN), [_url(name.lower(), "shop", "item") for name in WELL_KNOWN]
    for i in range(CHANNELS):
        names.append(f"channel-{i}")
        urls.append(_url(*(words[i] for words in folders)) + (f"&channel_id={i}" if numbered[i] else ""))
    return pa.array(names, TEXT), pa.array(urls, TEXT)


def _url(*folders: str) -> str:
    return f"https://www.example.com/{'/'.join(folders)}/item.htm?query=1"


def _filler(rng: np.random.Generator, size: Numbers, average: int) -> pa.Array:
    """Fill events of these sizes up to the average; what is filled in varies by a fifth."""
    room = np.maximum(average - size, 0)
    spread = np.rint(room * SPREAD).astype(np.int64)
    return _letters(rng, rng.integers(room - spread, room + spread + 1))


def _words(rng: np.random.Generator, count: int, shortest: int, longest: int) -> pa.Array:
    return _letters(rng, rng.integers(shortest, longest + 1, count))


def _letters(rng: np.random.Generator, lengths: Numbers) -> pa.Array:
    letters = rng.integers(ord("a"), ord("z") + 1, int(lengths.sum()), dtype=np.uint8)
    return _texts(letters, lengths)


def _cards(rng: np.random.Generator, count: int) -> pa.Array:
    """Draw card numbers: four groups of four digits."""
    cards = rng.integers(ord("0"), ord("9") + 1, (count, 19), dtype=np.uint8)
    cards[:, 4::5] = ord(" ")
    return _texts(cards.reshape(-1), np.full(count, 19))


def _texts(letters: np.ndarray, lengths: Numbers) -> pa.Array:
    """Cut a run of ASCII letters into texts."""
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(letters))


def _pick(rng: np.random.Generator, choices: tuple[str, ...], count: int) -> pa.Array:
    return pa.array(choices, TEXT).take(rng.integers(0, len(choices), count))


def _join(left: pa.Array, right: pa.Array | str, between: str) -> pa.Array:
    right = pa.scalar(right, TEXT) if isinstance(right, str) else right
    return pc.binary_join_element_wise(left, right, pa.scalar(between, TEXT))


def _bytes_of(*columns: pa.Array) -> Numbers:
    return sum(pc.binary_length(column).to_numpy(zero_copy_only=False) for column in columns)
