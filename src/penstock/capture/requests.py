"""Requests to a capture at work: they go through the database's log, and so are carried out once."""

import logging

import msgspec
import psycopg

from penstock.capture.chunks import key_literal, key_row
from penstock.capture.slot import Source
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.errors import CaptureError

REQUEST = "snapshot"
_log = logging.getLogger("penstock")


def send(request: SnapshotRequest, source: Source) -> None:
    """Write a request to the database's log, after a look at the table."""
    capture, path = source.capture, request.path
    if path not in capture.tables:
        raise CaptureError(
            f"capture {capture.name!r} has no table {path!r}", hint=f"it has {', '.join(capture.tables)}"
        )
    shape = source.catalogue.shape(path)
    if not shape.key:
        raise CaptureError(
            f"table {path!r} has no primary key: its rows can't be distinguished while it changes",
            hint=f"`penstock capture run {capture.name} --snapshot-again` writes all tables again",
        )
    for given in (request.after, request.last, *request.absent):
        if given is not None and len(given) != len(shape.key):
            raise _no_key(given, path, shape.key)
        try:
            if given is not None:
                where = f"{key_row(shape)} = {key_literal(shape, given)}"
                source.connection.execute(f"SELECT 1 FROM {shape.quoted} WHERE {where}")  # noqa: S608
        except psycopg.DataError as error:
            raise _no_key(given or (), path, shape.key) from error
    source.emit("penstock", f"{REQUEST} {source.slot_name} {msgspec.json.encode(request).decode()}")


def received(text: str) -> SnapshotRequest | None:
    """Read a request; what anybody else has written under our prefix is passed over."""
    try:
        return msgspec.json.decode(text, type=SnapshotRequest)
    except (msgspec.MsgspecError, ValueError):
        _log.warning("a request in the database's log can't be read: %.80s", text)
        return None


def _no_key(given: tuple[str, ...], path: str, key: tuple[str, ...]) -> CaptureError:
    return CaptureError(f"{','.join(given)!r} is not a key of {path!r}", hint=f"give {','.join(key)}")
