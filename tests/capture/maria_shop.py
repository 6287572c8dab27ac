"""A shop in MariaDB that is written to at random; what was committed is in the server's own log."""

import threading
from random import Random

import pymysql

_TABLES = (
    "create table orders (id bigint primary key, name text, price decimal(12,2), note text)",
    "create table `lines` (shop varchar(20), number int, what text, primary key (shop, number))",
    "create table visits (who text, times int)",
)
_FIRST = (
    "insert into orders select seq, concat('o', seq), seq * 1.25, null from seq_1_to_{0}",
    "insert into `lines` select concat('s', seq % 7), seq, concat('l', seq) from seq_1_to_{0}",
    "insert into visits select concat('v', seq), seq from seq_1_to_500",
)


class MariaShop:
    """Writes transactions one after the other."""

    def __init__(self, server, random: Random) -> None:
        self._server, self.random = server, random
        self.stopped = threading.Event()
        self.columns: list[str] = []
        self.added = self.transactions = 0

    def create(self, rows: int) -> None:
        """Make the tables, with rows that are there before anybody captures them."""
        with self._server.connect() as connection, connection.cursor() as cursor:
            for each in (*_TABLES, *_FIRST):
                cursor.execute(each.format(rows))

    def run(self) -> None:
        """Write until stopped; a database that was killed is waited for."""
        while not self.stopped.is_set():
            try:
                with self._server.connect() as connection, connection.cursor() as cursor:
                    while not self.stopped.wait(self.random.random() * 0.01):
                        self.transaction(cursor)
                        self.transactions += 1
            except (pymysql.MySQLError, OSError):  # killed
                self.stopped.wait(0.2)

    def transaction(self, cursor) -> None:
        """Do one thing, or several in one transaction, some of which are undone."""
        chance = self.random.random()
        if chance < 0.01:
            self._alter(cursor)
            return
        if chance < 0.02:
            cursor.execute(f"truncate table `{self.random.choice(['orders', 'lines', 'visits'])}`")
            return
        if chance < 0.025:
            cursor.execute("flush binary logs")
        cursor.execute("begin")
        if chance < 0.035:
            self._many(cursor, self.random.choice([300, 700, 4000, 25_000]))
        for _ in range(self.random.randrange(1, 6)):
            self._within_savepoint(cursor)
        cursor.execute("rollback" if self.random.random() < 0.1 else "commit")

    def _within_savepoint(self, cursor) -> None:
        cursor.execute("savepoint s")
        self._statement(cursor)
        if self.random.random() < 0.2:
            self._many(cursor, self.random.choice([2, 300]))
            cursor.execute("rollback to s")

    def _statement(self, cursor) -> None:
        number, other = self.random.randrange(1, 3000), self.random.randrange(1, 3000)
        cursor.execute(
            self.random.choice(
                [
                    f"insert into orders (id, name, price) values ({number}, 'é {number} \\\\', {number}.5) "
                    "on duplicate key update name = values(name)",
                    f"update orders set price = price + 1, note = repeat('x', {other}) where id = {number}",
                    f"update ignore orders set id = {other} where id = {number}",
                    f"delete from orders where id between {number} and {number + 5}",
                    f"insert ignore into `lines` (shop, number) values ('s{number % 7}', {number})",
                    f"update `lines` set what = 'w{other}' where number = {number}",
                    f"delete from `lines` where number = {number}",
                    f"insert into visits values ('v{number}', {other})",
                    f"update visits set times = times + 1 where times = {number % 500}",
                    f"delete from visits where times = {number}",
                ]
            )
        )

    def _many(self, cursor, count: int) -> None:
        start = self.random.randrange(10_000, 10_000_000)
        cursor.execute(
            "insert ignore into orders (id, name) "
            f"select seq, concat('m', seq) from seq_{start}_to_{start + count}"
        )

    def _alter(self, cursor) -> None:
        """Add a column, or drop one; no name comes twice."""
        if self.columns and self.random.random() < 0.4:
            cursor.execute(f"alter table `lines` drop column {self.columns.pop(0)}")
            return
        self.added += 1
        name = f"extra{self.added}"
        cursor.execute(f"alter table `lines` add column {name} int")
        self.columns.append(name)
        cursor.execute(f"update `lines` set {name} = number where number % 5 = {self.added % 5}")
