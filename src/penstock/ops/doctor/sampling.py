"""Reads the last records of topics, within a bound for each partition."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from penstock.errors import DataError, PenstockError
from penstock.log import Topic
from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.ops.doctor.topic_sample import SampledRecord, TopicSample, Whole
from penstock.ops.doctor.writer import writer_of
from penstock.registry import Registry
from penstock.schemas import Codec
from penstock.schemas.plain import PlainReader
from penstock.settings import Settings

_LONGEST = 60  # letters of a key or an id that are shown
_HEADER = 5  # bytes before a message that names its schema


class Sampler:
    """Samples topics, decoded as well as it can be done; `registry` is None where there is none."""

    def __init__(self, settings: Settings, registry: Registry | None, most: int = 500) -> None:
        self._settings, self._registry, self._most = settings, registry, most

    def sample(self, name: str, declared: Topic[Any] | None = None) -> TopicSample:
        """Return the last records of a topic; `declared` says what they should be."""
        reader = _RecordReader(declared, self._registry)
        with Cursor(name, self._settings, group="penstock.doctor") as cursor:
            first, ends = cursor.beginnings(), cursor.ends()
            cursor.go_to({number: max(first[number], end - self._most) for number, end in ends.items()})
            found = [reader.record(each) for each in cursor.read_to(ends)]
        records = sorted(found, key=lambda each: (each.partition, each.offset))
        return TopicSample(name, tuple(records), tuple(sorted(self._unknown(records))), self._most)

    def _unknown(self, records: list[SampledRecord]) -> set[int]:
        return {id for id in {each.schema for each in records} if id is not None and not self._knows(id)}

    def _knows(self, id: int) -> bool:
        try:
            return self._registry is None or bool(self._registry.schema(id))
        except PenstockError:
            return False


class _RecordReader:
    """Makes messages what is kept of them."""

    def __init__(self, declared: Topic[Any] | None, registry: Registry | None) -> None:
        self._time = "at" if declared is None else declared.time or declared.event.event_time
        self._names_schema = registry is not None and (declared is None or declared.is_registered)
        self._codec = _codec(declared, registry)
        self._plain = PlainReader(lambda id: registry.written("", id)) if registry is not None else None

    def record(self, message: Received) -> SampledRecord:
        value = message.value()
        found = self._content(value)
        (key, key_hash), (id, id_hash) = _short(message.key()), _short(found.get("id"))
        return SampledRecord(
            message.partition(),
            message.offset(),
            message.timestamp()[1] / 1000,
            key,
            id,
            _moment(found.get(self._time)),
            self._schema(value),
            tuple(map(str, found)),
            self._error(value),
            key_hash,
            id_hash,
            writer_of(message.headers()),
        )

    def _schema(self, value: bytes | None) -> int | None:
        is_named = self._names_schema and value is not None and len(value) > _HEADER and value[0] == 0
        return int.from_bytes(value[1:_HEADER], "big") if is_named and value is not None else None

    def _content(self, value: bytes | None) -> Mapping[str, Any]:
        if value is None:
            return {}
        found = _json(value) if value[:1] == b"{" or self._plain is None else self._plain(value)
        return found if isinstance(found, dict) else {}

    def _error(self, value: bytes | None) -> str:
        if self._codec is None or value is None:
            return ""
        try:
            self._codec.decode(value)
        except DataError as error:
            return error.message
        return ""


def _codec(declared: Topic[Any] | None, registry: Registry | None) -> Codec[Any] | None:
    if declared is None or declared.is_captured or (declared.is_registered and registry is None):
        return None
    return declared.codec(registry)


def _json(value: bytes) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _short(value: object) -> Whole | tuple[None, str]:
    """What is kept of a key or an id: its beginning, and of one that is cut a hash of all of it."""
    if value is None:
        return None, ""
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return text[:_LONGEST], _hash(text) if len(text) > _LONGEST else ""


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _moment(value: object) -> float | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
        return found.timestamp() if isinstance(found, datetime) else None
    except (ValueError, OverflowError, OSError):
        return None
