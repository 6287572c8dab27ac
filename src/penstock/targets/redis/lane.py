"""Redis's lanes: one script writes rows and the entry of the ledger, fenced by a token."""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha1

import msgspec
import pyarrow as pa
from pyarrow import compute
from pyspark.sql import DataFrame

from penstock.errors import DataError, LedgerError, PenstockError, SinkError, TargetError
from penstock.log.ledger import Entry
from penstock.settings import Secret
from penstock.targets.lanes import spread_by
from penstock.targets.redis.client import Client, asking, connect
from penstock.targets.redis.keys import PREFIXES, ledger_key, pointer_key
from penstock.targets.redis.layout import GONE, Layout
from penstock.targets.redis.prefixes import empty_beside, refuse_overlap
from penstock.targets.redis.script import script

LANES = "lanes"
_LARGEST = 64 * 2**20  # bytes in one script; Redis takes half a gigabyte in one argument
_NO_TOKEN = b""


class RedisLane:
    """Writes rows and their entry, as long as nobody else has opened the lane since."""

    def __init__(self, lanes: "RedisLanes", number: int) -> None:
        self._lanes, self._number = lanes, number
        self._client = lanes.connect()
        try:
            self._token, self.entry = self._taken()
        except BaseException:
            self.close()
            raise

    def write(self, rows: Iterable[pa.RecordBatch], entry: Entry) -> None:
        """Write rows and the entry in one script; of very many rows, the last script has the entry.

        All of them have been computed before the first is written.
        """
        *before, last = pieces(rows, self._lanes.layout, self._lanes.at_once)
        for piece in before:
            self._run(piece, entry, b"")
        self._run(last, entry, entry.to_json())
        self.entry = entry

    def close(self) -> None:
        self._client.close()

    def _taken(self) -> tuple[bytes, Entry]:
        """Shut out whoever has opened the lane before, and return the new token and what was written down."""
        number, ledger = self._number, ledger_key(self._lanes.sink)
        with asking(f"open lane {number} of sink {self._lanes.sink!r}"):
            opening = self._client.pipeline(transaction=True)
            token = secrets.token_hex(16)  # a number could come again after Redis has lost its last writes
            opening.hset(ledger, f"token:{number}", token)
            opening.hmget(ledger, LANES, f"entry:{number}")
            _, (prepared, entry) = opening.execute()
        if prepared is None:
            raise LedgerError(
                f"the ledger of sink {self._lanes.sink!r} is gone: Redis was emptied, or is another server",
                hint="bring its data back, or let the flow begin anew with `penstock run … --begin-anew`",
            )
        return token.encode(), Entry.from_record(entry)

    def _run(self, piece: list[bytes | memoryview], entry: Entry, written: bytes) -> None:
        """Run the script; after an error the lane writes no more: its request may be on its way."""
        token, self._token = self._token, _NO_TOKEN
        layout = self._lanes.layout
        keys = [ledger_key(self._lanes.sink), pointer_key(layout.prefix)]
        options = msgspec.msgpack.encode(layout.options)
        given = [self._number, token, written, layout.prefix, options, layout.width, *piece]
        with asking(f"write lane {self._number} of sink {self._lanes.sink!r}"):
            done, *found = self._evaluated(len(keys), *keys, *given)
        if not done:
            raise self._fenced(entry, found[0])
        self._token = token

    def _evaluated(self, *arguments: object) -> list[object]:
        """Redis forgets scripts when it restarts; then the whole text is sent."""
        from redis.exceptions import NoScriptError

        text = script(self._lanes.layout.put, self._lanes.layout.finish)
        try:
            answer: list[object] = self._client.execute_command("EVALSHA", _digest(text), *arguments)
        except NoScriptError:
            answer = self._client.execute_command("EVAL", text, *arguments)
        return answer

    def _fenced(self, entry: Entry, found: object) -> PenstockError:
        """Another epoch has the lane for good; another task of the same one leaves it to a new try."""
        current = Entry.from_record(found if isinstance(found, bytes) and found else None)
        try:
            current.refuse_older(entry.epoch, self._lanes.sink)
        except PenstockError as error:
            return error
        return SinkError(
            f"lane {self._number} of sink {self._lanes.sink!r} was opened by another task, or given up",
            hint="the batch is written again",
        )


