"""TCP: a line is a message; a sender that is faster than the log waits, because nothing more is read."""

import selectors
import socket
import time
from dataclasses import dataclass

from penstock.errors import InletError
from penstock.inlets.address import check_host, check_longest, check_port, family_of, spelled, unusable
from penstock.inlets.connection import Connection
from penstock.inlets.receiver import Incoming, Receiver
from penstock.settings import Secret

_WINDOW = 256 * 2**10  # what the system receives ahead of us: it is lost with a process that is killed
_AT_ONCE = 10_000
_BACKLOG = 128  # connections that the system lets in before we do
_PAUSE = 0.01


@dataclass(frozen=True)
class Tcp:
    """Lines over TCP connections; port 0 is any that is free.

    `acknowledge` replies how many of a connection's lines are in the log, each time that more are. A `token`
    has to be the first line of each connection; it is sent in the clear. Without one, `anyone` has to be set
    for a host that others than this machine reach. `longest` is a line's length in bytes, `connections` how
    many there may be at once.
    """

    port: int
    host: str = "127.0.0.1"
    anyone: bool = False
    token: Secret | None = None
    acknowledge: bool = False
    longest: int = 65_536
    connections: int = 100

    def __post_init__(self) -> None:
        check_port(self.port)
        check_host(self.host, is_guarded=self.anyone or self.token is not None)
        if self.token is not None and not self.token.value.strip():
            raise InletError("the inlet's token is empty")
        check_longest(self.longest)
        if self.connections < 1:
            raise InletError(f"connections is {self.connections}, expected at least 1")

    def open(self) -> "TcpReceiver":
        """Begin to listen."""
        return TcpReceiver(self)


class TcpReceiver(Receiver):
    is_patient = True

    def __init__(self, source: Tcp) -> None:
        self._source = source
        self.acknowledges = source.acknowledge
        self._connections: list[Connection] = []
        self._turn = 0
        self._ending: list[Connection] = []  # over, and waiting for their last reply
        try:
            family = family_of(source.host)
            self._listener = socket.create_server((source.host, source.port), family=family, backlog=_BACKLOG)
        except OSError as error:
            raise unusable(spelled("tcp", source.host, source.port), error) from error
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WINDOW)
        self._listener.setblocking(False)
        self.address = spelled("tcp", *self._listener.getsockname()[:2])
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def receive(self, wait: float) -> list[Incoming]:
        found: list[Incoming] = []
        ready = self._selector.select(wait)
        self._turn += 1
        for place in range(len(ready)):  # beginning with another one each time: none is always the last
            key, _ = ready[(place + self._turn) % len(ready)]
            if len(found) >= _AT_ONCE:
                break
            if key.data is None:
                self._accept()
            else:
                found += self._read(key.data)
        for connection in [each for each in self._connections if each.is_overdue]:
            self._refuse(connection)
        return found

    def stop_listening(self) -> None:
        for _ in range(_BACKLOG + 1):  # those that the system has let in; others may go on coming
            if not self._accept():
                break
        self._selector.unregister(self._listener)
        self._listener.close()

    def unfinished(self) -> list[Incoming]:
        return [each for connection in self._connections for each in connection.unfinished()]

    def acknowledge(self) -> None:
        for connection in [*self._connections, *self._ending]:
            connection.acknowledge()
        for connection in self._ending:
            connection.socket.close()
        self._ending.clear()

    def close(self) -> None:
        for connection in [*self._connections, *self._ending]:
            connection.socket.close()
        self._selector.close()
        self._listener.close()

    def _accept(self) -> bool:
        try:
            made, peer = self._listener.accept()
        except BlockingIOError:
            return False
        except OSError:  # it has gone already, or there are no more files to be had
            time.sleep(_PAUSE)
            return False
        if len(self._connections) + len(self._ending) >= self._source.connections:
            self.refused += 1
            made.close()
            return True
        connection = Connection(made, spelled("tcp", *peer[:2]), self._source.longest, self._source.token)
        self._connections.append(connection)
        self._selector.register(made, selectors.EVENT_READ, connection)
        return True

    def _read(self, connection: Connection) -> list[Incoming]:
        found = connection.receive()
        if connection.is_refused:
            self._refuse(connection)
        elif connection.is_over:
            found += connection.unfinished()
            self._leave(connection)
            if self.acknowledges:
                self._ending.append(connection)
            else:
                connection.socket.close()
        return found

    def _refuse(self, connection: Connection) -> None:
        self.refused += 1
        self._leave(connection)
        connection.socket.close()

    def _leave(self, connection: Connection) -> None:
        self._selector.unregister(connection.socket)
        self._connections.remove(connection)
