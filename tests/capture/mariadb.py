"""A database of a test's own in MariaDB, and what captures of it have written."""

from dataclasses import dataclass, replace

from penstock.capture import Store
from penstock.capture.mysql.place import place
from tests.capture.running import Database, _await, _is_there

CONNECTION = "shopdb"


@dataclass
class MariaDatabase(Database):
    """The same as `Database`, in MariaDB: a schema is a database there."""

    server: object = None

    def __post_init__(self):
        connections = {**self.settings.connections, CONNECTION: {"dsn": self.server.dsn}}
        self.settings = replace(self.settings, connections=connections)
        self.connection = self.server.connect()
        self.execute(f"create database {self.schema} character set utf8mb4")
        self.connection.select_db(self.schema)

    def execute(self, statement, arguments=None):
        """Run statements one after the other; return the cursor of the last."""
        cursor = self.connection.cursor()
        for each in statement.split("; "):
            cursor.execute(each, arguments)
        return cursor

    def capture(self, *tables, **more):
        return super().capture(*tables, connection=CONNECTION, **more)

    def await_written(self, capture, failed=()):
        """Wait until all that is committed now is written."""
        end = self.end()
        _await(lambda: _is_there(self.settings, capture, end), failed)

    def end(self):
        file, at = self.execute("show master status").fetchone()[:2]
        return place(file, int(at))

    def drop(self, capture):
        """Nothing is left in the database."""

    def close(self):
        for name in Store(self.settings).names():
            if name.startswith(self.schema):
                Store(self.settings).remove(name)
        self.execute(f"drop database if exists {self.schema}")
        self.connection.close()
