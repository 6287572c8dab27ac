"""A worker of Kafka Connect on this machine, on loopback, with Debezium's connectors on its class path."""

import os
import signal
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from penstock.local import jars, java, ports
from penstock.local.files import write_whole

MANIFEST = Path(__file__).with_name("jars.toml")
_CLI = "org.apache.kafka.connect.cli"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_SETTINGS = {
    "key.converter": _JSON,
    "value.converter": _JSON,
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
    "plugin.discovery": "service_load",
    "offset.flush.interval.ms": "1000",
}
# Only a worker of a group can write records and offsets in one transaction.
_GROUP = {"exactly.once.source.support": "enabled", "scheduled.rebalance.max.delay.ms": "0"}


@dataclass(frozen=True)
class Worker:
    """A worker whose files are below `data`: alone, or the only one of a group that delivers exactly once.

    `settings` are Kafka Connect's own and come last; `java` are options of Java.
    """

    data: Path
    bootstrap: str
    exactly_once: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    java: tuple[str, ...] = ("-Xmx512m",)
    port: int | None = None

    name = "connect"
    usual_port = 8083
    stop_signal = signal.SIGTERM

    @property
    def folder(self) -> Path:
        return self.data / "connect"

    @property
    def logs(self) -> tuple[Path, ...]:
        return self.folder / "connect.log", self.folder / "connect.out"

    @property
    def version(self) -> str:
        return next(jar.version for jar in _jars() if jar.artifact == "connect-runtime")

    @property
    def identity(self) -> tuple[str, ...]:
        kind = "ConnectDistributed" if self.exactly_once else "ConnectStandalone"
        return f"{_CLI}.{kind}", str(self.folder / "worker.properties")

    def prepare(self, port: int) -> list[str]:
        """Write the worker's settings and return its command."""
        written = "".join(f"{name}={value}\n" for name, value in self._properties(port).items())
        write_whole(self.folder / "worker.properties", written)
        log4j = files("penstock.local") / "log4j2.xml"
        logging = f"-Dlog4j2.configurationFile=file:{log4j}", f"-Dpenstock.log={self.logs[0]}"
        return [str(java.find().program), *self.java, *logging, "-cp", _class_path(), *self.identity]

    def answers(self, port: int) -> bool:
        """Say whether connectors can be asked for."""
        try:
            with urllib.request.urlopen(f"{self.endpoint(port)}/connectors", timeout=2):
                return True
        except (OSError, urllib.error.URLError):
            return False

    def endpoint(self, port: int) -> str:
        """Return the address of its REST interface."""
        return f"http://{ports.LOOPBACK}:{port}"

    def _properties(self, port: int) -> dict[str, str]:
        common = {"bootstrap.servers": self.bootstrap, "listeners": self.endpoint(port)}
        offsets = _group(self.data.name) if self.exactly_once else self._offsets_file()
        return common | _SETTINGS | offsets | dict(self.settings)

    def _offsets_file(self) -> dict[str, str]:
        return {"offset.storage.file.filename": str(self.folder / "offsets")}


def _group(name: str) -> dict[str, str]:
    topics = {f"{kind}.storage.topic": f"{name}-{kind}" for kind in ("config", "offset", "status")}
    copies = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    return _GROUP | {"group.id": name} | topics | copies


def _jars() -> tuple[jars.Jar, ...]:
    return jars.manifest(MANIFEST)["debezium"]


def _class_path() -> str:
    folder = jars.ensure(_jars())
    return os.pathsep.join(str(folder / jar.file) for jar in _jars())
