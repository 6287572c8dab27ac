"""A real broker and a real PostgreSQL, started, killed, found again and stopped."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer import Typer
from typer.testing import CliRunner, Result

from penstock.cli import local as commands
from penstock.cli.status import NOT_RUNNING
from penstock.errors import ServiceError, SettingsError
from penstock.local import Platform, running
from penstock.settings import ENDPOINTS, Settings, reveal


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform of this file's own: its tests kill it. The folder's name is one that needs care."""
    made = Platform(tmp_path_factory.mktemp("local") / "my data, all of it")
    yield made
    made.down()


def runs(pid: int) -> bool:
    """Say whether a process runs; one whose parent was killed may stay a zombie until init takes note."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pids(platform: Platform) -> dict[str, int | None]:
    return {one.name: one.pid for one in platform.status()}


def kill(platform: Platform, name: str) -> None:
    pid = pids(platform)[name]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def command(platform: Platform, name: str, *arguments: str) -> Result:
    app = Typer()
    commands.register(app)
    return CliRunner().invoke(app, [name, *arguments, "--data", str(platform.data)])


def send(settings: Settings, topic: str, count: int) -> int:
    """Send events and return how many were acknowledged."""
    acknowledged: list[int] = []
    producer = Producer(settings.client() | {"acks": "all"})
    for number in range(count):
        producer.produce(
            topic,
            str(number),
            on_delivery=lambda error, message: error or acknowledged.append(message.offset()),
        )
        producer.poll(0)
    producer.flush(20)
    return len(acknowledged)


def stored(settings: Settings, topic: str) -> list[bytes]:
    consumer = Consumer(settings.client() | {"group.id": "none"})
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[1]
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while len(found) < end:
        found += [message.value() for message in consumer.consume(1000, timeout=10)]
    consumer.close()
    return found


def make_topic(settings: Settings, topic: str, partitions: int = 1) -> None:
    admin = AdminClient(settings.client())
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)


def database(settings: Settings) -> psycopg.Connection[tuple[object, ...]]:
    assert settings.postgres is not None
    return psycopg.connect(reveal(settings.postgres))


def test_a_second_up_attaches(platform: Platform) -> None:
    first = platform.up()
    before = pids(platform)
    said: list[str] = []
    assert platform.up(report=said.append) == first
    assert pids(platform) == before
    assert sorted(line.split(" on ")[0] for line in said) == [
        "kafka is already running",
        "postgres is already running",
    ]


def test_the_settings_find_what_runs(platform: Platform) -> None:
    expected = platform.up()
    found = Settings.load(platform.data.parent, {"PENSTOCK_DATA": str(platform.data)})
    assert (found.kafka, found.postgres) == (expected.kafka, expected.postgres)
    assert (platform.data / ENDPOINTS).stat().st_mode & 0o077 == 0


def test_everything_listens_on_loopback_only(platform: Platform) -> None:
    platform.up()
    for pid in pids(platform).values():
        listening = [one for one in psutil.Process(pid).net_connections("tcp") if one.status == "LISTEN"]
        assert listening
        assert {one.laddr.ip.removeprefix("::ffff:") for one in listening} == {"127.0.0.1"}


def test_the_heap_is_below_a_gigabyte(platform: Platform) -> None:
    platform.up()
    assert "-Xmx768m" in psutil.Process(pids(platform)["kafka"]).cmdline()


def test_topics_are_not_made_by_asking_for_them(platform: Platform) -> None:
    admin = AdminClient(platform.up().client())
    admin.list_topics("nobody-made-me", timeout=10)
    assert "nobody-made-me" not in admin.list_topics(timeout=10).topics


def test_postgres_has_a_logical_log_and_asks_for_the_password(platform: Platform) -> None:
    settings = platform.up()
    with database(settings) as connection:
        assert connection.execute("show wal_level").fetchone() == ("logical",)
        assert connection.execute("show server_encoding").fetchone() == ("UTF8",)
        connection.execute("select pg_create_logical_replication_slot('trial', 'pgoutput')")
        connection.execute("select pg_drop_replication_slot('trial')")
        port = connection.info.port
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host="127.0.0.1", port=port, user="penstock", dbname="penstock", password="guess")


def test_acknowledged_events_outlive_a_killed_broker(platform: Platform) -> None:
    settings = platform.up()
    make_topic(settings, "kept")
    acknowledged = send(settings, "kept", 20_000)
    kill(platform, "kafka")
    again = platform.up()
    assert again.kafka == settings.kafka
    assert stored(again, "kept") == [str(number).encode() for number in range(acknowledged)]
    assert acknowledged == 20_000


def keep_committing(settings: Settings, topic: str, name: str, started: threading.Event) -> int:
    """Write transactions of eight messages until the broker is gone; return how many were acknowledged."""
    writer = Producer(settings.client() | {"transactional.id": name, "log_level": 0})
    writer.init_transactions(20)
    for done in range(100_000):
        writer.begin_transaction()
        for partition in range(8):
            writer.produce(topic, name, partition=partition)
        try:
            writer.commit_transaction(2)
        except KafkaException:
            return done
        started.set()
    raise AssertionError("the broker was never killed")


def ends(settings: Settings, topic: str, isolation: str) -> list[int]:
    consumer = Consumer(settings.client() | {"group.id": "none", "isolation.level": isolation})
    places = [TopicPartition(topic, partition) for partition in range(8)]
    found = [consumer.get_watermark_offsets(place, timeout=20)[1] for place in places]
    consumer.close()
    return found


@pytest.mark.long
def test_transactions_of_a_killed_broker_are_all_decided(platform: Platform) -> None:
    settings = platform.up()
    make_topic(settings, "decided", partitions=8)
    started = [threading.Event() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        writers = [
            pool.submit(keep_committing, settings, "decided", f"writer-{number}", event)
            for number, event in enumerate(started)
        ]
        assert all(event.wait(20) for event in started)
        kill(platform, "kafka")
        again = platform.up()
        acknowledged = sum(writer.result() for writer in writers)
    for number in range(4):  # undecided ones of these are aborted by their next writer
        Producer(again.client() | {"transactional.id": f"writer-{number}"}).init_transactions(30)
    deadline = time.monotonic() + 20
    while (end := ends(again, "decided", "read_uncommitted")) != ends(again, "decided", "read_committed"):
        assert time.monotonic() < deadline, "a transaction stays undecided"
        time.sleep(0.2)
    assert min(end) >= acknowledged


def test_committed_rows_outlive_a_killed_postgres(platform: Platform) -> None:
    settings = platform.up()
    with database(settings) as connection:
        connection.execute("create table kept (id int)")
        connection.execute("insert into kept select generate_series(1, 1000)")
    kill(platform, "postgres")
    with database(platform.up()) as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (1000,)


def test_a_crash_is_called_a_crash(platform: Platform) -> None:
    platform.up()
    kill(platform, "postgres")
    deadline = time.monotonic() + 10
    while platform.status()[1].state == "running" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [one.state for one in platform.status()] == ["running", "crashed"]


def test_a_lost_or_lying_record_does_not_matter(platform: Platform) -> None:
    platform.up()
    before = pids(platform)
    (platform.data / "kafka" / "process.json").unlink()
    lie = {"pid": os.getpid(), "create_time": psutil.Process().create_time(), "command": ["x"]}
    (platform.data / "postgres" / "process.json").write_text(json.dumps(lie))
    platform.up()
    assert pids(platform) == before


def test_another_port_is_refused_while_it_runs(platform: Platform) -> None:
    platform.up()
    with pytest.raises(SettingsError, match="kafka is already running on port"):
        Platform(platform.data, kafka_port=1999, services=("kafka",)).up()
    platform.up()


def test_the_commands(platform: Platform) -> None:
    assert command(platform, "up").exit_code == 0
    shown = command(platform, "status", "--json")
    assert shown.exit_code == 0
    assert [one["state"] for one in json.loads(shown.stdout)["services"]] == ["running"] * 2
    assert "Kafka Server started" in command(platform, "logs", "kafka").stdout
    assert isinstance(command(platform, "logs", "oracle").exception, SettingsError)


def test_down_leaves_nothing_running_and_keeps_the_data(platform: Platform) -> None:
    settings = platform.up()
    make_topic(settings, "stays")
    assert send(settings, "stays", 1000) == 1000
    before = pids(platform)
    children = [child.pid for child in psutil.Process(before["postgres"]).children(recursive=True)]
    assert command(platform, "down").exit_code == 0
    assert not any(runs(pid) for pid in (*before.values(), *children) if pid)
    assert command(platform, "status").exit_code == NOT_RUNNING
    assert [one.state for one in platform.status()] == ["stopped", "stopped"]
    assert not (platform.data / ENDPOINTS).exists()
    assert len(stored(platform.up(), "stays")) == 1000


def test_fresh_starts_empty(platform: Platform) -> None:
    (platform.data / "notes.txt").write_text("not penstock's own")
    make_topic(platform.up(), "goes")
    settings = platform.up(fresh=True)
    assert AdminClient(settings.client()).list_topics(timeout=10).topics == {}
    with database(settings) as connection:
        assert connection.execute("select to_regclass('kept')").fetchone() == (None,)
    assert (platform.data / "notes.txt").exists()


@pytest.mark.parametrize("patience", [0.3, 1.0])
def test_an_up_that_is_killed_half_way_is_taken_up_again(tmp_path: Path, patience: float) -> None:
    platform = Platform(tmp_path / "data")
    program = "import sys, pathlib, penstock.local as l; l.Platform(pathlib.Path(sys.argv[1])).up()"
    with subprocess.Popen([sys.executable, "-c", program, str(platform.data)]) as started:
        time.sleep(patience)
        started.kill()
    try:
        with database(platform.up()) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
    finally:
        before = pids(platform)
        platform.down()
    assert not any(runs(pid) for pid in before.values() if pid)


def test_a_broker_that_can_not_start_says_why(tmp_path: Path) -> None:
    platform = Platform(tmp_path / "data", services=("kafka",))
    (platform.data / "kafka" / "data").mkdir(parents=True)
    (platform.data / "penstock-data").touch()
    with pytest.raises(
        ServiceError, match=r"(?s)kafka ended while starting; its last lines:.*meta.properties"
    ):
        platform.up()
    assert platform.status()[0].state == "crashed"


def test_running_cleans_up_after_itself() -> None:
    with running(services=("postgres",)) as settings, database(settings) as connection:
        found = connection.execute("select current_user, current_database()").fetchone()
        assert found == ("penstock", "penstock")
    assert not settings.data.exists()
