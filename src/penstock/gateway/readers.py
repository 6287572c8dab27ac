"""Readers of topics: cursors that are lent to requests, and messages as JSON."""

import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import msgspec

from penstock.errors import TryAgainError
from penstock.gateway.clients import Clients
from penstock.gateway.refusal import Refusal
from penstock.gateway.start import Start, spelled
from penstock.log import Topic, from_end
from penstock.log.client import Configuration
from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.log.tail import described
from penstock.schemas import Codec
from penstock.schemas.plain import PlainReader

T = TypeVar("T")
_LOOK_EVERY = 10.0  # seconds; partitions may be added
_IDLE = 4  # cursors of a topic that are kept for the next request
_AT_ONCE = 20  # messages, of which some may be large
_LARGEST = 4 * 2**20  # bytes of events in one answer
_KAFKA: Configuration = {
    "fetch.wait.max.ms": 100,  # a reader that is lent anew waits for so long for its last fetch
    "fetch.queue.backoff.ms": 20,
    "queued.max.messages.kbytes": 1024,
    "fetch.message.max.bytes": 16_384,  # compressed, and what it comes to may be hundreds of times as much
    "queued.min.messages": 100,
}


class Reader:
    """Reads one topic for one request at a time."""

    def __init__(self, topic: Topic[Any], clients: Clients) -> None:
        self._cursor = Cursor(topic.name, clients.settings, kafka=_KAFKA, archived=True)
        self._codec, self._plain = _codec(topic, clients), _plain(clients)
        self._survey: Survey | None = None  # that knows of partitions which are to be read, too

    @property
    def next(self) -> str:
        """Where reading goes on, as `from=` takes it."""
        return spelled(self._cursor.position)

    def go_to(self, offsets: Mapping[int, int], survey: "Survey | None" = None) -> None:
        """Go on at these offsets, in these partitions; with a survey, in those that are added, too."""
        self._cursor.go_to(offsets)
        self._survey = survey

    def read(self, most: int, wait: float) -> list[msgspec.Raw]:
        """Return the next messages as JSON; none if none come in `wait` seconds."""
        self._add_partitions()
        found: list[msgspec.Raw] = []
        size, until = 0, time.monotonic() + wait
        while len(found) < most and size < _LARGEST:
            left = 0 if found else max(0.0, until - time.monotonic())
            messages = self._cursor.read(min(_AT_ONCE, most - len(found)), left)
            if not messages and not found and left:
                continue  # one partition has come to its end, another one may not have answered yet
            if not messages:
                break
            shown = [self._shown(each) for each in messages]
            found += shown
            size += sum(len(each) for each in map(bytes, shown))
        return found

    def rest(self) -> None:
        """Fetch nothing until it is lent again."""
        self._cursor.client.unassign()

    def close(self) -> None:
        self._cursor.close()

    def _add_partitions(self) -> None:
        """Read partitions that were added from their beginning on.

        A client that fetches must not be asked itself: while it waits for the answer, it drops messages.
        """
        added = self._survey.added(self._cursor.position) if self._survey is not None else {}
        if added:
            self._cursor.go_to({**added, **self._cursor.position})

    def _shown(self, message: Received) -> msgspec.Raw:
        line = described(message, self._codec, self._plain)
        try:
            return msgspec.Raw(msgspec.json.encode(line))
        except (ValueError, OverflowError, RecursionError, TypeError):  # JSON that only some can write
            text = (message.value() or b"").decode(errors="backslashreplace")
            return msgspec.Raw(msgspec.json.encode({**line, "value": text}))


class Survey:
    """Knows where a topic begins and ends; it fetches nothing, so that its questions wait for nothing."""

    def __init__(self, topic: Topic[Any], clients: Clients) -> None:
        self._cursor, self._broker = Cursor(topic.name, clients.settings, archived=True), clients.broker
        self._partitions = self._cursor.look_again()
        self._looked_at = time.monotonic()

    def offsets(self, start: Start) -> dict[int, int]:
        """Return the offsets that a start means now; what is not in the log is refused."""
        self._look_again()
        if start.offsets is None:
            found = self._cursor.resolved(start.position or from_end())
            return found if start.partition is None else {start.partition: _of(start.partition, found)}
        first, end = self._cursor.beginnings(), self._ends(start.offsets)
        for partition, offset in start.offsets.items():
            _check(offset, partition, _of(partition, first), _of(partition, end))
        return {**(first if start.partition is None else {}), **start.offsets}

    def added(self, known: Collection[int]) -> dict[int, int]:
        """Return where partitions begin that are not known; of a broker that is away, none."""
        with suppress(TryAgainError):
            self._look_again()
            if len(self._partitions) > len(known):
                return {each: at for each, at in self._cursor.beginnings().items() if each not in known}
        return {}

    def _look_again(self) -> None:
        if time.monotonic() - self._looked_at > _LOOK_EVERY:
            self._looked_at = time.monotonic()  # of all who ask meanwhile, one looks
            self._partitions = self._cursor.look_again()

    def _ends(self, offsets: Mapping[int, int]) -> dict[int, int]:
        """Where partitions end; behind an open transaction there may be events, which are waited for."""
        committed = self._cursor.ends()
        if all(offset <= committed.get(partition, offset) for partition, offset in offsets.items()):
            return committed
        return {partition: end for partition, (_, end) in self._broker.offsets(self._cursor.topic).items()}

    def close(self) -> None:
        self._cursor.close()


