"""A submission: what a request brings to be written once, and what it is answered with."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from penstock.gateway.refusal import Refusal
from penstock.gateway.trace_context import Headers

Positions = Sequence[tuple[int, int]]  # partition and offset


class Outgoing(NamedTuple):
    """A message on its way to the log."""

    topic: str
    key: bytes | None
    value: bytes
    headers: Headers = ()


class Reply(NamedTuple):
    """What a request is answered with; `repeated` if it was answered so before."""

    answer: bytes
    repeated: bool


@dataclass(frozen=True)
class Prepared:
    """Messages, and the answer that their positions make."""

    messages: tuple[Outgoing, ...]
    answer: Callable[[Positions], bytes]


@dataclass(frozen=True)
class Submission:
    """Messages that are written together, and once for a key.

    `key` and `body` are digests. `content` is what to write, or why not: a key that was used is answered as
    before, whatever its body is found to be today.
    """

    key: bytes
    body: bytes
    content: Prepared | Refusal
    reply: "Future[Reply]" = field(default_factory=Future)

    def fail(self, error: BaseException) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)

    def succeed(self, answer: bytes, *, repeated: bool) -> None:
        if not self.reply.done():
            self.reply.set_result(Reply(answer, repeated))


def key_digest(scope: str, key: str) -> bytes:
    """Return what a key is known by: the same key in another scope is another one."""
    return sha256(f"{len(scope)} {scope} {key}".encode()).digest()