@dataclass(frozen=True)
class RedisLanes:
    """The lanes of a sink; its ledger is a hash in the same database, by the sink's id."""

    address: Secret
    sink: str
    layout: Layout
    timeout: float = 60.0
    at_once: int = 50_000
    kind: str = "redis"

    def connect(self) -> Client:
        return connect(self.address, self.timeout)

    def prepare(self, wanted: int) -> int:
        ledger = ledger_key(self.sink)
        with closing(self.connect()) as client, asking(f"prepare sink {self.sink!r}"):
            refuse_unfit(client.info("everything"), self.layout.holds_rows)
            if self.layout.holds_rows:
                refuse_overlap(client, self.layout.prefix)
                if not client.hexists(ledger, LANES):
                    empty_beside(client, self.layout.prefix)
                client.sadd(PREFIXES, self.layout.prefix)
            client.hsetnx(ledger, LANES, wanted)
            return int(client.hget(ledger, LANES))

    def read(self) -> tuple[Entry, ...]:
        with closing(self.connect()) as client, asking(f"read the ledger of {self.sink!r}"):
            found = client.hgetall(ledger_key(self.sink))
        lanes = (found.get(f"entry:{number}".encode()) for number in range(int(found.get(b"lanes", 0))))
        return tuple(Entry.from_json(each) for each in lanes if each is not None)

    def open(self, number: int) -> RedisLane:
        return RedisLane(self, number)

    def spread(self, rows: DataFrame, count: int) -> DataFrame:
        return spread_by(self.layout.encoded(rows), count, self.layout.spread_by)


def refuse_unfit(info: dict[str, object], holds_rows: bool) -> None:
    """Refuse a server that can't give the guarantee."""
    if info.get("cluster_enabled"):
        raise TargetError(
            "the Redis is a cluster, in which rows and ledger are on different machines",
            hint="use a single primary, with replicas if you like",
        )
    policy = str(info.get("maxmemory_policy"))
    if holds_rows and info.get("maxmemory") and policy.startswith("allkeys"):
        raise TargetError(
            f"the Redis evicts rows and ledger when its memory is full: maxmemory-policy is {policy}",
            hint="set maxmemory-policy to noeviction, or to volatile-ttl with expire=",
        )


def pieces(rows: Iterable[pa.RecordBatch], layout: Layout, at_once: int) -> list[list[bytes | memoryview]]:
    """Return rows as arguments of scripts: one for each so many rows, or bytes, and one at least."""
    found: list[list[bytes | memoryview]] = [[]]
    count = size = 0
    for batch in rows:
        refuse_nulls(batch, layout)
        for part in parts(batch, at_once):
            if count and (count + part.num_rows > at_once or size + part.nbytes > _LARGEST):
                found.append([])
                count = size = 0
            found[-1] += [text for column in part.columns for text in packed(column)]
            count, size = count + part.num_rows, size + part.nbytes
    return found


def parts(batch: pa.RecordBatch, at_once: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch, so that each part fits into a script."""
    if not batch.num_rows:
        return
    if batch.num_rows > 1 and (batch.num_rows > at_once or batch.nbytes > _LARGEST):
        half = batch.num_rows // 2
        yield from parts(batch.slice(0, half), at_once)
        yield from parts(batch.slice(half), at_once)
        return
    yield batch


def packed(column: pa.Array) -> tuple[bytes, bytes | memoryview]:
    """Return a column as the lengths of its texts, -1 for null, and all of them in one."""
    lengths = compute.fill_null(compute.binary_length(column), -1).to_pylist()
    whole = compute.fill_null(column, b"") if column.null_count else column
    whole = whole.cast(pa.large_binary())
    _, offsets, texts = whole.buffers()
    places = pa.Array.from_buffers(pa.int64(), len(whole) + 1, [None, offsets], offset=whole.offset)
    first, last = places[0].as_py(), places[len(whole)].as_py()
    held = memoryview(texts)[first:last] if texts is not None else b""
    return msgspec.msgpack.encode(lengths), held


def refuse_nulls(batch: pa.RecordBatch, layout: Layout) -> None:
    """Refuse rows without a key, and those that stay and have no value where one is needed."""
    for column, name in layout.required.items():
        nulls = batch.column(column).null_count
        if nulls:
            raise DataError(
                f"{layout.prefix}: {name} is null in {nulls:,} of {batch.num_rows:,} rows, and is the key",
                hint="leave these rows out in the flow",
            )
    for column, name in layout.valued.items():
        stays = compute.and_(batch.column(column).is_null(), batch.column(GONE).is_null())
        nulls = compute.sum(stays).as_py() or 0
        if nulls:
            raise DataError(
                f"{layout.prefix}: {name} is null, no number, or beyond 2^53 in {nulls:,} of "
                f"{batch.num_rows:,} rows",
                hint="leave these rows out in the flow, or cast it to a double",
            )


def _digest(text: str) -> str:
    return sha1(text.encode(), usedforsecurity=False).hexdigest()
