"""Read your writes: wait until a view has come as far as a command's events."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from penstock.durations import duration
from penstock.errors import ConfigurationError, LogError, StaleViewError
from penstock.identity import Identity
from penstock.log import Groups, from_time
from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.schemas import JsonCodec
from penstock.settings import Settings
from penstock.sourcing.handler import Receipt
from penstock.sourcing.recorded import Recorded

_PAUSE = 0.1
_SKEW = timedelta(minutes=1)  # between the clocks of who wrote it and who published it
_EVENTS = 200_000  # of which is remembered where they are


@dataclass(frozen=True)
class Delay:
    """How long a command's events took: to the log, and on to the view, both in seconds."""

    to_log: float
    to_view: float


class Freshness:
    """Follows a category's topic, and knows how far the flows behind it have come.

        with Freshness(store.topic("account"), settings) as freshness:
            receipt = accounts.execute("ada", Deposit(100))
            freshness.wait(receipt, "bank.balances", within="5 seconds")

    It remembers where events are in the log from `since` before it was made. A flow's position is published
    twice a second, so that waiting takes up to that much longer than the view does.
    """

    def __init__(
        self, topic: str, settings: Settings, *, since: str | timedelta = "1 minute", namespace: str = ""
    ) -> None:
        self._topic, self._namespace = topic, namespace or settings.namespace
        self._groups = Groups(settings)
        self._cursor = Cursor(topic, settings)
        self._begins = datetime.now(UTC) - duration(since)
        self._settings = settings
        self._cursor.start(from_time(self._begins))
        self._seen: OrderedDict[tuple[str, int], tuple[int, int]] = OrderedDict()
        self._decode = JsonCodec(Recorded).decode
        self._news = threading.Condition()
        self._closing = threading.Event()
        self._error: LogError | None = None
        self._thread = threading.Thread(target=self._follow, name=f"freshness {topic}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closing.set()
        self._thread.join(10)
        self._cursor.close()

    def wait(self, receipt: Receipt, flow: str, *, within: str | timedelta = "5 seconds") -> Delay:
        """Return when the flow, by `pipeline.flow`, has written what follows from a command, or raise.

        StaleViewError says how far it has come; the command itself stays done.
        """
        if not self._topic.endswith(f".{receipt.category}"):
            raise ConfigurationError(
                f"a receipt of the category {receipt.category!r}, and the topic is {self._topic!r}",
                hint="make a Freshness for each category's topic",
            )
        begun = time.monotonic()
        if not receipt.records:  # there is nothing to wait for
            return Delay(0.0, 0.0)
        until = begun + duration(within).total_seconds()
        place = self._older(receipt) if receipt.records[-1].at < self._begins else None
        partition, offset = place or self._published(receipt, until)
        published = time.monotonic()
        group = Identity.of(self._namespace, *flow.split(".", 1)).group
        while (seen := self._position(group, partition)) <= offset:
            if time.monotonic() > until:
                if not self._groups.positions(group):
                    raise StaleViewError(f"no flow {flow!r} has read anything yet", hint="is its name right?")
                raise StaleViewError(
                    f"{flow} is at offset {seen} of {self._topic}/{partition}, expected beyond {offset}",
                    hint="look at it again later, or see whether the flow runs: penstock groups list",
                )
            time.sleep(_PAUSE)
        return Delay(published - begun, time.monotonic() - begun)

    def _position(self, group: str, partition: int) -> int:
        found = self._groups.positions(group) or {}
        return found.get(self._topic, {}).get(partition, 0)

    def _older(self, receipt: Receipt) -> tuple[int, int] | None:
        """Look for an event in the log that was written before this one began to follow it."""
        with Cursor(self._topic, self._settings) as cursor:
            cursor.start(from_time(receipt.records[-1].at - _SKEW))
            for message in cursor.read_to(cursor.ends()):
                record = self._decode(message.value())
                if (record.stream, record.version) == (receipt.stream, receipt.version):
                    return message.partition(), message.offset()
        return None

    def _published(self, receipt: Receipt, until: float) -> tuple[int, int]:
        """Wait until the newest event of a receipt is in the log, and return where."""
        with self._news:
            while True:
                if self._error:
                    raise self._error
                if (place := self._seen.get((receipt.stream, receipt.version))) is not None:
                    return place
                if not self._news.wait(until - time.monotonic()):
                    raise StaleViewError(
                        f"{receipt.category} {receipt.stream!r}: version {receipt.version} is not in the log",
                        hint="see whether the store is published: penstock capture list",
                    )

    def _follow(self) -> None:
        try:
            while not self._closing.is_set():
                self._remember(self._cursor.read(wait=0.05))
        except Exception as error:
            with self._news:
                self._error = LogError(f"{self._topic!r} can't be followed: {error}")
                self._news.notify_all()

    def _remember(self, messages: Iterable[Received]) -> None:
        with self._news:
            for message in messages:
                record = self._decode(message.value())
                self._seen[record.stream, record.version] = message.partition(), message.offset()
            while len(self._seen) > _EVENTS:
                self._seen.popitem(last=False)
            self._news.notify_all()
