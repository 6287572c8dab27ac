"""Where events live: topics, producers, consumers, groups, queues and dead letters."""

from typing import TYPE_CHECKING

from penstock.log.broker import Broker, TopicState
from penstock.log.consumer import Consumer, Rebalance
from penstock.log.dead_letters import DeadLetter, DeadLetters
from penstock.log.groups import Groups, GroupState, Lag, Member, Move
from penstock.log.lease import Lease
from penstock.log.plan import Change, apply, plan
from penstock.log.positions import Position, from_beginning, from_end, from_offsets, from_time
from penstock.log.priority_queue import PriorityQueue
from penstock.log.producer import Failure, Producer
from penstock.log.queue import Queue
from penstock.log.records import Batch, Record
from penstock.log.redrive import Redriven, redrive
from penstock.log.router import Binding, Router
from penstock.log.topic import Table, Topic
from penstock.log.transactions import ExactlyOnce, Transaction
from penstock.on_demand import on_demand

if TYPE_CHECKING:
    from penstock.log.postgres_consumer import PostgresConsumer

__all__ = [
    "Batch",
    "Binding",
    "Broker",
    "Change",
    "Consumer",
    "DeadLetter",
    "DeadLetters",
    "ExactlyOnce",
    "Failure",
    "GroupState",
    "Groups",
    "Lag",
    "Lease",
    "Member",
    "Move",
    "Position",
    "PostgresConsumer",
    "PriorityQueue",
    "Producer",
    "Queue",
    "Rebalance",
    "Record",
    "Redriven",
    "Router",
    "Table",
    "Topic",
    "TopicState",
    "Transaction",
    "apply",
    "from_beginning",
    "from_end",
    "from_offsets",
    "from_time",
    "plan",
    "redrive",
]

__getattr__, _ = on_demand(__name__, {"PostgresConsumer": "postgres_consumer"})  # needs a database's client
