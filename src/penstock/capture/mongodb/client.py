"""A connection to MongoDB in which nothing of a document is changed by being read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from penstock.errors import CaptureError, ChangesLostError, PenstockError, SourceError
from penstock.settings import Secret

if TYPE_CHECKING:
    from bson.timestamp import Timestamp
    from pymongo import MongoClient
    from pymongo.client_session import ClientSession
    from pymongo.collection import Collection

JsonDocument = dict[str, Any]
# In milliseconds, where the address has no others: to find a server, and without an answer of it.
_PATIENCE: dict[str, Any] = {"serverSelectionTimeoutMS": 10_000, "socketTimeoutMS": 60_000}
_HINT = "mongodb://user:password@host:27017/?replicaSet=name; write @ in a password as %40"
_DENIED = {13, 18, 8000}
_LOST = {136, 260, 280, 286, 50811}
_TOO_LARGE, _NO_REPLICA_SET = 10334, 40573
# Elections, shutdowns, and cursors that are gone with a server: they pass.
_PASSING = {
    *(6, 7, 43, 50, 63, 64, 89, 91, 133, 134, 150, 175, 189, 234, 237, 246, 262),
    *(9001, 10107, 11600, 11601, 11602, 13388, 13435, 13436),
}


class Client:
    """Asks a replica set or a cluster; reads see what a majority of its servers has."""

    def __init__(self, dsn: Secret, name: str) -> None:
        self._client = _connected(dsn, f"penstock capture {name}")

    @property
    def replica_set(self) -> str:
        """The name of the replica set; of a cluster of shards there is none."""
        return str(self._client.topology_description.replica_set_name or "")

    def collection(self, path: str) -> "Collection[JsonDocument]":
        """Return a collection, of which reads see what can't be rolled back any more."""
        from pymongo.read_concern import ReadConcern
        from pymongo.read_preferences import ReadPreference

        database, _, name = path.partition(".")
        majority = ReadConcern("majority")
        found: Collection[JsonDocument] = self._client[database].get_collection(
            name, read_concern=majority, read_preference=ReadPreference.PRIMARY
        )
        return found

    def kind(self, path: str) -> str | None:
        """Return what is there under a name: a collection, a view, a timeseries, or nothing."""
        database, _, name = path.partition(".")
        with explained():
            found = self._client[database].list_collections(filter={"name": name})
            return next((str(each.get("type", "collection")) for each in found), None)

    def session(self) -> "ClientSession":
        """Return a session in which each read sees at least what those before have seen."""
        return self._client.start_session(causal_consistency=True)

    def now(self, path: str) -> "Timestamp":
        """Return a time such that a read sees all that was changed until then."""
        with explained(), self.session() as session:
            self.collection(path).find_one({}, {"_id": 1}, session=session)
            found = session.operation_time
        if found is None:
            raise _no_replica_set("it gives no operation time")
        return found

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def explained() -> Iterator[None]:
    """Say what an error of MongoDB's means: whether it passes, or somebody has to do something."""
    from bson.errors import BSONError
    from pymongo.errors import PyMongoError

    try:
        yield
    except (PyMongoError, BSONError) as error:
        raise explanation(error) from None  # its text may hold what was asked


def explanation(error: Exception) -> PenstockError:
    """Return an error of MongoDB's as one of ours."""
    from pymongo.errors import ConfigurationError, ConnectionFailure, OperationFailure

    text = str(error).partition(", full error:")[0][:300]
    if isinstance(error, OperationFailure):
        return _refusal(error.code or 0, text)
    if isinstance(error, ConnectionFailure):
        return SourceError(f"MongoDB: {text}", hint="is it up, and the address right? it is tried again")
    if isinstance(error, ConfigurationError) and "Sessions are not supported" in text:
        return _no_replica_set(text)
    return CaptureError(f"MongoDB can't be read: {text}", hint=_HINT)


def _refusal(code: int, text: str) -> PenstockError:
    if code in _LOST:
        return ChangesLostError(
            f"MongoDB does not have the changes behind the position any more: {text}",
            hint="make the oplog larger (replSetResizeOplog, minRetentionHours); "
            "`penstock capture run NAME --snapshot-again` writes all documents again",
        )
    if code in _DENIED:
        return CaptureError(
            f"MongoDB does not let the capture in: {text}",
            hint="`penstock capture role NAME` prints what its user needs",
        )
    if code == _NO_REPLICA_SET:
        return _no_replica_set(text)
    if code == _TOO_LARGE:
        return CaptureError(
            f"a change is larger than the 16 MB that MongoDB can send: {text}",
            hint="make such documents smaller; `penstock capture run NAME --snapshot-again` leaves it out",
        )
    if code in _PASSING:
        return SourceError(f"MongoDB: {text}", hint="it is tried again")
    return CaptureError(f"MongoDB refuses: {text} (code {code})", hint="see the server's log")


def _no_replica_set(text: str) -> CaptureError:
    return CaptureError(
        f"this server has no change streams: {text}",
        hint="they need a replica set, be it of one server: mongod --replSet, then rs.initiate()",
    )


def _connected(dsn: Secret, name: str) -> "MongoClient[JsonDocument]":
    from bson.codec_options import DatetimeConversion
    from pymongo import MongoClient
    from pymongo.errors import PyMongoError

    try:
        return MongoClient(
            dsn.value,
            appname=name,
            tz_aware=True,
            datetime_conversion=DatetimeConversion.DATETIME_MS,
            uuidRepresentation="unspecified",
            **{name: each for name, each in _PATIENCE.items() if name.lower() not in dsn.value.lower()},
        )
    except (PyMongoError, ValueError):  # its text may hold the password
        raise CaptureError("the address of MongoDB can't be read", hint=_HINT) from None
