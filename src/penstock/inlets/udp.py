"""UDP: a datagram is a message; nobody waits, so what there is no room for is dropped and counted."""

import os
import select
import socket
from dataclasses import dataclass
from pathlib import Path

from penstock.inlets.address import check_host, check_port, family_of, spelled, unusable
from penstock.inlets.receiver import Incoming, Receiver

_LARGEST = 65_535
_AT_ONCE = 1_000
_BUFFER = 4 * 2**20  # what is asked for; the system's net.core.rmem_max is the bound
_TABLES = (Path("/proc/net/udp"), Path("/proc/net/udp6"))
_INODE, _DROPS = 9, 12  # columns


@dataclass(frozen=True)
class Udp:
    """Datagrams to a port, each a message; port 0 is any that is free.

    `anyone` has to be set for a host that others than this machine reach: there is no authentication.
    """

    port: int
    host: str = "127.0.0.1"
    anyone: bool = False

    def __post_init__(self) -> None:
        check_port(self.port)
        check_host(self.host, is_guarded=self.anyone)

    def open(self) -> "UdpReceiver":
        """Begin to listen."""
        return UdpReceiver(self)


class UdpReceiver(Receiver):
    is_patient = False

    def __init__(self, source: Udp) -> None:
        self._socket = socket.socket(family_of(source.host), socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.setblocking(False)
        try:
            self._socket.bind((source.host, source.port))
        except OSError as error:
            self._socket.close()
            raise unusable(spelled("udp", source.host, source.port), error) from error
        self.address = spelled("udp", *self._socket.getsockname()[:2])
        self._inode = str(os.fstat(self._socket.fileno()).st_ino)
        self._poll = select.poll()  # select knows no more than 1,024 open files
        self._poll.register(self._socket, select.POLLIN)

    def receive(self, wait: float) -> list[Incoming]:
        found: list[Incoming] = []
        self._poll.poll(1000 * wait)
        while len(found) < _AT_ONCE:
            try:
                data, sender = self._socket.recvfrom(_LARGEST)
            except BlockingIOError:
                break
            found.append(Incoming(data, spelled("udp", *sender[:2])))
        return found

    def dropped_by_kernel(self) -> int | None:
        """Return what the socket's buffer had no room for, as Linux counts it."""
        for table in _TABLES:
            if (count := _drops(table, self._inode)) is not None:
                return count
        return None

    def close(self) -> None:
        self._socket.close()


def _drops(table: Path, inode: str) -> int | None:
    try:
        rows = [line.split() for line in table.read_text().splitlines()[1:]]
    except OSError:
        return None
    return next((int(row[_DROPS]) for row in rows if len(row) > _DROPS and row[_INODE] == inode), None)
