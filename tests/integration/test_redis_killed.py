"""Redis on this machine as a service, and what is left of writes when it is killed in the midst of them."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from tests.integration.redis_server import require_redis
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.errors import LedgerError, PenstockError, SettingsError, SetupError, SinkError, TargetError
from penstock.local import Platform, ports, services_of
from penstock.log.ledger import Entry
from penstock.settings import Secret, Settings
from penstock.targets.redis import RedisHashes
from penstock.targets.redis.client import asking, connect
from penstock.targets.redis.lane import RedisLanes
from penstock.testing.sink_contract import batch

ROWS = 200  # in a batch


@pytest.fixture
def platform(tmp_path):
    require_redis()
    made = Platform(tmp_path / "data", services=("redis",))
    yield made
    made.down()


def kill(platform):
    (status,) = platform.status()
    running = psutil.Process(status.pid)
    os.kill(status.pid, signal.SIGKILL)
    running.wait(10)


def test_it_is_started_attached_to_stopped_and_emptied(platform):
    settings = platform.up()
    with closing(connect(settings.url("redis"))) as client:
        assert client.config_get("append*")["appendfsync"] == "always"
        assert client.config_get("bind")["bind"] == "127.0.0.1"
        client.set("kept", "yes")
    assert platform.up().url("redis") == settings.url("redis")
    (status,) = platform.status()
    assert (status.state, status.name) == ("running", "redis")
    platform.down()
    assert platform.status()[0].state == "stopped"
    with closing(connect(platform.up().url("redis"))) as client:
        assert client.get("kept") == b"yes"
    kill(platform)
    assert platform.status()[0].state == "crashed"
    with closing(connect(platform.up().url("redis"))) as client:
        assert client.get("kept") == b"yes"
    with closing(connect(platform.up(fresh=True).url("redis"))) as client:
        assert client.get("kept") is None


def test_its_password_is_random_and_kept_from_others(platform):
    settings = platform.up()
    url = settings.url("redis").value
    password = url.partition(":@")[0] if ":@" in url else url.split(":")[2].split("@")[0]
    assert len(password) == 32
    assert password not in f"{settings!r} {platform!r} {platform.status()!r}"
    holding = [path for path in platform.data.rglob("*") if path.is_file() and password in read(path)]
    assert {path.name for path in holding} == {"password", "redis.conf", "endpoints.json"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in holding)
    found = psutil.Process(platform.status()[0].pid)
    assert password not in " ".join(found.cmdline())


def read(path):
    return path.read_bytes().decode(errors="replace")


def test_a_missing_program_is_named_with_its_package(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    platform = Platform(tmp_path / "data", services=("redis",))
    with pytest.raises(SetupError, match="redis-server was not found on PATH; install Redis 6 or newer"):
        platform.up()
    assert platform.status()[0].version == "not installed"
    assert services_of(platform.data) == ("kafka", "postgres")


def test_what_was_started_in_a_folder_belongs_to_it(platform):
    assert services_of(platform.data) == ("kafka", "postgres")
    assert services_of(platform.data, ["redis"]) == ("kafka", "postgres", "redis")
    platform.up()
    assert services_of(platform.data) == ("kafka", "postgres", "redis")
    with pytest.raises(SettingsError, match="no service 'oracle'"):
        services_of(platform.data, ["oracle"])


def test_the_command_line_shows_and_stops_it(platform):
    platform.up()
    folder = ["--data", str(platform.data)]
    shown = CliRunner().invoke(app, ["status", *folder])
    assert "redis" in shown.output
    assert shown.exit_code == 3, "Kafka does not run"
    assert "Ready to accept" in CliRunner().invoke(app, ["logs", "redis", *folder]).output
    assert "redis is stopped" in CliRunner().invoke(app, ["down", *folder]).output
    assert platform.status()[0].state == "stopped"
    refused = CliRunner().invoke(app, ["up", "--with", "oracle", *folder])
    assert isinstance(refused.exception, SettingsError)


def test_settings_know_a_local_redis_unless_there_is_another_of_the_name(platform, tmp_path):
    platform.up()
    local = {"PENSTOCK_DATA": str(platform.data)}
    found = Settings.load(tmp_path, local)
    assert found.url("redis").value.startswith("redis://:")
    Path(tmp_path / "penstock.toml").write_text('[connections.redis]\nurl = "redis://elsewhere:6379"\n')
    assert Settings.load(tmp_path, local).url("redis").value == "redis://elsewhere:6379"
    with pytest.raises(SettingsError, match="'shop' has no url"):
        Settings(connections={"shop": {"dsn": "x"}}).url("shop")


def lanes_of(settings, at_once=ROWS):
    layout = RedisHashes("n").layout(StructType().add("id", "integer").add("batch", "integer"))
    made = RedisLanes(settings.url("redis"), "killed", layout, timeout=30, at_once=at_once)
    made.prepare(1)
    return made


def rows_of(number, count=ROWS):
    texts = pa.array([str(number * count + place).encode() for place in range(count)], pa.binary())
    own = pa.array([str(number).encode()] * count, pa.binary())
    columns = {"key": texts, "gone": pa.nulls(count, pa.binary()), "v0": texts, "v1": own}
    return pa.RecordBatch.from_pydict(columns)


def one(number):
    return batch(number, number, number + 1)


def write_until_it_dies(settings, done):
    """Write batch after batch, as a sink does; note each that was acknowledged."""
    with suppress(PenstockError), closing(lanes_of(settings).open(0)) as lane:
        number = lane.entry.batch.number + 1 if lane.entry.batch else 0
        while True:
            lane.write([rows_of(number)], Entry(1, one(number)))
            done.append(number)
            number += 1


def held(client):
    return {int(key.partition(b":")[2]) for key in client.scan_iter("n:*", count=1000)}


def test_killed_in_the_midst_of_writes_nothing_acknowledged_is_lost_and_rows_and_ledger_agree(platform):
    """A script's writes are one transaction of the file: all of them are there afterwards, or none."""
    chance, acknowledged = random.Random(7), []
    for _ in range(6):
        settings, done = platform.up(), []
        writing = threading.Thread(target=write_until_it_dies, args=(settings, done))
        writing.start()
        writing.join(chance.uniform(0.05, 0.6))
        kill(platform)
        writing.join(30)
        acknowledged += done
        with closing(connect(platform.up().url("redis"))) as client:
            lane = lanes_of(settings).open(0)
            last = lane.entry.batch.number if lane.entry.batch else -1
            lane.close()
            assert last >= max(acknowledged, default=-1)
            assert held(client) == set(range((last + 1) * ROWS))
    assert len(acknowledged) > 20


