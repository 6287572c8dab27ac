"""An archive of millions of account events, made without a store: what a bank of many years has.

The events are those of the bank application, as its store would write and its capture publish them, a row
after another of whole columns. Each segment's rows then get their checksum, file and manifest from the code
that the archiver has for it, so that `penstock archive check` finds nothing. Kafka gets as many empty records
as there are events, and deletes them: its topic then begins where the archive ends.
"""

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.archive import add
from penstock.archive.manifest import Manifest
from penstock.log import Broker, Topic, apply
from penstock.log.archive.archive import Archive
from penstock.log.archive.checksum import Checksum
from penstock.log.archive.parquet import SCHEMA, Footer, encoded_table, rows_of
from penstock.log.archive.segment import Segment
from penstock.log.archive.storage import open_storage
from penstock.settings import Settings
from penstock.sourcing.recorded import Recorded

BEGUN = 1_577_836_800_000_000  # 2020, in microseconds
YEARS = 5 * 365 * 86_400 * 1_000_000
OPENED, TYPES = 0, ("Opened", "Deposited", "Withdrawn", "MoneySent", "MoneyReceived", "TransferSettled")
SIGNS = np.array([0, 1, -1, -1, 1, 0])  # how an event changes the balance
SHARES = np.array([0.0, 0.5, 0.2, 0.1, 0.1, 0.1])  # of events behind the first
EMPTY_AT_ONCE = 50_000


@dataclass(frozen=True)
class Accounts:
    """What is made: so many events of so many accounts, dealt out to partitions by their numbers."""

    events: int
    accounts: int
    partitions: int

    @property
    def events_of_partition(self) -> int:
        return self.events // self.partitions

    def owners(self, partition: int) -> np.ndarray:
        """The numbers of a partition's accounts."""
        return np.arange(partition, self.accounts, self.partitions)

    def make(self, topic: Topic[Recorded], folder: Path, settings: Settings) -> np.ndarray:
        """Make the topic and its archive; return what each account has in the end, in cents."""
        broker = Broker(settings)
        apply([topic], broker)
        archive = add(topic.name, str(folder), settings, keep="0 seconds", retention_forever=True)
        self._use_offsets_up(topic.name, broker, settings)
        balances = np.zeros(self.accounts, np.int64)
        with ProcessPoolExecutor() as pool:
            work = [pool.submit(write_partition, self, archive, each) for each in range(self.partitions)]
            for partition, done in enumerate(work):
                balances[self.owners(partition)] = done.result()
        return balances

    def more(self, partition: int, count: int) -> tuple[list[tuple[bytes, bytes]], np.ndarray]:
        """Return keys and values of events behind the archived ones, and by how much they change accounts."""
        owners, first = self.owners(partition), self.events_of_partition
        offsets = np.arange(first, first + count)
        table, changes = segment_of(partition, owners, offsets, first, np.random.default_rng())
        balances = np.zeros(self.accounts, np.int64)
        np.add.at(balances, owners[offsets % len(owners)], changes)
        keys, values = (table.column(name).to_pylist() for name in ("key", "value"))
        return list(zip(keys, values, strict=True)), balances

    def _use_offsets_up(self, topic: str, broker: Broker, settings: Settings) -> None:
        """Write as many empty records as there are events, and delete them."""
        many = {"linger.ms": 50, "batch.num.messages": 100_000, "queue.buffering.max.messages": 1_000_000}
        producer = confluent_kafka.Producer({**settings.client(), **many, "compression.type": "lz4"})
        for partition in range(self.partitions):
            left = self.events_of_partition
            while left:
                some = min(left, EMPTY_AT_ONCE)
                producer.produce_batch(topic, [{"value": None}] * some, partition=partition)
                producer.flush(60)
                left -= some
        ends = broker.committed_end(topic)
        broker.delete_records(topic, {number: ends[number] for number in range(self.partitions)})


