"""A database of a test's own in MongoDB's stand-in, and what captures of it have written."""

import json
from dataclasses import dataclass, replace

from bson import json_util

from penstock.capture import Store
from tests.capture.running import Database, _await, _is_there

CONNECTION = "mongo"


@dataclass
class MongoDatabase(Database):
    """The same as `Database`, in MongoDB."""

    server: object = None

    def __post_init__(self):
        connections = {**self.settings.connections, CONNECTION: {"dsn": self.server.dsn}}
        self.settings = replace(self.settings, connections=connections)
        self.connection = self.server.connect()
        self.db = self.connection[self.schema]

    def capture(self, *collections, **more):
        return super().capture(*collections, connection=CONNECTION, **more)

    def await_written(self, capture, failed=()):
        """Wait until all that is changed now is written; the last change has to be of what is captured."""
        end = self.end()
        _await(lambda: _is_there(self.settings, capture, end), failed)

    def end(self):
        """Return the time of the last change of any collection."""
        at = self.connection.admin.command("ping")["operationTime"]
        return at.time << 32 | at.inc

    def drop(self, capture):
        """Nothing is left in the database."""

    def close(self):
        for name in Store(self.settings).names():
            if name.startswith(self.schema):
                Store(self.settings).remove(name)
        self.connection.close()


def documents(found):
    """The collection that the records make, by key; each is as its extended JSON is read."""
    made = {}
    for each in found:
        key = json.dumps(each.key)
        if each.value is None or each.op == "d":
            made.pop(key, None)
        elif each.after is not None:
            made[key] = json_util.loads(each.after)
    return list(made.values())
