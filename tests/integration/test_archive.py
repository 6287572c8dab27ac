"""Archives on a real broker: what is read across the boundary is the log as it was."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import confluent_kafka
import pytest
from tests.integration.archived import (
    archived_in_a_bucket,
    make_archive,
    make_topic,
    move,
    produce,
    rows,
)
from typer.testing import CliRunner

from penstock.archive import Archiver, ArchiveRunner, add, check
from penstock.archive.compaction import MOST
from penstock.archive.status import status
from penstock.cli.main import app
from penstock.errors import ArchiveError, FencedError, LogError, StorageError, TopicError
from penstock.events import Event
from penstock.log import (
    Broker,
    Consumer,
    Groups,
    Producer,
    Topic,
    apply,
    from_beginning,
    from_offsets,
    from_time,
)
from penstock.log.archive.declarations import Declarations
from penstock.log.archive.history import History, find_history
from penstock.log.tail import tail
from penstock.testing import PointListener
from penstock.testing.sink_contract import Crash, crash_at

POINTS = [
    f"archive.{each}" for each in ("read", "fenced", "temporary", "published", "noted", "verified", "deleted")
]


@dataclass(frozen=True)
class Step(Event):
    key: str
    number: int
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def topic(settings, unique):
    make_topic(settings, unique)
    return unique


@pytest.fixture
def steps(settings, unique):
    made = Topic(unique, Step, key="key", partitions=2, retention="forever")
    apply([made], Broker(settings))
    return made


def send(settings, topic, numbers):
    with Producer(settings) as producer:
        producer.send_all(topic, [Step(f"k{number % 10}", number) for number in numbers])


def reader(settings, topic, **how):
    return Consumer(topic, settings, kafka={"fetch.wait.max.ms": 10}, **how)


def numbers(consumer):
    return sorted(record.event.number for record in consumer.records(idle="600 ms"))


def kafka_has(settings, topic):
    return {number: end - first for number, (first, end) in Broker(settings).offsets(topic).items()}


def files(archive, kind="*.parquet"):
    return sorted(Path(archive.address).rglob(kind))


def test_what_is_read_from_anywhere_is_the_log_as_it_was(settings, topic, tmp_path):
    produce(settings, topic, 400)
    archive = make_archive(settings, topic, tmp_path)
    before = rows(settings, topic, archived=False)
    moved = move(settings, topic)
    assert moved.records == sum(map(len, before.values()))
    assert set(kafka_has(settings, topic).values()) == {0}
    produce(settings, topic, 90, seed=1)
    later = rows(settings, topic, archived=False)
    whole = {number: before[number] + later[number] for number in before}
    assert rows(settings, topic) == whole
    Declarations(settings).put(replace(archive, keep="1 hour"))
    move(settings, topic)  # now some is in both
    assert rows(settings, topic) == whole
    chance = random.Random(7)
    ends = Broker(settings).committed_end(topic)
    for _ in range(8):
        start = {number: chance.randint(0, ends[number]) for number in (0, 1)}
        expected = {n: [row for row in whole[n] if row.offset >= start.get(n, 0)] for n in whole}
        assert rows(settings, topic, start) == expected
    assert all(each.ok for each in check(topic, settings))
    assert sum(each.checksum.count for each in check(topic, settings)) == sum(map(len, whole.values()))
    assert len(files(archive)) == len(files(archive, "0*.json")) > 10


def test_a_consumer_seeks_starts_and_tails_across_the_boundary(settings, steps, tmp_path):
    send(settings, steps, range(200))
    time.sleep(0.05)
    middle = datetime.now(UTC)
    time.sleep(0.05)
    send(settings, steps, range(200, 300))
    make_archive(settings, steps.name, tmp_path)
    move(settings, steps.name)
    send(settings, steps, range(300, 350))
    with reader(settings, steps) as consumer:
        assert numbers(consumer) == list(range(350))
        for partition in consumer.assignment:
            consumer.seek(partition, 0)
        assert numbers(consumer) == list(range(350))
    with reader(settings, steps) as consumer:
        consumer.seek(0, 100)  # before anything was read
        assert len(numbers(consumer)) == 250
    with reader(settings, steps, start=from_time(middle)) as consumer:
        assert numbers(consumer) == list(range(200, 350))
    with reader(settings, steps, start=from_offsets({0: 10, 1: 10})) as consumer:
        assert len(numbers(consumer)) == 330
    assert len(list(tail(steps.name, settings, beginning=True, limit=350))) == 350
    later = tail(steps.name, settings, since=middle, limit=150)
    assert len({(each["partition"], each["offset"]) for each in later}) == 150


def test_a_group_goes_on_in_the_archive_where_it_stood(settings, steps, tmp_path):
    group = f"{steps.name}.group"
    send(settings, steps, range(300))
    with reader(settings, steps, group=group) as consumer:
        first = []
        for record in consumer.records(idle="1 second"):
            first.append(record.event.number)
            if len(first) == 100:
                break
    make_archive(settings, steps.name, tmp_path)
    move(settings, steps.name)
    send(settings, steps, range(300, 330))
    with reader(settings, steps, group=group) as consumer:
        assert sorted(first[:-1] + numbers(consumer)) == list(range(330))
    assert sum(each.events for each in Groups(settings).lag(group)) == 0
    Groups(settings).reset(group, steps.name, from_beginning(), dry_run=False)
    assert sum(each.events for each in Groups(settings).lag(group)) == 330
    with reader(settings, steps, group=group) as consumer:
        assert numbers(consumer) == list(range(330))


def test_a_slow_reader_does_not_notice_that_the_boundary_moves(settings, steps, tmp_path):
    send(settings, steps, range(3000))
    make_archive(settings, steps.name, tmp_path, records=100)
    mover = threading.Thread(target=lambda: [move(settings, steps.name) for _ in range(2)])
    with Consumer(
        steps, settings, kafka={"queued.max.messages.kbytes": 1, "fetch.message.max.bytes": 1000}
    ) as consumer:
        seen = {0: [], 1: []}
        for record in consumer.records(idle="2 seconds"):
            seen[record.partition].append((record.offset, record.event.number))
            if len(seen[0]) + len(seen[1]) == 100:
                mover.start()
            time.sleep(0.0005)
    mover.join()
    assert set(kafka_has(settings, steps.name).values()) == {0}
    assert all(each == sorted(set(each)) for each in seen.values())
    assert sorted(number for each in seen.values() for _, number in each) == list(range(3000))


def read_into(seen, consumer):
    for record in consumer.records(idle="600 ms"):
        seen.append(record.event.number)


def test_a_disk_that_is_gone_for_a_while_loses_nothing(settings, steps, tmp_path):
    send(settings, steps, range(300))
    make_archive(settings, steps.name, tmp_path / "archive")
    move(settings, steps.name)
    send(settings, steps, range(300, 400))
    seen = []
    with reader(settings, steps) as consumer:
        for record in consumer.records(idle="600 ms"):
            seen.append(record.event.number)
            if len(seen) == 150:
                (tmp_path / "archive").rename(tmp_path / "gone")
                break
        for _ in range(2):
            with pytest.raises(StorageError, match="is not there; is the disk mounted"):
                read_into(seen, consumer)
        (tmp_path / "gone").rename(tmp_path / "archive")
        seen += numbers(consumer)
    assert sorted(set(seen)) == list(range(400))
    assert len(seen) == 401  # the one at which the loop was left is read again


def test_records_that_nobody_has_are_an_error_and_not_a_jump(settings, steps, tmp_path):
    send(settings, steps, range(200))
    archive = make_archive(settings, steps.name, tmp_path)
    move(settings, steps.name)
    files(archive)[1].unlink()
    send(settings, steps, range(200, 220))
    with (
        reader(settings, steps) as consumer,
        pytest.raises(LogError, match="where the log no longer is"),
    ):
        numbers(consumer)
    holes = [each for checked in check(steps.name, settings) for each in checked.findings]
    assert [(each.kind, each.partition, each.first, each.next) for each in holes] == [("hole", 0, 40, 80)]


class Archivers:
    """Processes that archive a topic once, one after the other, and pass crash points on their way."""

    def __init__(self, settings, topic, decide):
        self.points, self._topic = PointListener(decide), topic
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        environment |= settings.environment() | self.points.environment
        command = [sys.executable, str(Path(__file__).with_name("archive_worker.py"))]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, env=environment, text=True, **pipes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self.points.close()

    def start(self):
        self._process.stdin.write(f"{self._topic}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def kill(self, number):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        assert self._process.stdout.readline() == "ended\n"


def test_killed_at_any_point_it_leaves_the_log_whole(settings, topic, tmp_path):
    archive, wanted, held = make_archive(settings, topic, tmp_path), [""], threading.Event()
    whole = rows(settings, topic)
    with Archivers(settings, topic, lambda at, _: at == wanted[0] and (held.set() or True)) as archivers:
        for number, wanted[0] in enumerate(POINTS):
            produce(settings, topic, 100, seed=number, transactions=number % 3 == 0)
            before, whole = whole, rows(settings, topic)
            assert all(whole[each][: len(before[each])] == before[each] for each in whole), wanted
            process = archivers.start()
            assert held.wait(60), wanted
            archivers.kill(process)
            held.clear()
            assert rows(settings, topic) == whole, wanted
    move(settings, topic)
    assert rows(settings, topic) == whole
    assert set(kafka_has(settings, topic).values()) == {0}
    assert files(archive, "*.tmp") == []
    assert all(each.ok and not each.findings for each in check(topic, settings))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_at_random_moments_it_leaves_the_log_whole(settings, topic, tmp_path):
    archive, chance = make_archive(settings, topic, tmp_path, records=25), random.Random(3)
    with Archivers(settings, topic, lambda *_: False) as archivers:
        for number in range(40):
            produce(settings, topic, 150, seed=number)
            before, passed = rows(settings, topic), archivers.points.passed.total()
            process = archivers.start()
            until(lambda passed=passed: archivers.points.passed.total() > passed)
            time.sleep(chance.uniform(0, 0.8))
            archivers.kill(process)
            assert rows(settings, topic) == before
    move(settings, topic)
    assert rows(settings, topic) == before
    assert files(archive, "*.tmp") == []
    assert all(each.ok and not each.findings for each in check(topic, settings))


def until(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_of_two_archivers_the_later_one_goes_on(settings, topic, tmp_path):
    produce(settings, topic, 100)
    before = rows(settings, topic)
    archive = make_archive(settings, topic, tmp_path)
    first, second = Archiver(archive, settings), Archiver(archive, settings)
    with pytest.raises(FencedError, match="another process archives"):
        first.run_once()
    second.run_once()
    assert rows(settings, topic) == before
    assert all(not each.findings for each in check(topic, settings))


def test_what_two_segments_hold_is_read_once(settings, topic, tmp_path):
    produce(settings, topic, 200)
    before = rows(settings, topic)
    archive = replace(make_archive(settings, topic, tmp_path / "one", records=30), keep="1 hour")
    Archiver(archive, settings).run_once()
    other = replace(archive, to=str(tmp_path / "two"), records=70)
    Path(other.address).mkdir(parents=True)
    Archiver(other, settings).run_once()
    for each in files(other, "0*"):  # as a process that was taken for dead might have left them
        target = Path(archive.address) / each.relative_to(other.address)
        target.exists() or target.write_bytes(each.read_bytes())
    Archiver(replace(archive, keep="0 seconds"), settings).run_once()
    assert set(kafka_has(settings, topic).values()) == {0}
    assert rows(settings, topic) == before
    found = check(topic, settings)
    assert all(each.ok for each in found)
    assert sum(each.checksum.count for each in found) == sum(map(len, before.values()))


def crash(monkeypatch, point, work):
    with monkeypatch.context() as patched:
        crash_at(patched, point)
        with pytest.raises(Crash):
            work()


@pytest.mark.long
def test_small_segments_are_merged_and_removed_later(settings, topic, tmp_path, monkeypatch):
    archive = make_archive(settings, topic, tmp_path, records=1_000, every="1 second")
    for number in range(MOST + 1):
        produce(settings, topic, 6, seed=number, transactions=False)
        if number == MOST:
            crash(monkeypatch, "archive.deleted", lambda: move(settings, topic))
        else:
            assert move(settings, topic).merged == 0
    before, sums = rows(settings, topic), [each.checksum for each in check(topic, settings)]
    crash(monkeypatch, "archive.published", lambda: move(settings, topic))  # it lacks its manifest
    assert rows(settings, topic) == before
    assert move(settings, topic).merged == MOST + 1  # of the other partition
    assert rows(settings, topic) == before
    later = datetime.now(UTC) + timedelta(days=2)
    crash(monkeypatch, "archive.removing", lambda: Archiver(archive, settings).run_once(later))
    assert rows(settings, topic) == before
    Archiver(archive, settings).run_once(later)
    assert len(files(archive, "*.parquet")) == len(files(archive, "0*.json")) == 2
    assert rows(settings, topic) == before
    found = check(topic, settings)
    assert all(each.ok and not each.findings for each in found)
    assert [each.checksum for each in found] == sums


def test_a_damaged_segment_is_found_and_keeps_kafka_from_being_deleted(
    settings, topic, tmp_path, monkeypatch
):
    produce(settings, topic, 200)
    before = rows(settings, topic)
    archive = make_archive(settings, topic, tmp_path, keep="1 hour")
    move(settings, topic)
    damaged = files(archive)[2]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3] ^= 1
    damaged.write_bytes(content)
    findings = [each for checked in check(topic, settings) for each in checked.findings]
    assert {(each.kind, each.partition) for each in findings} == {("damaged", 0)}
    assert all(damaged.name in each.what for each in findings)
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    shown = CliRunner().invoke(app, ["archive", "check", topic, "--json"])
    assert (shown.exit_code, [each["ok"] for each in json.loads(shown.stdout)]) == (65, [False, True, True])
    with pytest.raises(ArchiveError, match="damaged, and Kafka keeps its records"):
        Archiver(replace(archive, keep="0 seconds"), settings).run_once()
    first, following = (int(part) for part in damaged.stem.split("-"))
    assert Broker(settings).offsets(topic)[0][0] <= first
    damaged.unlink()
    damaged.with_suffix(".json").unlink()
    moved = Archiver(replace(archive, keep="0 seconds"), settings).run_once()
    assert moved.records == len([row for row in before[0] if first <= row.offset < following])
    assert rows(settings, topic) == before
    assert all(each.ok for each in check(topic, settings))


def test_a_topic_that_was_made_again_is_kept_apart(settings, topic, tmp_path):
    produce(settings, topic, 50)
    archive = make_archive(settings, topic, tmp_path)
    archiver = Archiver(archive, settings)
    archiver.run_once()
    old = files(archive)
    Broker(settings).delete(topic)
    make_topic(settings, topic)
    produce(settings, topic, 30)
    with pytest.raises(TopicError, match="was deleted and made again"):
        archiver.run_once()
    with pytest.raises(ArchiveError, match="was deleted and made again"):
        check(topic, settings)
    assert find_history(settings, topic) is None
    before = rows(settings, topic)
    again = make_archive(settings, topic, tmp_path)
    assert again.address != archive.address
    move(settings, topic)
    assert rows(settings, topic) == before
    assert files(archive) == old


def test_partitions_that_come_later_are_archived_from_their_beginning(settings, unique, tmp_path):
    make_topic(settings, unique, partitions=2)
    produce(settings, unique, 60)
    make_archive(settings, unique, tmp_path)
    move(settings, unique)
    Broker(settings).grow(unique, 4)
    with Producer(settings) as producer:
        for number in range(20):
            producer.send_bytes(unique, None, b"new", partition=2 + number % 2)
    before = rows(settings, unique)
    move(settings, unique)
    assert set(kafka_has(settings, unique).values()) == {0}
    assert rows(settings, unique) == before
    assert [len(before[number]) for number in (2, 3)] == [10, 10]


def test_an_open_transaction_is_archived_when_it_is_decided(settings, topic, tmp_path):
    with Producer(settings) as producer:
        producer.send_bytes(topic, b"a", b"1", partition=0)
    client = confluent_kafka.Producer({**settings.client(), "transactional.id": topic})
    client.init_transactions(10)
    client.begin_transaction()
    client.produce(topic, b"2", b"b", partition=0)
    client.flush(10)
    make_archive(settings, topic, tmp_path)
    assert move(settings, topic).records == 1
    client.commit_transaction(10)
    assert move(settings, topic).records == 1
    assert [row.value for row in rows(settings, topic)[0]] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"retention.ms": "60000"}, "before they are archived: retention.ms=60000"),
        ({"retention.ms": "-1", "retention.bytes": "1000000"}, "retention.bytes=1000000"),
        ({"cleanup.policy": "compact"}, "it is a table"),
    ],
)
def test_a_topic_that_could_lose_something_is_refused(settings, unique, tmp_path, config, said):
    Broker(settings).ensure(unique, 1, config)
    with pytest.raises(ArchiveError, match=said):
        add(unique, str(tmp_path), settings)
    assert Declarations(settings).find(unique) is None


def test_an_archive_is_added_once_and_changed_by_update(settings, unique, tmp_path):
    Broker(settings).ensure(unique, 1, {})
    add(unique, str(tmp_path), settings, retention_forever=True)
    assert Broker(settings).topic(unique).config["retention.ms"] == "-1"
    with pytest.raises(ArchiveError, match="has an archive already"):
        add(unique, str(tmp_path), settings)
    with pytest.raises(ArchiveError, match="is archived in"):
        add(unique, str(tmp_path / "other"), settings)
    assert add(unique, str(tmp_path), settings, keep="3 days", update=True).keep == "3 days"
    assert status(settings, unique).keep == "3 days"


def test_an_archive_that_was_removed_and_added_again_goes_on(settings, topic, tmp_path):
    produce(settings, topic, 100, transactions=False)
    before = rows(settings, topic)
    make_archive(settings, topic, tmp_path)
    move(settings, topic)
    Declarations(settings).remove(topic)
    assert rows(settings, topic) == {0: [], 1: [], 2: []}
    add(topic, str(tmp_path), settings, every="1 hour")
    assert rows(settings, topic) == before
    checked = check(topic, settings)
    assert all(each.ok for each in checked)
    assert sum(each.checksum.count for each in checked) == 100


def test_records_that_kafka_lost_before_are_an_error_until_they_are_accepted(settings, topic, tmp_path):
    produce(settings, topic, 100)
    make_archive(settings, topic, tmp_path, keep="1 hour")
    move(settings, topic)
    produce(settings, topic, 100, seed=1)
    reached = History.open(Declarations(settings).get(topic), settings).end(0)
    Broker(settings).delete_records(topic, {0: reached + 10})
    with pytest.raises(ArchiveError, match=rf"offsets {reached} to {reached + 9} of .* were deleted"):
        ArchiveRunner(settings, [topic]).run(once=True)
    assert status(settings, topic).state == "failed"
    ArchiveRunner(settings, [topic], skip_lost=True).run(once=True)
    ArchiveRunner(settings, [topic]).run(once=True)
    [finding] = [each for checked in check(topic, settings) for each in checked.findings]
    assert (finding.kind, finding.first, finding.next) == ("note", reached, reached + 10)


def test_what_a_flow_has_not_read_stays_in_kafka(settings, topic, tmp_path):
    produce(settings, topic, 200)
    before = rows(settings, topic)
    make_archive(settings, topic, tmp_path)
    Groups(settings).place(f"penstock.shop.{topic}", {topic: {0: 50}})
    move(settings, topic)
    first = {number: each[0] for number, each in Broker(settings).offsets(topic).items()}
    assert first[0] <= 50
    assert first[1] > 50
    assert rows(settings, topic) == before
    Groups(settings).delete(f"penstock.shop.{topic}")
    move(settings, topic)
    assert set(kafka_has(settings, topic).values()) == {0}


def test_the_runner_archives_until_it_is_stopped(settings, topic, tmp_path):
    produce(settings, topic, 50, transactions=False)
    archive = make_archive(settings, topic, tmp_path)
    Declarations(settings).put(replace(archive, every="1 second"))
    stopped, lines = threading.Event(), []
    runner = ArchiveRunner(settings, [topic], stopped, log=lines.append)
    thread = threading.Thread(target=runner.run)
    thread.start()
    deadline = time.monotonic() + 30
    while "archived" not in " ".join(lines) and time.monotonic() < deadline:
        time.sleep(0.05)
    produce(settings, topic, 50, seed=1)
    while status(settings, topic).behind and time.monotonic() < deadline:
        time.sleep(0.05)
    stopped.set()
    thread.join(20)
    assert not thread.is_alive()
    assert (status(settings, topic).state, status(settings, topic).behind) == ("stopped", 0)


def test_an_archive_in_a_bucket(settings, topic, tmp_path):
    produce(settings, topic, 150)
    before = rows(settings, topic)
    with archived_in_a_bucket(settings, topic) as with_s3:
        move(with_s3, topic)
        assert set(kafka_has(settings, topic).values()) == {0}
        assert rows(with_s3, topic) == before
        assert all(each.ok for each in check(topic, with_s3))
        start = {0: 20, 1: 61}
        expected = {n: [row for row in before[n] if row.offset >= start.get(n, 0)] for n in before}
        assert rows(with_s3, topic, start) == expected
