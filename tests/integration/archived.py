"""Topics with archives, for tests: how they are filled, and what is read of them."""

import random
from contextlib import contextmanager
from dataclasses import replace

import confluent_kafka
from tests.s3_server import s3_server

from penstock.archive import Archiver, add
from penstock.log import Broker, Producer
from penstock.log.archive.archive import Archive
from penstock.log.archive.declarations import Declarations
from penstock.log.archive.rows import row_of
from penstock.log.cursor import Cursor

PARTITIONS = 3  # the last one stays empty
KEPT = {"retention.ms": "-1", "retention.bytes": "-1"}


def make_topic(settings, name, partitions=PARTITIONS):
    Broker(settings).ensure(name, partitions, KEPT)


def produce(settings, topic, count, seed=0, *, transactions=True):
    """Write records of every shape; some in transactions, of which some are aborted."""
    chance = random.Random(seed)
    with Producer(settings) as producer:
        for number in range(count):
            headers = [("n", b"%d" % number), ("none", None)] if number % 3 == 0 else None
            value = None if number % 7 == 0 else b"%d" % number * chance.randint(1, 30)
            key = None if number % 5 == 0 else b"k%d" % (number % 11)
            producer.send_bytes(topic, key, value, partition=number % 2, headers=headers)
    if not transactions:
        return
    quick = {"enable.sparse.connections": False, "transactional.id": f"t.{topic}"}
    client = confluent_kafka.Producer({**settings.client(), **quick})
    client.list_topics(topic, timeout=10)
    client.init_transactions(10)
    for commits in (True, False, True, False):
        client.begin_transaction()
        for number in range(chance.randint(1, 20)):
            client.produce(topic, b"in a transaction", b"k%d" % number, partition=number % 2)
        client.flush(10)
        client.commit_transaction(10) if commits else client.abort_transaction(10)


def rows(settings, topic, start=None, *, archived=True):
    """The rows of each partition from a place on, in the order in which they were read."""
    ends = Broker(settings).committed_end(topic)
    with Cursor(topic, settings, archived=archived) as cursor:
        firsts = cursor.beginnings()
        cursor.go_to({**firsts, **(start or {})})
        found = {partition: [] for partition in firsts}
        for message in cursor.read_to(ends):
            found[message.partition()].append(row_of(message))
    return found


def make_archive(settings, topic, to, *, records=40, **more):
    """An archive with small segments, which leaves nothing in Kafka."""
    archive = add(topic, str(to), settings, **{"keep": "0 seconds", **more})
    small = Archive(**{**vars(archive), "records": records})
    Declarations(settings).put(small)
    return small


@contextmanager
def archived_in_a_bucket(settings, topic):
    """Settings that know the bucket of a topic's archive; without it the archive is not known either."""
    with s3_server("history") as connection:
        aware = replace(settings, connections={**settings.connections, "store": connection})
        make_archive(aware, topic, "s3://history/penstock", connection="store")
        try:
            yield aware
        finally:
            Declarations(settings).remove(topic)


def move(settings, topic):
    """Archive all that is there, and delete what is old."""
    return Archiver(Declarations(settings).get(topic), settings).run_once()