def test_a_server_restored_to_an_older_state_has_its_ledger_with_its_rows(platform, tmp_path):
    """A flow that has gone on since is refused: its next batch does not begin where the ledger ends."""
    lanes = lanes_of(platform.up())
    write(lanes, 0)
    platform.down()
    kept = {
        path: path.read_bytes() for path in (platform.data / "redis" / "data").rglob("*") if path.is_file()
    }
    platform.up()
    write(lanes, 1)
    kill(platform)
    for path, content in kept.items():
        path.write_bytes(content)
    with closing(connect(platform.up().url("redis"))) as client:
        assert held(client) == set(range(ROWS))
    with closing(lanes.open(0)) as lane:
        assert lane.entry == Entry(1, one(0))
        with pytest.raises(LedgerError, match="--from-ledger"):
            lane.entry.is_due(one(2))


def write(lanes, number, count=ROWS):
    with closing(lanes.open(0)) as lane:
        lane.write([rows_of(number, count)], Entry(1, one(number)))


@pytest.mark.long
@pytest.mark.parametrize("at_once", [100_000, 10_000])
def test_a_lane_of_many_rows_is_written_while_redis_is_busy(platform, at_once):
    """Past its threshold, Redis answers everybody else with an error; the script goes on."""
    settings = platform.up()
    lanes, answers = lanes_of(settings, at_once), []
    with closing(connect(settings.url("redis"))) as client, closing(lanes.open(0)) as lane:
        client.config_set("busy-reply-threshold", 50)
        writing = threading.Thread(target=lane.write, args=([rows_of(0, 100_000)], Entry(1, one(0))))
        writing.start()
        while writing.is_alive():
            with suppress(PenstockError), asking("answer"):
                client.ping()
                answers.append(True)
        assert len(held(client)) == 100_000
    assert lanes.read() == (Entry(1, one(0)),)
    assert answers


def test_another_writer_that_meets_a_busy_redis_tries_again(platform):
    settings = platform.up()
    lanes = lanes_of(settings, 200_000)
    with closing(connect(settings.url("redis"))) as client:
        client.config_set("busy-reply-threshold", 1)
        writing = threading.Thread(target=write, args=(lanes, 0, 200_000))
        writing.start()
        met = None
        while writing.is_alive() and met is None:
            try:
                with asking("answer"):
                    client.get("anything")
            except SinkError as error:
                met = error
        writing.join(60)
    assert "BUSY" in str(met)
    assert lanes.read() == (Entry(1, one(0)),)


def test_a_cluster_is_refused(tmp_path):
    require_redis()
    port, bus = ports.any_free(), ports.any_free()  # the bus of a cluster is 10,000 above, if nothing is said
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(tmp_path)]
    command += ["--cluster-enabled", "yes", "--cluster-port", str(bus), "--save", ""]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not ports.is_open(port):
            assert server.poll() is None, "Redis did not start"
            time.sleep(0.05)
        with pytest.raises(TargetError, match="is a cluster"):
            lanes_of(Settings(connections={"redis": {"url": f"redis://127.0.0.1:{port}"}}))
    finally:
        server.kill()
        server.wait()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(SetupError, match=r"pip install 'penstock\[redis\]'"):
        connect(Secret("redis://localhost"))
