"""What the fraud application reads and writes."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from penstock.events import Event, Precision
from penstock.log import Table, Topic


@dataclass(frozen=True)
class Transaction(Event):
    """What the holder of a card does, or somebody else: a payment, a transfer, or a login_failed."""

    card: str
    user: str
    kind: str
    amount: Annotated[Decimal, Precision(12, 2)]
    lat: float
    lon: float
    at: datetime


@dataclass(frozen=True)
class Profile(Event):
    """A row of the bank's table `profiles`: where a card's holder lives, and what is usually paid with it."""

    card: str
    home_lat: float
    home_lon: float
    usual: float


@dataclass(frozen=True)
class Case(Event):
    """A transaction of the past, beside its profile of then, and whether it turned out to be fraud."""

    card: str
    amount: float
    lat: float
    lon: float
    home_lat: float
    home_lon: float
    usual: float
    fraud: bool
    at: datetime


@dataclass(frozen=True)
class Model(Event):
    """A logistic model: a weight for each feature."""

    name: str
    bias: float
    weights: dict[str, float]
    at: datetime


@dataclass(frozen=True)
class Alert(Event):
    """A reason to look at a transaction, and the transactions behind it; emitted once for each reason."""

    card: str
    user: str
    reason: str
    evidence: list[str]
    at: datetime


@dataclass(frozen=True)
class Block(Event):
    """A card that is blocked since an alert."""

    card: str
    alert: str
    at: datetime


@dataclass(frozen=True)
class Suspect(Event):
    """How many suspicious acts there were of a user."""

    user: str
    acts: int
    at: datetime


transactions = Topic("fraud.transactions", Transaction, key="card", partitions=2)
profiles = Table("fraud.public.profiles", Profile, key="card", format="debezium-json")
history = Topic("fraud.history", Case, key="card")
models = Table("fraud.models", Model, key="name")
alerts = Topic("fraud-alerts", Alert, key="card")
alerts_once = Topic("fraud-alerts-once", Alert, key="card")
blocked = Table("fraud.blocked", Block, key="card")
refused = Topic("fraud.refused", Alert, key="card")  # the evidence is the alert that blocked the card
suspects = Table("fraud.suspects", Suspect, key="user")
TOPICS = (transactions, history, models, alerts, alerts_once, blocked, refused, suspects)