def write_partition(made: Accounts, archive: Archive, partition: int) -> np.ndarray:
    """Write all segments of a partition; return what its accounts have in the end."""
    storage, chance = open_storage(archive.address, Settings()), np.random.default_rng(partition)
    owners, balances = made.owners(partition), np.zeros(made.accounts, np.int64)
    total, end = Checksum(), made.events_of_partition
    for first in range(0, end, archive.records):
        offsets = np.arange(first, min(first + archive.records, end))
        table, changes = segment_of(partition, owners, offsets, end, chance)
        np.add.at(balances, owners[offsets % len(owners)], changes)
        segment = Segment(partition, first, int(offsets[-1]) + 1)
        times = table.column("timestamp").cast(pa.int64())
        oldest, newest = times[0].as_py(), times[-1].as_py()
        checksum = Checksum.of(partition, rows_of(table))
        footer = Footer(archive.topic, archive.topic_id, segment, checksum, oldest, newest, newest)
        content = encoded_table(footer, table)
        storage.put(segment.path, content)
        storage.put(segment.manifest, Manifest.of(footer, content, total, time.time()).to_json())
        total = total.adding(checksum)
    return balances[owners]


def segment_of(
    partition: int, owners: np.ndarray, offsets: np.ndarray, end: int, chance: np.random.Generator
) -> tuple[pa.Table, np.ndarray]:
    """Return the records at some offsets, and by how many cents each changes its account."""
    count, versions = len(offsets), offsets // len(owners) + 1
    kinds = np.where(versions == 1, OPENED, chance.choice(len(TYPES), count, p=SHARES))
    cents = chance.integers(1, 100_000, count)
    at = pa.array(BEGUN + (offsets * (YEARS / end)).astype(np.int64)).cast(pa.timestamp("us"))
    numbers = pa.array(owners[offsets % len(owners)]).cast(pa.string())
    stream = _joined("account-", pc.utf8_lpad(numbers, 8, "0"))
    value = _joined(
        '{"id":"', uuids(count, chance), '","category":"account","stream":"', stream,
        '","version":', pa.array(versions).cast(pa.string()),
        ',"type":"', pa.array(TYPES).take(kinds), '","schema_version":1,"at":"',
        pc.strftime(at, "%Y-%m-%dT%H:%M:%S"), 'Z","data":"{', _data(kinds, cents, numbers, chance),
        '}","actor":"teller ', pa.array(cents % 40).cast(pa.string()),
        '","correlation":"', uuids(count, chance), '","causation":"', uuids(count, chance),
        '","subject":null,"personal":[]}',
    )  # fmt: skip
    columns = {
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
        "offset": offsets,
        "timestamp": at.cast(pa.timestamp("ms"), safe=False).cast(SCHEMA.field("timestamp").type),
        "timestampType": pa.repeat(pa.scalar(0, pa.int32()), count),
        "key": stream.cast(pa.binary()),
        "value": value.cast(pa.binary()),
        "headers": pa.nulls(count, SCHEMA.field("headers").type),
    }
    return pa.table(columns, schema=SCHEMA), SIGNS[kinds] * cents


def _data(kinds: np.ndarray, cents: np.ndarray, numbers: pa.Array, chance: np.random.Generator) -> pa.Array:
    """The fields of each event, as JSON within a text of JSON."""
    pence = pa.array([f"{each:02d}" for each in range(100)]).take(cents % 100)
    amount = _joined('\\"amount\\":\\"', pa.array(cents // 100).cast(pa.string()), ".", pence, '\\"')
    transfer = _joined('\\"transfer\\":\\"', uuids(len(kinds), chance), '\\"')
    owner = _joined('\\"owner\\":\\"Owner ', numbers, '\\"')
    both = _joined(transfer, ",", amount)
    return pc.choose(pa.array(kinds), owner, amount, amount, both, both, transfer)


def uuids(count: int, chance: np.random.Generator) -> pa.Array:
    """As many ids as are asked for, spelled as UUIDs are."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    drawn = chance.integers(0, 256, (count, 16), np.uint8)
    hexes = np.empty((count, 32), np.uint8)
    hexes[:, 0::2], hexes[:, 1::2] = digits[drawn >> 4], digits[drawn & 15]
    spelled = np.full((count, 36), ord("-"), np.uint8)
    for start, length, shift in ((0, 8, 0), (8, 4, 1), (12, 4, 2), (16, 4, 3), (20, 12, 4)):
        spelled[:, start + shift : start + shift + length] = hexes[:, start : start + length]
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(36), count, [None, pa.py_buffer(spelled)])
    return fixed.cast(pa.binary()).cast(pa.string())


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
