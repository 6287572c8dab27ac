"""Messages decoded for people: by a declared class, or by the schema that they name, then masked."""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from penstock.console.masking import HIDDEN, Masks
from penstock.documents import JsonObject
from penstock.errors import UnknownSchemaError
from penstock.gateway.declared import Declared
from penstock.log import Broker
from penstock.log.dead_letters import DeadLetter
from penstock.log.message import Received
from penstock.log.tail import described
from penstock.log.topic import DEAD_LETTERS
from penstock.registry import Registry
from penstock.registry.topic import NAME as SCHEMAS
from penstock.schemas import Codec, WrittenSchema
from penstock.schemas.plain import PlainReader
from penstock.settings import Settings

_LONGEST = 20_000  # characters of a message that are shown, and of all its headers
_SHORT = 2_000  # of a key, and of one header
# Headers that say where a record comes from, and nothing of what is in it.
_OF_A_LETTER = ("topic", "partition", "offset", "at", "deliveries")
_PLAIN = frozenset({"penstock.made-by", *(f"penstock.dead.{each}" for each in _OF_A_LETTER)})


class Decoding:
    """Makes a document of a message; the registry is opened when one needs it, and again if it fails."""

    def __init__(self, settings: Settings, declared: Declared, masks: Masks) -> None:
        self._settings, self._declared, self._masks = settings, declared, masks
        self._lock = threading.Lock()
        self._registry: Registry | None = None

    def decoder(self, topic: str) -> Callable[[Received], JsonObject]:
        """Return the function that makes documents of a topic's messages."""
        codec = self.codec(topic)
        plain = PlainReader(lambda id: self._written(topic, id))

        def decode(message: Received) -> JsonObject:
            found = described(message, codec, plain) | {"bytes": len(message.value() or b"")}
            if topic.endswith(DEAD_LETTERS):
                found["letter"] = _letter(DeadLetter.from_message(message))
            return _bounded(self._masked(topic, found))

        return decode

    def codec(self, topic: str) -> Codec[Any] | None:
        """Return the codec of a topic that is declared; None for others, and for captured ones."""
        found = self._declared.topics.get(topic)
        if found is None or found.is_captured:
            return None
        return found.codec(self.registry()) if found.is_registered else found.codec()

    def registry(self) -> Registry | None:
        """Return the registry, if schemas were ever registered: looking must not make its topic."""
        with self._lock:
            if self._registry is not None and self._registry.has_failed:
                self._let_go()
            if self._registry is None and Broker(self._settings).exists(SCHEMAS):
                self._registry = Registry(self._settings, patience="1 second")
            return self._registry

    def close(self) -> None:
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        registry, self._registry = self._registry, None
        with suppress(Exception):
            if registry is not None:
                registry.close()

    def _written(self, topic: str, id: int) -> WrittenSchema:
        registry = self.registry()
        if registry is None:
            raise UnknownSchemaError("there is no registry")
        return registry.written(f"{topic}-value", id)

    def _masked(self, topic: str, found: JsonObject) -> JsonObject:
        for name in ("event", "value"):
            if name in found:
                found[name] = self._masks.hidden(topic, found[name])
        is_masked = self._masks.covers(topic)
        if is_masked and "error" in found:  # it may quote what it could not decode
            found["error"] = HIDDEN
        if is_masked and "letter" in found:
            found["letter"]["error"] = HIDDEN
        if self._masks.hides_key(topic) and found.get("key") is not None:
            found["key"] = HIDDEN
        if is_masked and "headers" in found:
            found["headers"] = {
                name: each if name in _PLAIN else HIDDEN for name, each in found["headers"].items()
            }
        return found


def _letter(letter: DeadLetter) -> JsonObject:
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "error": letter.error,
        "at": letter.at.isoformat(),
        "deliveries": letter.deliveries,
    }


def _bounded(found: JsonObject) -> JsonObject:
    """Whatever a producer wrote, what is shown of one message is small: a search shows hundreds."""
    bounds = {"event": _LONGEST, "value": _LONGEST, "key": _SHORT, "error": _SHORT, "letter": _LONGEST}
    cut = {name: _short(found[name], most) for name, most in bounds.items() if name in found}
    return found | cut | ({"headers": _few(found["headers"])} if "headers" in found else {})


def _few(headers: JsonObject) -> JsonObject:
    """As many headers as there is room for, each of them short."""
    shown: JsonObject = {}
    room = _LONGEST
    for name, each in headers.items():
        value = _short(each, _SHORT)
        room -= len(name) + len(str(value))
        if room < 0:
            return shown | {"…": f"{len(headers) - len(shown):,} more"}
        shown[name] = value
    return shown


def _short(value: Any, most: int) -> Any:
    """A value that is too long to be shown is cut, as a text."""
    if isinstance(value, str):
        return value if len(value) <= most else value[:most] + "…"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(text) if len(text) <= most else text[:most] + "…"
