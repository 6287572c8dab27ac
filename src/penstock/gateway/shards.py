"""The keys of all gateways, by shards: each key belongs to one of them."""

import asyncio
import logging
import threading
import time
from datetime import timedelta

from penstock.errors import AuthorizationError, LogError
from penstock.gateway.key_writer import KeyWriter
from penstock.gateway.shard import Shard
from penstock.gateway.submission import Reply, Submission
from penstock.identity import Identity
from penstock.log import Broker
from penstock.settings import Settings

_SHARDS = 4
_TRY_EVERY, _PATIENCE, _TICK = 2.0, 5.0, 0.05
_END_S = 30.0  # within which what waits is written when the gateway ends
_log = logging.getLogger(__name__)


class Shards:
    """Writes submissions once for each key, whichever gateway they come to, and remembers the keys.

    The keys are in a topic that all gateways of a namespace share; the number of its partitions is that of
    the shards. It is made when the broker is there; until then, submissions are refused.
    """

    def __init__(self, settings: Settings, keep: timedelta) -> None:
        self._settings, self._keep = settings, keep
        self._identity = Identity.of_keys(settings.namespace)
        self._shards: list[Shard] = []
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._start, name="keys", daemon=True)
        self._thread.start()

    async def submit(self, submission: Submission) -> Reply:
        """Return the reply once the submission is written, or was before."""
        await self._started()
        number = int.from_bytes(submission.key[:8]) % len(self._shards)
        self._shards[number].submit(submission)
        return await asyncio.wrap_future(submission.reply)

    async def _started(self) -> None:
        for _ in range(round(_PATIENCE / _TICK)):
            if self._shards:
                return
            await asyncio.sleep(_TICK)
        raise LogError("the gateway's keys are not there yet", hint="is the broker up? try again")

    def close(self) -> None:
        """Write what waits."""
        self._closed.set()
        self._thread.join()
        deadline = time.monotonic() + _END_S
        for each in self._shards:
            each.end()
        for each in self._shards:
            each.join(deadline)

    def _start(self) -> None:
        while not self._closed.is_set():
            try:
                self._shards = [self._shard(number) for number in range(self._made())]
                return
            except Exception as error:  # whatever it is: without this thread, no key would ever be taken
                _log.warning("the keys can't be read yet: %s", str(error) or type(error).__name__)
                self._closed.wait(_TRY_EVERY)

    def _made(self) -> int:
        """Make the topic if it is missing, see that it keeps keys long enough, return its partitions."""
        broker, topic = Broker(self._settings), self._identity.ledger
        if not broker.exists(topic):
            broker.ensure(topic, _SHARDS, _kept(self._keep))
        else:
            self._extend(broker, topic)
        found = broker.partitions([topic]).get(topic)
        if not found:  # another gateway is making it
            raise LogError(f"topic {topic!r} is not there yet")
        return found

    def _extend(self, broker: Broker, topic: str) -> None:
        """Let the topic keep keys for longer, if the broker lets us see and change for how long."""
        kept = _kept(self._keep)
        try:
            if int(broker.topic_config(topic)["retention.ms"]) < int(kept["retention.ms"]):
                broker.configure(topic, kept)
        except AuthorizationError as error:
            _log.warning("whether %r keeps keys for %s is not known: %s", topic, self._keep, error)

    def _shard(self, number: int) -> Shard:
        id = self._identity.transactional_id(number)
        return Shard(KeyWriter(self._settings, self._identity.ledger, number, id, self._keep))


def _kept(keep: timedelta) -> dict[str, str]:
    """The settings of a topic that keeps its records for a time, and not much longer."""
    milliseconds = keep // timedelta(milliseconds=1)
    roll = min(milliseconds, 3_600_000)
    return {"cleanup.policy": "delete", "retention.ms": str(milliseconds), "segment.ms": str(roll)}
