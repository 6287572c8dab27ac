"""Kafka on this machine: KRaft nodes, broker and controller in one process, on loopback."""

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.errors import ServiceError
from penstock.local import cluster, fencing, jars, java, ports
from penstock.local.cluster import Member
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
    """A broker whose data is below `data`; with `member`, one of several.

    `proxied` adds a listener for tests: clients that come to the first port, a proxy's, are passed on to the
    second and stay behind the proxy. `secured` adds a listener on a port of its own that speaks SASL_SSL, and
    the broker's settings that it needs.
    """

    data: Path
    port: int | None = None
    proxied: tuple[int, int] | None = None
    secured: tuple[int, Mapping[str, str]] | None = None
    member: Member | None = None

    stop_signal = signal.SIGTERM

    @property
    def name(self) -> str:
        return f"kafka-{self.member.number}" if self.member else "kafka"

    @property
    def usual_port(self) -> int:
        return 9091 + self._number

    @property
    def folder(self) -> Path:
        return self.data / self.name

    @property
    def logs(self) -> tuple[Path, ...]:
        return self.data / "logs" / f"{self.name}.log", self.data / "logs" / f"{self.name}.out"

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
        if self.is_fencing_due and not self.member:
            fencing.declare_dead(self.controller())
        write_whole(self.folder / "server.properties", self._properties(port, self._controller_port()))
        self.logs[0].parent.mkdir(parents=True, exist_ok=True)
        return [program[0], *_JVM, *self._chosen(), *_logging(self.logs[0]), *program[1:], *self.identity]

    @property
    def is_fencing_due(self) -> bool:
        """Whether it was killed when it ran last; of several brokers, others have taken over then."""
        return fencing.is_due(self.folder / "data")

    def answers(self, port: int) -> bool:
        """Say whether a client gets metadata that names this broker."""
        if not ports.is_open(port):
            return False
        client = AdminClient({"bootstrap.servers": f"{ports.LOOPBACK}:{port}", "log_level": 0})
        try:
            return self._number in client.list_topics(timeout=2).brokers
        except KafkaException:
            return False

    def endpoint(self, port: int) -> Mapping[str, str]:
        """Return the Kafka settings with which a client reaches it."""
        return {"bootstrap.servers": f"{ports.LOOPBACK}:{port}"}

    def _format(self, program: list[str]) -> None:
        """Format into a folder that gets its place when it is whole: an interrupted one is made again."""
        with draft(self.folder) as new:
            write_whole(new / "properties", self._properties(self.usual_port, self.usual_port + 1))
            options = ("format", "--cluster-id", self._cluster_id, "--config", "properties")
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

    def controller(self) -> fencing.Controller:
        """Return how its controller is started alone, to declare brokers dead that were killed."""
        settings, log = self.folder / "controller.properties", self.folder / "controller.log"
        alone = {"process.roles": "controller"} | fencing.SESSION
        write_whole(settings, _lines(self._node(self._controller_port()) | alone))
        identity = "kafka.Kafka", str(settings)
        options = _JVM[-1], "-XX:TieredStopAtLevel=1", "-Dpenstock.fencing=INFO", *_logging(log)
        command = str(java.find().program), *options, "-cp", jars.class_path("kafka"), *identity
        return fencing.Controller(command, identity, self.folder / "data", log)

    def _properties(self, port: int, controller_port: int) -> str:
        ours = {"PLAINTEXT": (port, port)}
        if self.proxied:
            ours["PROXIED"] = self.proxied
        secured, needed = self.secured or (0, {})
        if secured:
            ours["SECURED"] = (secured, secured)
        listen = [f"{name}://{ports.LOOPBACK}:{own}" for name, (_, own) in ours.items()]
        advertised = [f"{name}://{ports.LOOPBACK}:{shown}" for name, (shown, _) in ours.items()]
        placed = self._node(controller_port) | {
            "process.roles": "broker,controller",
            "listeners": ",".join([*listen, _controller(controller_port)]),
            "advertised.listeners": ",".join(advertised),
            "inter.broker.listener.name": "PLAINTEXT",
        }
        return _lines({**placed, **needed})

    def _node(self, controller_port: int) -> dict[str, str]:
        """The log folder is relative to the process's own: Kafka would split a path at a comma."""
        member, alone = self.member, f"1@{ports.LOOPBACK}:{controller_port}"
        return (
            _SETTINGS
            | (cluster.SETTINGS if member else {})
            | {
                "node.id": str(self._number),
                "log.dirs": "data",
                "listeners": _controller(controller_port),
                "controller.quorum.voters": member.cluster.voters if member else alone,
            }
        )

    def _chosen(self) -> list[str]:
        usual = _CHOSEN | ({"KAFKA_HEAP_OPTS": cluster.HEAP} if self.member else {})
        return [word for name, value in usual.items() for word in os.environ.get(name, value).split()]

    def _controller_port(self) -> int:
        return self.member.controller if self.member else ports.any_free()

    @property
    def _number(self) -> int:
        return self.member.number if self.member else 1

    @property
    def _cluster_id(self) -> str:
        return self.member.cluster.id if self.member else cluster.new_id()


def _controller(port: int) -> str:
    return f"CONTROLLER://{ports.LOOPBACK}:{port}"


def _lines(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _logging(log: Path) -> tuple[str, str]:
    return f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", f"-Dpenstock.log={log}"
