"""Kafka on this machine: one KRaft node, broker and controller in one process, on loopback."""

import base64
import os
import secrets
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.errors import ServiceError
from penstock.local import fencing, jars, java, ports
from penstock.local.files import draft, write_whole

_LOG4J = Path(__file__).with_name("log4j2.xml")
_JVM = ("-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true")
# What Java is given otherwise, by the variables that Kafka's own start scripts know.
_CHOSEN = {"KAFKA_HEAP_OPTS": "-Xms256m -Xmx768m", "KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseG1GC"}
# One node holds the only copy of everything: nobody takes over, so it isn't fenced for being slow or paused.
# Tests want short sessions of groups and few internal partitions.
_SETTINGS = {
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,SECURED:SASL_SSL,"
    "CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "true",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.session.timeout.ms": "10000",
    "group.share.assignment.interval.ms": "0",
    "broker.session.timeout.ms": "30000",
    "log.cleaner.dedupe.buffer.size": "33554432",
}


@dataclass(frozen=True)
class Kafka:
    """A broker whose data is below `data`.

    `proxied` adds a listener for tests: clients that come to the first port, a proxy's, are passed on to the
    second and stay behind the proxy. `secured` adds a listener on a port of its own that speaks SASL_SSL, and
    the broker's settings that it needs.
    """

    data: Path
    port: int | None = None
    proxied: tuple[int, int] | None = None
    secured: tuple[int, Mapping[str, str]] | None = None

    name = "kafka"
    usual_port = 9092
    stop_signal = signal.SIGTERM

    @property
    def folder(self) -> Path:
        return self.data / "kafka"

    @property
    def logs(self) -> tuple[Path, ...]:
        return self.data / "logs" / "kafka.log", self.data / "logs" / "kafka.out"

    @property
    def version(self) -> str:
        return next(jar.version for jar in jars.manifest()["kafka"] if jar.artifact == "kafka-server")

    @property
    def identity(self) -> tuple[str, ...]:
        return "kafka.Kafka", str(self.folder / "server.properties")

    def prepare(self, port: int) -> list[str]:
        """Format the storage if it is new, write the settings and return the broker's command."""
        program = [str(java.find().program), "-cp", jars.class_path("kafka")]
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "data").exists():
            self._format(program)
        if fencing.is_due(self.folder / "data"):
            self._declare_dead(program)
        write_whole(self.folder / "server.properties", self._properties(port, ports.any_free()))
        self.logs[0].parent.mkdir(parents=True, exist_ok=True)
        return [program[0], *_JVM, *_chosen(), *_logging(self.logs[0]), *program[1:], *self.identity]

    def answers(self, port: int) -> bool:
        """Say whether a client gets metadata that names this broker."""
        if not ports.is_open(port):
            return False
        client = AdminClient({"bootstrap.servers": f"{ports.LOOPBACK}:{port}", "log_level": 0})
        try:
            return len(client.list_topics(timeout=2).brokers) == 1
        except KafkaException:
            return False

    def endpoint(self, port: int) -> Mapping[str, str]:
        """Return the Kafka settings with which a client reaches it."""
        return {"bootstrap.servers": f"{ports.LOOPBACK}:{port}"}

    def _format(self, program: list[str]) -> None:
        """Format into a folder that gets its place when it is whole: an interrupted one is made again."""
        with draft(self.folder) as new:
            write_whole(new / "properties", self._properties(self.usual_port, self.usual_port + 1))
            options = ("format", "--cluster-id", _cluster_id(), "--config", "properties")
            command = [
                program[0],
                "-XX:TieredStopAtLevel=1",
                *program[1:],
                "kafka.tools.StorageTool",
                *options,
            ]
            answer = subprocess.run(command, cwd=new, capture_output=True, text=True, check=False)
            if answer.returncode:
                raise ServiceError(f"Kafka's storage could not be formatted:\n{answer.stdout}{answer.stderr}")
            (new / "data").replace(self.folder / "data")

    def _declare_dead(self, program: list[str]) -> None:
        settings, log = self.folder / "controller.properties", self.folder / "controller.log"
        alone = {"process.roles": "controller"} | fencing.SESSION
        write_whole(settings, _lines(_node(ports.any_free()) | alone))
        identity = self.identity[0], str(settings)
        options = _JVM[-1], "-XX:TieredStopAtLevel=1", "-Dpenstock.fencing=INFO", *_logging(log)
        command = [program[0], *options, *program[1:], *identity]
        fencing.declare_dead(command, identity, self.folder / "data", log)

    def _properties(self, port: int, controller_port: int) -> str:
        ours = {"PLAINTEXT": (port, port)}
        if self.proxied:
            ours["PROXIED"] = self.proxied
        secured, needed = self.secured or (0, {})
        if secured:
            ours["SECURED"] = (secured, secured)
        listen = [f"{name}://{ports.LOOPBACK}:{own}" for name, (_, own) in ours.items()]
        advertised = [f"{name}://{ports.LOOPBACK}:{shown}" for name, (shown, _) in ours.items()]
        placed = _node(controller_port) | {
            "process.roles": "broker,controller",
            "listeners": ",".join([*listen, _controller(controller_port)]),
            "advertised.listeners": ",".join(advertised),
            "inter.broker.listener.name": "PLAINTEXT",
        }
        return _lines({**placed, **needed})


def _chosen() -> list[str]:
    return [word for name, usual in _CHOSEN.items() for word in os.environ.get(name, usual).split()]


def _controller(port: int) -> str:
    return f"CONTROLLER://{ports.LOOPBACK}:{port}"


def _node(controller_port: int) -> dict[str, str]:
    """The log folder is relative to the process's own: Kafka would split a path at a comma."""
    return _SETTINGS | {
        "log.dirs": "data",
        "listeners": _controller(controller_port),
        "controller.quorum.voters": f"1@{ports.LOOPBACK}:{controller_port}",
    }


def _lines(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _logging(log: Path) -> tuple[str, str]:
    return f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", f"-Dpenstock.log={log}"


def _cluster_id() -> str:
    """Kafka's ids are 16 bytes in URL-safe base64 and must not look like an option."""
    return "P" + base64.urlsafe_b64encode(secrets.token_bytes(16)).decode()[1:22]
