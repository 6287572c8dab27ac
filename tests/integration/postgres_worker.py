"""A member that copies numbers into a table, to be killed: `python postgres_worker.py topic group [member]`.

It ends when nothing has come for a while; what may work later is tried again.
"""

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg

from penstock.errors import TryAgainError
from penstock.events import Event
from penstock.log import PostgresConsumer, Topic
from penstock.points import reach
from penstock.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUICK = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500, "max.poll.interval.ms": 3500}


@dataclass(frozen=True)
class Step(Event):
    number: int
    at: datetime = NOW


def copy(consumer, connection, topic, idle="5 seconds", size=20):
    """Write every number down, in two statements with a point between them."""
    for batch in consumer.batches(size, "50 ms", idle=idle):
        numbers = [event.number for event in batch.events]
        insert = f'INSERT INTO "{topic}" SELECT unnest(%s::bigint[])'
        connection.execute(insert, [numbers[:1]])
        reach("worker.half", topic)
        connection.execute(insert, [numbers[1:]])


def work(name, group, member=None):
    topic, settings = Topic(name, Step), Settings.load()
    with (
        psycopg.connect(settings.dsn().value, autocommit=True) as connection,
        PostgresConsumer(topic, settings, connection, group=group, member=member, kafka=QUICK) as consumer,
    ):
        copy(consumer, connection, name)


def main(*arguments):
    while True:
        try:
            return work(*arguments)
        except (TryAgainError, psycopg.OperationalError) as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
