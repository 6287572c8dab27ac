"""Delivery: one event to the broker, acknowledged with its position before the client is answered."""

import asyncio
import logging
import threading
from contextlib import suppress
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message

from penstock.gateway.refusal import Refusal
from penstock.gateway.submission import Outgoing
from penstock.log.client import Configuration, ErrorListener, explain
from penstock.log.producer import Producer
from penstock.settings import Settings

_KAFKA: Configuration = {
    "delivery.report.only.error": False,
    "queue.buffering.max.messages": 10_000,
    "queue.buffering.max.kbytes": 65_536,
    "message.timeout.ms": 10_000,
}
_PATIENCE = 15.0  # seconds, in which the client itself gives a message up
Position = tuple[int, int]
_log = logging.getLogger(__name__)


class Delivery:
    """Sends single messages; each is acknowledged, or its client hears that it may not be there."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._producer = settings, _producer(settings)
        self._waiting = set[asyncio.Future[Position]]()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="delivery", daemon=True)
        self._thread.start()

    async def send(self, message: Outgoing) -> Position:
        """Return where a message stands once the broker has acknowledged it."""
        reply: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
        self._waiting.add(reply)  # before the producer is looked at: whoever replaces it finds the reply
        try:
            _hand_over(self._producer, message, reply)
            return await asyncio.wait_for(reply, _PATIENCE)
        except TimeoutError:
            raise _in_doubt() from None
        finally:
            self._waiting.discard(reply)

    def close(self) -> None:
        """Wait for what is on its way."""
        self._closed.set()
        self._thread.join()
        with suppress(KafkaException, SystemError):
            self._producer.client.flush(10)

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                self._producer.client.poll(0.1)
            except (KafkaException, SystemError) as error:
                _log.warning("the producer has failed for good, and is replaced: %s", error)
                self._replace()

    def _replace(self) -> None:
        """Fail what the producer had to send, whose reports may never come, and begin with a new one."""
        self._producer = _producer(self._settings)
        for reply in self._waiting.copy():
            _report(reply, _in_doubt())


def _producer(settings: Settings) -> Producer:
    return Producer(settings, linger="2 ms", kafka=_KAFKA)


def _hand_over(producer: Producer, message: Outgoing, reply: "asyncio.Future[Position]") -> None:
    report = partial(_delivered, reply, producer.listener)
    try:
        headers = [*message.headers] or None
        producer.client.produce(
            message.topic, message.value, message.key, on_delivery=report, headers=headers
        )
    except BufferError:
        raise Refusal.busy("the producer's buffer is full") from None
    except KafkaException as error:
        raise delivery_error(error.args[0], producer.listener) from None


def _delivered(
    reply: "asyncio.Future[Position]", listener: ErrorListener, error: KafkaError | None, message: Message
) -> None:
    failure = None if error is None else delivery_error(error, listener)
    _report(reply, failure, (int(message.partition() or 0), int(message.offset() or 0)))


def _report(
    reply: "asyncio.Future[Position]", failure: Exception | None, position: Position = (0, 0)
) -> None:
    with suppress(RuntimeError):  # its loop has ended, and with it whoever waited
        reply.get_loop().call_soon_threadsafe(_settle, reply, failure, position)


def _settle(reply: "asyncio.Future[Position]", failure: Exception | None, position: Position) -> None:
    if reply.done():
        return
    if failure is None:
        reply.set_result(position)
    else:
        reply.set_exception(failure)


def delivery_error(error: KafkaError, listener: ErrorListener | None = None) -> Exception:
    """Return what a client is answered whose events the broker has not acknowledged."""
    if error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE):
        return Refusal(
            413,
            "gateway.body",
            "an event is larger than its topic takes",
            hint="make it smaller, or raise max.message.bytes of the topic",
        )
    if error.code() == KafkaError._MSG_TIMED_OUT:
        return _in_doubt()
    return explain("write events", error, listener)


def _in_doubt() -> Refusal:
    return Refusal(
        503,
        "try-again.delivery",
        "the broker has not acknowledged the event in time; it may be written all the same",
        hint="repeat the request; with an Idempotency-Key it is written once",
        headers={"Retry-After": "1"},
    )
