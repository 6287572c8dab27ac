"""An event class that uses every kind of field, and a strategy that makes such events."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Annotated
from uuid import UUID

from hypothesis import strategies as st

from penstock.events import Event, Precision

Money = Annotated[Decimal, Precision(12, 2)]


class Channel(Enum):
    WEB = "web"
    STORE = "store"


class State(Enum):
    IN_PROGRESS = "in-progress"
    DONE = "done"


@dataclass(frozen=True)
class Line:
    product: str
    price: Money
    gift: bool = False


@dataclass(frozen=True)
class Order(Event, type="shop.order"):
    customer: UUID
    channel: Channel
    state: State
    total: Money
    weight: float
    count: int
    paid: bool
    receipt: bytes
    due: date
    lines: list[Line]
    notes: dict[str, str]
    rates: dict[str, float | None]
    first: Line
    at: datetime
    coupon: str | None = None
    discount: Money | None = None
    last: Line | None = None
    reminded: list[datetime] = field(default_factory=list)
    currency: str = "EUR"
    fee: Money = Decimal("0.50")


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
money = st.decimals(Decimal(-(10**10) + 1), Decimal(10**10 - 1), places=2, allow_nan=False)
instants = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
lines = st.builds(Line, product=text, price=money, gift=st.booleans())
reals = st.floats(allow_nan=False, allow_infinity=False)
orders = st.builds(
    Order,
    id=text,
    customer=st.uuids(),
    channel=st.sampled_from(Channel),
    state=st.sampled_from(State),
    total=money,
    weight=reals,
    count=st.integers(-(2**63), 2**63 - 1),
    paid=st.booleans(),
    receipt=st.binary(max_size=8),
    due=st.dates(),
    lines=st.lists(lines, max_size=3),
    notes=st.dictionaries(text, text, max_size=3),
    rates=st.dictionaries(text, st.none() | reals, max_size=3),
    first=lines,
    at=instants,
    coupon=st.none() | text,
    discount=st.none() | money,
    last=st.none() | lines,
    reminded=st.lists(instants, max_size=2),
    currency=text,
    fee=money,
)


def random_order(rng: Random) -> Order:
    """Make an order from a seeded source, for runs that must be repeatable without hypothesis."""
    return Order(
        customer=UUID(int=rng.getrandbits(128)),
        channel=rng.choice(list(Channel)),
        state=rng.choice(list(State)),
        total=Decimal(rng.randrange(10**8)) / 100,
        weight=rng.random() * 100,
        count=rng.randrange(-1000, 10**9),
        paid=rng.random() < 0.5,
        receipt=rng.randbytes(5),
        due=date(2026, 1, rng.randrange(1, 29)),
        lines=[random_line(rng) for _ in range(rng.randrange(3))],
        notes={"from": rng.choice(("a", "bé", "日本"))},
        rates={"x": None, "y": rng.random()},
        first=random_line(rng),
        at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randrange(10**12)),
        coupon=rng.choice((None, "c1")),
        discount=rng.choice((None, Decimal("1.00"))),
    )


def random_line(rng: Random) -> Line:
    return Line(rng.choice("abc") * 3, Decimal(rng.randrange(-(10**6), 10**6)) / 100, rng.random() < 0.5)
