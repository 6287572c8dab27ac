"""The stream of a binary log, as the server sends it to a replica."""

import time
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from typing import Self

from penstock.capture.mysql import events
from penstock.capture.mysql.server import Server, explained
from penstock.errors import ChangesLostError, SourceError
from penstock.settings import Secret

_DUMP = Struct("<IHI").pack
_COMMAND, _ERROR, _END = 0x12, 0xFF, 0xFE
_LARGEST, _PIECE = 0xFFFFFF, 1024 * 1024
_PATIENCE = 60.0
_SETTINGS = (
    "SET @master_binlog_checksum = @@global.binlog_checksum",
    "SET @mariadb_slave_capability = 4",  # we know global transaction ids
    "SET @master_heartbeat_period = 5000000000",  # nanoseconds
)
_NOT_THERE = 1236


class Dump:
    """Reads a binary log from a place on; the server takes us for a replica of this number."""

    def __init__(self, dsn: Secret, number: int) -> None:
        self._server, self._number = Server(dsn), number
        self._data, self._checked = bytearray(), False
        self._part = b""  # of a packet that is larger than packets can be
        self._heard_at = time.monotonic()

    def start(self, file: str, at: int) -> None:
        """Have events sent, from the one at a place on."""
        for each in _SETTINGS:
            self._server.ask(each)
        with explained():
            self._server.connection._execute_command(_COMMAND, _DUMP(at, 0, self._number) + file.encode())

    def wait(self, seconds: float) -> None:
        """Wait until something has come."""
        socket = self._server.connection._sock
        socket.settimeout(seconds)
        try:
            piece = socket.recv(_PIECE)
        except TimeoutError:
            if time.monotonic() - self._heard_at > _PATIENCE:
                raise _lost(f"nothing has come for {_PATIENCE:.0f} seconds") from None
            return
        except OSError as error:
            raise _lost(str(error)) from error
        if not piece:
            raise _lost("it closed the connection")
        self._data += piece
        self._heard_at = time.monotonic()

    def read(self) -> Iterator[events.Event]:
        """Yield the events that have come whole."""
        data, at = self._data, 0
        try:
            while len(data) - at >= 4:
                size = int.from_bytes(data[at : at + 3], "little")
                if len(data) - at - 4 < size:
                    return
                packet = bytes(data[at + 4 : at + 4 + size])
                at += 4 + size
                self._part += packet
                if size < _LARGEST:
                    packet, self._part = self._part, b""
                    yield self._event(packet)
        finally:
            del data[:at]

    def _event(self, packet: bytes) -> events.Event:
        if packet[0] == _ERROR:
            raise _refused(packet)
        if packet[0] == _END and len(packet) < 9:
            raise _lost("it ended the stream")
        data = packet[1:]
        if data[4] == events.FORMAT:
            self._checked = events.is_checked(data)
            return (
                events.event(data, checked=True) if self._checked else events.event(data[:-4], checked=False)
            )
        if data[4] == events.ROTATE:  # the first one comes before any word on checksums
            return events.event(data, events.has_sum(data))
        return events.event(data, self._checked)

    def close(self) -> None:
        with suppress(Exception):
            self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refused(packet: bytes) -> SourceError | ChangesLostError:
    code, said = int.from_bytes(packet[1:3], "little"), packet[3:].decode(errors="replace")
    if code == _NOT_THERE:
        return ChangesLostError(
            f"the binary log can't be read from the position on: {said.removeprefix('#HY000')}",
            hint="`penstock capture run NAME --snapshot-again` writes all rows again",
        )
    return SourceError(f"the database ended the stream: {said}", hint="it is tried again")


def _lost(why: str) -> SourceError:
    return SourceError(f"the stream of the database is lost: {why}", hint="it is tried again")
