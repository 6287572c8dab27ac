"""The real Debezium for PostgreSQL, which writes what our own capture is compared with."""

import json
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Self

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from penstock.errors import ServiceError
from penstock.local import service
from penstock.local.files import last_lines
from penstock.settings import Settings, reveal
from tests.connect.worker import Worker

_STREAMS = """
    select from pg_replication_slots join pg_stat_replication on pid = active_pid
    where slot_name = %s and state = 'streaming'
"""
_DROP_SLOT = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s"


class Debezium:
    """One connector in a worker of its own, from entering until leaving; `topic.prefix` must be configured.

    >>> with Debezium(settings, {"topic.prefix": "shop", "schema.include.list": "shop"}):
    ...     ...  # what is committed now arrives in shop.shop.<table>

    Inside, `stop` and `start` go on from the offsets. Slot and publication are dropped at the end.
    """

    def __init__(
        self,
        settings: Settings,
        config: Mapping[str, str],
        *,
        exactly_once: bool = False,
        worker: Mapping[str, str] | None = None,
        java: tuple[str, ...] = ("-Xmx512m",),
        patience: float = 120,
    ) -> None:
        self._dsn = reveal(settings.dsn())
        self._config = _defaults(self._dsn, config["topic.prefix"]) | dict(config)
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-connect-"))
        bootstrap = settings.client()["bootstrap.servers"]
        self._worker = Worker(self._folder, bootstrap, exactly_once, worker or {}, java)
        self._patience = patience
        self._address = ""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def pid(self) -> int | None:
        """The worker's process, if it runs."""
        return service.status(self._worker).pid

    @property
    def slot(self) -> str:
        return self._config["slot.name"]

    def start(self) -> None:
        """Start the worker, or attach to it, and wait until the connector streams."""
        self._address = self._worker.endpoint(service.start(self._worker, _silent, self._patience))
        self._configure()
        deadline = time.monotonic() + self._patience
        while not self._streams():
            self._check(deadline)
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the worker; offsets, slot and publication stay."""
        service.stop(self._worker, _silent)

    def _configure(self) -> None:
        """Configure the connector; a group that is being joined takes it a moment later."""
        deadline = time.monotonic() + self._patience
        while answer := self._refusal():
            if time.monotonic() > deadline:
                raise self._failure(f"was refused: {answer}")
            time.sleep(0.5)

    def _refusal(self) -> str | None:
        """Ask the worker for the connector; return why it refused for now, or nothing."""
        try:
            _ask(f"{self._address}/connectors/{self._name}/config", self._config)
        except urllib.error.HTTPError as error:
            said = error.read().decode()
            if error.code != HTTPStatus.CONFLICT:
                raise self._failure(f"was refused: {said}") from None
            return said
        return None

    @property
    def _name(self) -> str:
        return self._config["topic.prefix"]

    def _streams(self) -> bool:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            return connection.execute(_STREAMS, [self.slot]).fetchone() is not None

    def _check(self, deadline: float) -> None:
        if self.pid is None:
            raise self._failure("ended before it streamed")
        if trace := self._trace():
            raise self._failure(f"failed:\n{trace}")
        if time.monotonic() > deadline:
            raise self._failure(f"did not stream within {self._patience:.0f} s")

    def _trace(self) -> str:
        """Return what the connector or its task failed with."""
        try:
            said = _ask(f"{self._address}/connectors/{self._name}/status")
        except OSError:
            return ""
        return "\n".join(one["trace"] for one in (said["connector"], *said["tasks"]) if one.get("trace"))

    def _failure(self, what: str) -> ServiceError:
        lines = [line for log in self._worker.logs for line in last_lines(log, 100)]
        shown = [line for line in lines if not line.startswith("\tat ")]
        return ServiceError(f"Debezium {what}\nits last lines:\n  " + "\n  ".join(shown[-30:]))

    def _end(self) -> None:
        try:
            self.stop()
            self._drop()
        finally:
            shutil.rmtree(self._folder)

    def _drop(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(_DROP_SLOT, [self.slot])
            name = sql.Identifier(self._config["publication.name"])
            connection.execute(sql.SQL("drop publication if exists {}").format(name))


def _defaults(dsn: str, prefix: str) -> dict[str, str]:
    """What every connector here has: where the database is, and names made from the prefix."""
    place = conninfo_to_dict(dsn)
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": str(place["host"]),
        "database.port": str(place["port"]),
        "database.user": str(place["user"]),
        "database.password": str(place["password"]),
        "database.dbname": str(place["dbname"]),
        "slot.name": prefix,
        "publication.name": prefix,
        "publication.autocreate.mode": "filtered",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }


def _ask(address: str, config: Mapping[str, str] | None = None) -> dict:
    body = None if config is None else json.dumps(config).encode()
    method = "GET" if body is None else "PUT"
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def _silent(_: str) -> None:
    """Report nothing."""
