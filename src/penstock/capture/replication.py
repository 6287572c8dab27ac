"""A connection that speaks PostgreSQL's replication protocol: slots, and the stream of a slot."""

import select
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import Self

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from penstock.capture import lsn as lsns
from penstock.errors import CaptureError, SourceError
from penstock.settings import Secret

_HEADER = Struct(">cqqq").unpack_from
_KEEPALIVE = Struct(">cqqB").unpack_from
_STATUS = Struct(">cqqqqB").pack
_EPOCH = 946_684_800_000_000
# Values come as text: these settings say how it is spelled, the same in every session of a capture.
SPELLING = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "standard_conforming_strings": "on",
    "client_encoding": "UTF8",
}
# A policy that hides rows is an error, and no lock or standby is waited for without an end.
_BEHAVIOUR = {
    "row_security": "off",
    "synchronous_commit": "local",
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "0",
}


@dataclass(frozen=True)
class System:
    """Whose log it is: a cluster by its id, and how often it was taken over by another server."""

    id: str
    timeline: int


@dataclass(frozen=True)
class NewSlot:
    """A slot that was just made: where its stream begins, and the snapshot of just that place."""

    begins: int
    snapshot: str


class Replication:
    """Reads the stream of one slot; `confirm` says what PostgreSQL need not keep any more."""

    def __init__(self, dsn: Secret, name: str) -> None:
        self._connection = connect_replication(dsn, name)
        self._pg = self._connection.pgconn
        self._confirmed = 0
        row = self._ask("IDENTIFY_SYSTEM")
        self.system = System(row[0], int(row[1]))
        self.end = lsns.parse(row[2])  # of the server's log

    def create(self, slot: str, *, temporary: bool = False, failover: bool = False) -> NewSlot:
        """Make a slot; its snapshot lives until this connection is used for something else."""
        options = "SNAPSHOT 'export'" + (", FAILOVER true" if failover else "")
        kind = "TEMPORARY " if temporary else ""
        row = self._ask(f'CREATE_REPLICATION_SLOT "{slot}" {kind}LOGICAL pgoutput ({options})')
        return NewSlot(lsns.parse(row[1]), row[2])

    def start(self, slot: str, publication: str, at: int) -> None:
        """Begin to read a slot's stream at a place; large transactions come before they are committed."""
        options = {
            "proto_version": "2",
            "publication_names": f'"{publication}"',
            "messages": "true",
            "streaming": "on",
        }
        listed = ", ".join(f"{name} '{value}'" for name, value in options.items())
        command = f'START_REPLICATION SLOT "{slot}" LOGICAL {lsns.spell(at)} ({listed})'
        result = self._pg.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise _refused(result, command)

    def wait(self, seconds: float) -> None:
        """Wait until there is something to read."""
        poll = select.poll()  # unlike select, it takes any file descriptor
        poll.register(self._pg.socket, select.POLLIN)
        poll.poll(seconds * 1000)
        self._pg.consume_input()

    def read(self) -> Iterator[tuple[int, bytes]]:
        """Yield what has come, as (place, message); a keep-alive is a place with an empty message."""
        take = self._pg.get_copy_data
        while True:
            size, data = take(1)
            if size == 0:
                return
            if size < 0:
                self._raise_end()
            if data[0] == 119:  # w
                yield _HEADER(data)[1], bytes(data[25:])
            else:
                _, end, _, wants_answer = _KEEPALIVE(data)
                if wants_answer:
                    self.confirm(self._confirmed)
                yield end, b""

    def confirm(self, lsn: int) -> None:
        """Let PostgreSQL know that all before a place is safe."""
        self._confirmed = lsn
        now = time.time_ns() // 1000 - _EPOCH
        self._pg.put_copy_data(_STATUS(b"r", lsn, lsn, lsn, now, 0))
        self._pg.flush()

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: str) -> list[str]:
        result = self._pg.exec_(command.encode())
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise _refused(result, command)
        return [(result.get_value(0, at) or b"").decode() for at in range(result.nfields)]

    def _raise_end(self) -> None:
        result = self._pg.get_result()
        said = (result.error_message if result else b"").decode().strip()
        raise SourceError(
            f"PostgreSQL ended the stream: {said or 'without a word'}", hint="it is tried again"
        )


def connect_replication(dsn: Secret, name: str) -> "psycopg.Connection[tuple[object, ...]]":
    """Open a connection of the replication protocol to a database."""
    return connect(dsn, name, replication="database")


def connect(dsn: Secret, name: str, **more: str) -> "psycopg.Connection[tuple[object, ...]]":
    """Open a connection in which values are spelled as captures expect them."""
    options = {**SPELLING, **_BEHAVIOUR}
    spelled = " ".join(f"-c {key}={value}" for key, value in options.items() if key != "client_encoding")
    try:
        info = make_conninfo(
            dsn.value,
            application_name=name[:63],
            options=spelled,
            client_encoding="UTF8",
            connect_timeout="10",
            keepalives_idle="10",
            keepalives_interval="5",
            keepalives_count="3",
            **more,
        )
    except psycopg.ProgrammingError:  # its text may hold the password
        raise CaptureError(
            "the database's address can't be read",
            hint="postgresql://user:password@host/name; write % as %25",
        ) from None
    try:
        return psycopg.connect(info, autocommit=True, prepare_threshold=None)
    except psycopg.OperationalError as error:
        raise _unreachable(error) from None  # its text may hold the address


def _unreachable(error: psycopg.OperationalError) -> SourceError | CaptureError:
    said = " ".join(str(error).split())[:300]
    if "authentication failed" in said or "permission denied" in said or "must be superuser" in said:
        return CaptureError(
            f"PostgreSQL does not let the capture in: {said}",
            hint="`penstock capture role NAME` prints what its role needs",
        )
    return SourceError(f"can't reach PostgreSQL: {said}", hint="is it up, and the address right?")


def _refused(result: "pq.abc.PGresult", command: str) -> SourceError | CaptureError:
    said = result.error_message.decode(errors="replace").strip()
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    what = command.partition(" ")[0]
    if state in ("55006", "57P01", "57P02", "57P03", "08006", "53300") or not state:
        return SourceError(f"{what}: {said}", hint="it is tried again")
    return CaptureError(f"{what}: {said}", hint="see `penstock capture status`, and the server's log")
