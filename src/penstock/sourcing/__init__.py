"""Commands in, events kept for ever, state derived from them: event sourcing on PostgreSQL and Kafka."""

from penstock.sourcing.aggregate import Aggregate, Decision
from penstock.sourcing.append import Append, Context
from penstock.sourcing.domain import Command, DomainEvent, Refusal
from penstock.sourcing.event_types import EventTypes, Part, part
from penstock.sourcing.handler import CommandHandler, Receipt
from penstock.sourcing.process import Process, Reaction
from penstock.sourcing.publishing import publish, topic_of
from penstock.sourcing.read_your_writes import Delay, Freshness
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.repository import Loaded, Repository
from penstock.sourcing.snapshots import Snapshots
from penstock.sourcing.store import EventStore
from penstock.sourcing.tailing import Position, keep_position, position_of, renumber, tail
from penstock.sourcing.together import Directed, execute_together

__all__ = [
    "Aggregate",
    "Append",
    "Command",
    "CommandHandler",
    "Context",
    "Decision",
    "Delay",
    "Directed",
    "DomainEvent",
    "EventStore",
    "EventTypes",
    "Freshness",
    "Loaded",
    "Part",
    "Position",
    "Process",
    "Reaction",
    "Receipt",
    "Recorded",
    "Refusal",
    "Repository",
    "Snapshots",
    "execute_together",
    "keep_position",
    "part",
    "position_of",
    "publish",
    "renumber",
    "tail",
    "topic_of",
]
