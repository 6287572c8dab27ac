"""ZeroMQ: PULL, where the sender waits, and SUB, where nobody does."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from penstock.errors import InletError, SetupError
from penstock.inlets.address import LONGEST, check_host, check_longest, unusable
from penstock.inlets.receiver import Incoming, Receiver

if TYPE_CHECKING:
    import zmq

Pattern = Literal["pull", "sub"]
_AT_ONCE = 1_000
_QUEUED = {"pull": 100, "sub": 10_000}  # messages of each peer that ZeroMQ takes ahead of us
_KERNEL = 64 * 2**10
_MOST_FRAMES = 2  # an envelope and the message


@dataclass(frozen=True)
class ZeroMq:
    """Messages of ZeroMQ by the pattern "pull" or "sub", on an address to `bind` or to `connect` to.

    Of a message with two frames the second is read: the first is its envelope, which `prefix` selects by.
    `anyone` has to be set for an address to bind that others than this machine reach. `longest` is the
    message's length in bytes; ZeroMQ cuts the connection of whoever sends more than 500,000 at once.
    """

    pattern: Pattern
    bind: str | None = None
    connect: str | None = None
    prefix: str = ""
    anyone: bool = False
    longest: int = 65_536

    def __post_init__(self) -> None:
        if self.pattern not in _QUEUED:
            raise InletError(f"the pattern is {self.pattern!r}, expected 'pull' or 'sub'")
        if (self.bind is None) == (self.connect is None):
            raise InletError("an inlet of ZeroMQ has one address", hint="give either bind= or connect=")
        if self.prefix and self.pattern == "pull":
            raise InletError(f"prefix is {self.prefix!r}", hint="only a sub selects by it: leave it out")
        check_longest(self.longest)
        parts = urlsplit(self.address)
        if parts.scheme not in ("tcp", "ipc"):
            raise InletError(f"{self.address!r} is no address", hint="write tcp://127.0.0.1:5557 or ipc://…")
        if self.bind is not None and parts.scheme == "tcp":
            check_host(parts.hostname or "", is_guarded=self.anyone)

    @property
    def address(self) -> str:
        return self.bind or self.connect or ""

    def open(self) -> "ZeroMqReceiver":
        """Bind, or connect."""
        return ZeroMqReceiver(self)


class ZeroMqReceiver(Receiver):
    def __init__(self, source: ZeroMq) -> None:
        zmq = self._zmq = _package()
        self.is_patient = source.pattern == "pull"
        self._longest = source.longest
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PULL if self.is_patient else zmq.SUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVHWM, _QUEUED[source.pattern])
        self._socket.setsockopt(zmq.RCVBUF, _KERNEL)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LONGEST)
        if not self.is_patient:
            self._socket.setsockopt_string(zmq.SUBSCRIBE, source.prefix)
        try:
            (self._socket.bind if source.bind else self._socket.connect)(source.address)
        except zmq.ZMQError as error:
            self.close()
            raise unusable(source.address, error) from error
        self.address = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._spelled = f"{source.pattern} {self.address}"

    def receive(self, wait: float) -> list[Incoming]:
        found: list[Incoming] = []
        self._socket.poll(int(wait * 1000))
        while len(found) < _AT_ONCE:
            try:
                found.append(self._message(self._socket.recv_multipart(self._zmq.NOBLOCK, copy=False)))
            except self._zmq.Again:
                break
        return found

    def close(self) -> None:
        self._socket.close(linger=0)
        self._context.term()

    def _message(self, frames: "Sequence[zmq.Frame]") -> Incoming:
        last, fault = frames[-1], None
        if len(frames) > _MOST_FRAMES:
            fault = f"it has {len(frames)} frames, the most are {_MOST_FRAMES}; this is the last"
        elif len(last) > self._longest:
            fault = f"it is longer than {self._longest} bytes, this is its beginning"
        sender = f"{self._spelled} from {last.get('Peer-Address')}"
        return Incoming(last.bytes[: self._longest], sender, fault)


def _package() -> ModuleType:
    try:
        import zmq
    except ImportError:
        raise SetupError(
            "the package pyzmq is not installed", hint="pip install 'penstock[zeromq]'"
        ) from None
    return zmq
