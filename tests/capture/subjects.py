"""The databases of a campaign: each is written to, killed, and compared with what was captured of it."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Protocol

import psutil
import psycopg
import pymysql

from penstock.capture import Capture, Store
from penstock.capture.mysql.place import place
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.errors import PenstockError
from penstock.local import Platform
from tests.capture import judge, mariadb_judge
from tests.capture.maria_shop import MariaShop
from tests.capture.shop import TABLES, Shop
from tests.mariadb_server import MariaDb


class Subject(Protocol):
    """A database under a campaign."""

    def read_again(self) -> None:
        """Have a table written again."""

    def kill(self) -> None:
        """Kill the server, and start it again."""

    def end(self) -> int:
        """Where the database's log ends now."""

    def differences(self) -> list[str]:
        """What is wrong with the topics."""

    def close(self) -> None: ...


class PostgresSubject:
    """The platform's own database."""

    def __init__(self, folder: Path, platform: Platform, random: Random) -> None:
        self._platform, self.settings = platform, platform.up()
        self._dsn = self.settings.dsn().value
        self.shop = Shop(self._dsn, random)
        self.capture = Capture("shop", tables=TABLES, transactions=True)

    def read_again(self) -> None:
        with suppress(psycopg.Error), psycopg.connect(self._dsn, autocommit=True) as connection:
            request = 'snapshot penstock_shop {"path":"public.orders"}'
            connection.execute("select pg_logical_emit_message(true, 'penstock', %s)", [request])

    def kill(self) -> None:
        found = next(each for each in self._platform.status() if each.name == "postgres")
        if found.pid:
            psutil.Process(found.pid).kill()
        self._platform.up()

    def end(self) -> int:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            return connection.execute("select (pg_current_wal_lsn() - '0/0')::int8").fetchone()[0]

    def differences(self) -> list[str]:
        return judge.differences(self.settings, self._dsn)

    def close(self) -> None:
        """It goes with the platform."""


class MariaSubject:
    """A MariaDB of the campaign's own."""

    def __init__(self, folder: Path, platform: Platform, random: Random) -> None:
        self._server = MariaDb(folder / "mariadb")
        self._server.install()
        self.settings = replace(platform.up(), connections={"shopdb": {"dsn": self._server.dsn}})
        self.shop = MariaShop(self._server, random)
        tables = tuple(f"shop.{name}" for name in judge.KEYS)
        self.capture = Capture("shop", tables=tables, connection="shopdb", transactions=True)

    def read_again(self) -> None:
        with suppress(PenstockError):
            store = Store(self.settings)
            known = store.get("shop")
            store.put(replace(known, requests=(*known.requests, SnapshotRequest("shop.orders"))))

    def kill(self) -> None:
        self._server.kill()
        self._server.start()

    def end(self) -> int:
        with self._server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("show master status")
            file, at = cursor.fetchone()[:2]
        return place(file, int(at))

    def differences(self) -> list[str]:
        return mariadb_judge.differences(self.settings, self._server)

    def close(self) -> None:
        with suppress(pymysql.MySQLError):
            self._server.stop()


SUBJECTS = {"postgres": PostgresSubject, "mariadb": MariaSubject}
