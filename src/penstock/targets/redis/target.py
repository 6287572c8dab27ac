"""What the targets in Redis have in common: the server, the lanes, and a prefix that can be swapped."""

import re
from abc import abstractmethod
from contextlib import closing
from datetime import timedelta
from typing import ClassVar, Self

from pyspark.sql.types import StructType

from penstock.durations import duration
from penstock.errors import SettingsError, TargetError
from penstock.settings import Secret, Settings
from penstock.targets.lanes import LaneSink
from penstock.targets.redis.client import asking, connect
from penstock.targets.redis.lane import RedisLanes
from penstock.targets.redis.layout import Layout
from penstock.targets.redis.prefixes import BESIDE, swap
from penstock.targets.sink import SinkOptions
from penstock.targets.target import Target

DEFAULT = "redis"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


class RedisTarget(Target):
    """A target in Redis; `kind` is Redis's word for what its keys hold."""

    crash_points: ClassVar[tuple[str, ...]] = (
        "sink.redis.claimed",
        "sink.redis.committed",
        "sink.redis.written",
    )
    kind: ClassVar[str]
    prefix: str
    connection: str | None
    at_once: int

    @abstractmethod
    def layout(self, schema: StructType) -> Layout:
        """Return what becomes of rows of a schema; refuse what does not fit."""

    def sink(self, schema: StructType, options: SinkOptions) -> LaneSink:
        timeout = duration(options.timeout) / timedelta(seconds=1)
        address, layout = self.address(options.settings), self.layout(schema)
        return LaneSink(RedisLanes(address, options.id, layout, timeout, self.at_once), options)

    def address(self, settings: Settings) -> Secret:
        """Return where the server is; never log it."""
        if self.connection is None and DEFAULT not in settings.connections:
            raise SettingsError(
                f"{self.prefix}: no Redis is known",
                hint="run `penstock up --with redis`, set url of [connections.redis] in penstock.toml, or "
                "name a connection",
            )
        return settings.url(self.connection or DEFAULT)

    def prefix_beside(self, name: str) -> str:
        """Return the prefix of a target beside this one; no key below one is below the other."""
        if not _NAME.fullmatch(name):
            raise TargetError(
                f"{self.prefix}: {name!r} is no name", hint="use small letters, digits, _ and -"
            )
        return f"{self.prefix}{BESIDE}{name}"

    def swap(self, rebuilt: Self, settings: Settings) -> None:
        """Let readers see the rows of `rebuilt` from now on, and remove those that were here before."""
        if type(rebuilt) is not type(self) or not rebuilt.prefix.startswith(f"{self.prefix}{BESIDE}"):
            raise TargetError(f"{rebuilt!r} is not beside {self.prefix!r}", hint="make it with beside()")
        with closing(connect(self.address(settings))) as client, asking(f"swap {self.prefix!r}"):
            swap(client, self.prefix, rebuilt.prefix, self.kind)

    def _check_at_once(self) -> None:
        if self.at_once < 1:
            raise TargetError(f"{self.prefix}: at_once is {self.at_once}, expected at least 1")
