"""What the enrichment application reads and writes."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Table, Topic

CAPTURE = "enrichment"
SOURCE = "public.users"  # the table in the database


@dataclass(frozen=True)
class User(Event):
    """A row of the database's table of users, as far as it is needed."""

    user_id: int
    country: str


@dataclass(frozen=True)
class Activity(Event):
    """Something that a user has done."""

    user_id: int
    kind: str
    at: datetime


@dataclass(frozen=True)
class Enriched(Event):
    """The same with the country of the user, if there is one."""

    user_id: int
    kind: str
    country: str | None
    at: datetime


users = Table(f"{CAPTURE}.{SOURCE}", User, key="user_id", format="debezium-json")
activity = Topic("enrichment.activity", Activity, key="user_id", partitions=2)
enriched = Topic("enrichment.enriched", Enriched, key="user_id", partitions=2)
TOPICS = (activity, enriched)