class Lent:
    """A reader in the hands of a request; what it does, it does in threads."""

    def __init__(self, reader: Reader, threads: anyio.CapacityLimiter) -> None:
        self.reader, self._threads = reader, threads

    async def read(self, most: int, wait: float) -> list[msgspec.Raw]:
        return await anyio.to_thread.run_sync(self.reader.read, most, wait, limiter=self._threads)


class Readers:
    """Lends readers, so many at a time; who comes when all are lent is asked to come back."""

    def __init__(self, clients: Clients, most: int) -> None:
        self._clients, self._most = clients, most
        self._idle: dict[str, list[Reader]] = {}
        self._surveys: dict[str, Survey] = {}
        self._lent = 0
        self._surveying = threading.Lock()
        self._threads = anyio.CapacityLimiter(most)

    @asynccontextmanager
    async def lent(self, topic: Topic[Any], start: Start) -> AsyncIterator[Lent]:
        """Lend a reader of a topic that is at a place; one that failed is not used again."""
        if self._lent >= self._most:
            raise Refusal.busy(f"{self._lent} clients read already")
        self._lent += 1
        try:
            survey = await self._run(partial(self._surveyed, topic))
            offsets = await self._run(partial(survey.offsets, start))
            reader = await self._taken(topic)
            try:
                await self._run(partial(reader.go_to, offsets, survey if start.partition is None else None))
                yield Lent(reader, self._threads)
            except BaseException:
                await self._run(reader.close)
                raise
            await self._give_back(topic.name, reader)
        finally:
            self._lent -= 1

    def close(self) -> None:
        """Let go of the broker."""
        for readers in self._idle.values():
            for reader in readers:
                reader.close()
        for survey in self._surveys.values():
            survey.close()

    def _surveyed(self, topic: Topic[Any]) -> Survey:
        with self._surveying:
            if topic.name not in self._surveys:
                self._surveys[topic.name] = Survey(topic, self._clients)
            return self._surveys[topic.name]

    async def _taken(self, topic: Topic[Any]) -> Reader:
        idle = self._idle.get(topic.name)
        return idle.pop() if idle else await self._run(partial(Reader, topic, self._clients))

    async def _give_back(self, name: str, reader: Reader) -> None:
        idle = self._idle.setdefault(name, [])
        if len(idle) < _IDLE:
            await self._run(reader.rest)
            idle.append(reader)
        else:
            await self._run(reader.close)

    async def _run(self, call: Callable[[], T]) -> T:
        """Run to the end, also of a request that is given up: a reader is never left half done."""
        done: list[T] = []
        with anyio.CancelScope(shield=True):
            done.append(await anyio.to_thread.run_sync(call, limiter=self._threads))
        return done[0]


def _codec(topic: Topic[Any], clients: Clients) -> Codec[Any] | None:
    return None if topic.is_captured else clients.codec(topic)


def _plain(clients: Clients) -> Callable[[bytes], Any]:
    """How captured changes in Avro are decoded: by the schemas that they name."""
    return PlainReader(lambda id: clients.registry.as_written(clients.registry.schema(id)))


def _of(partition: int, offsets: Mapping[int, int]) -> int:
    if partition not in offsets:
        message = f"there is no partition {partition}: there are {len(offsets)}, from 0 on"
        raise Refusal(404, "gateway.unknown-partition", message)
    return offsets[partition]


def _check(offset: int, partition: int, first: int, end: int) -> None:
    if offset < first:
        raise Refusal(
            410,
            "gateway.deleted",
            f"events before offset {first} of partition {partition} are deleted",
            hint=f"begin at {first}, or from=beginning",
            details={"earliest": first},
        )
    if offset > end:
        raise Refusal(
            416,
            "gateway.beyond-end",
            f"partition {partition} ends at offset {end}, before {offset}",
            hint="the topic may have been made again: begin anew",
            details={"end": end},
        )
