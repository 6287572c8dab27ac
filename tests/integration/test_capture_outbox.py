"""An outbox at the edges: kills in its first snapshot, lost slots, tables and topics that were made again."""

import threading
import time
from dataclasses import replace

import pytest
from tests.capture.process import CaptureProcess
from tests.capture.running import records

from penstock.capture import Outbox, Store, batch_writer
from penstock.errors import CaptureError, ChangesLostError
from penstock.log import Broker
from penstock.testing import PointListener

BEFORE, AFTER = "capture.before-commit", "capture.after-commit"
HELP = "capture remove.*delete the topics"


@pytest.fixture
def outbox(database, unique):
    return OutboxTable(database, f"events-{unique}")


class OutboxTable:
    """A table of numbered events, and the capture of it."""

    def __init__(self, database, topic):
        self.database, self.topic, self.settings = database, topic, database.settings
        self.path = f"{database.schema}.o"

    def create(self, key="primary key"):
        self.database.execute(
            f"create table o (id int {key}, aggregatetype text, aggregateid text, type text, payload jsonb)"
        )
        self.database.execute("alter table o replica identity full")

    def capture(self, *tables, **more):
        return self.database.capture(*tables, outbox=Outbox(self.path), **more)

    def add(self, *numbers):
        self.database.execute(
            "insert into o select i, %s, 'k', 'new', to_jsonb(i) from unnest(%s::int[]) i",
            [self.topic, list(numbers)],
        )

    def is_published(self, capture):
        found = self.database.execute(
            "select 1 from pg_publication_tables where pubname = %s and schemaname || '.' || tablename = %s",
            [capture.publication_name(""), self.path],
        )
        return found.fetchone() is not None

    def events(self):
        return [each.value for each in records(self.settings, self.topic)]

    def killed(self, capture, folder, point, times):
        """Run the capture as a process, and kill it when it comes to a point so often."""
        passed = []
        with PointListener(lambda at, _: passed.append(at) or passed.count(point) >= times) as points:
            process = CaptureProcess(self.settings, capture.name, folder, "--chunk", "300", points=points)
            process.start()
            deadline = time.monotonic() + 60
            while passed.count(point) < times and process.is_alive and time.monotonic() < deadline:
                time.sleep(0.05)
            process.kill()
        assert passed.count(point) == times, process.log.read_text()


@pytest.mark.parametrize("key", ["primary key", pytest.param("", marks=pytest.mark.long)])
def test_killed_in_the_first_snapshot_it_loses_and_doubles_no_event(outbox, tmp_path, key):
    outbox.create(key)
    outbox.add(*range(2000, 6000, 2))
    capture = outbox.capture()
    outbox.killed(capture, tmp_path, BEFORE, 4 if key else 2)
    assert Store(outbox.settings).position(capture.name).pending
    outbox.add(1, 2, 2001, 5001, 6001)  # before and behind the key that it had come to
    outbox.add(5003)
    outbox.database.execute("delete from o where id in (1, 5003)")
    outbox.database.execute("update o set type = 'sent' where id in (2, 2000, 5001, 5998)")
    outbox.killed(capture, tmp_path, BEFORE, 3 if key else 1)
    outbox.add(3, 2003, 3003, 5005, 6003)
    stopped, added = threading.Event(), []

    def keep_adding():
        for number in range(6005, 10_000, 2):
            if stopped.is_set():
                return
            outbox.add(number, -number)
            added.extend((number, -number))

    writer = threading.Thread(target=keep_adding)
    writer.start()
    try:
        time.sleep(0.5)
        with outbox.database.running(capture, chunk=300):
            stopped.set()
            writer.join()
    finally:
        stopped.set()
    expected = [*range(2000, 6000, 2), 1, 2, 2001, 5001, 6001, 5003, 3, 2003, 3003, 5005, 6003, *added]
    events = outbox.events()
    assert sorted(events) == sorted(expected)
    first = events[:2000] if key else sorted(events[:2000])  # without a key, they come as the table has them
    assert first == list(range(2000, 6000, 2)), "those before the stream come first"
    assert events[2000:] == expected[2000:]


def test_a_position_of_before_goes_on_with_its_snapshot(outbox, tmp_path):
    outbox.create()
    outbox.add(*range(2000, 3000))
    capture = outbox.capture()
    outbox.killed(capture, tmp_path, BEFORE, 3)
    _rewrite(outbox, capture, begins=0)
    outbox.add(1)
    with outbox.database.running(capture):
        outbox.add(2)
    assert outbox.events() == [*range(2000, 3000), 1, 2]


def _rewrite(outbox, capture, **changes):
    """Write the position as earlier code had it."""
    from penstock.capture.output import Output

    output = Output(outbox.settings, capture, None, lambda _: None)
    position = output.position()
    known = position.tables[outbox.path]
    output.write([], position.with_table(outbox.path, replace(known, **changes)))
    output.close()


@pytest.mark.parametrize("snapshot", ["initial", "when-needed"])
def test_without_its_slot_events_are_lost_and_that_is_said(outbox, snapshot):
    outbox.create()
    outbox.add(1)
    capture = outbox.capture(snapshot=snapshot)
    with outbox.database.running(capture):
        pass
    outbox.database.execute("select pg_drop_replication_slot(%s)", [capture.slot_name("")])
    outbox.add(2)
    for again in (False, True):
        refused = pytest.raises(ChangesLostError, match=f"(?s){HELP}")
        with refused as said, outbox.database.running(capture, snapshot_again=again):
            pass
        assert "--snapshot-again" not in str(said.value)
    assert outbox.events() == [1]


def test_tables_beside_an_outbox_are_read_again_and_no_event_is_lost(outbox):
    outbox.create()
    outbox.add(1)
    outbox.database.execute("create table t (id int primary key)")
    outbox.database.execute("create table bare (id int)")
    outbox.database.execute("insert into t values (1), (2)")
    outbox.database.execute("insert into bare values (1)")
    capture = outbox.capture("t", "bare")
    with outbox.database.running(capture):
        pass
    outbox.add(2)
    broker, topic = Broker(outbox.settings), capture.topic(f"{outbox.database.schema}.t")
    broker.delete(topic)
    with outbox.database.running(capture, snapshot_again=True):
        outbox.add(3)
    assert outbox.events() == [1, 2, 3]
    assert [each.after["id"] for each in outbox.database.records(capture, "t")] == [1, 2]
    assert [each.after["id"] for each in outbox.database.records(capture, "bare")] == [1, 1]


@pytest.mark.parametrize("what", ["made again", "not published"])
def test_an_outbox_that_was_away_for_a_while_is_refused(outbox, what):
    outbox.create()
    outbox.add(1)
    capture = outbox.capture()
    with outbox.database.running(capture):
        pass
    if what == "made again":
        outbox.database.execute("drop table o")
        outbox.create()
    else:
        name = capture.publication_name("")
        outbox.database.execute(f"alter publication {name} drop table {outbox.path}")
    outbox.add(2)
    with pytest.raises(ChangesLostError, match=f"(?s){HELP}"), outbox.database.running(capture):
        pass
    assert outbox.events() == [1]


@pytest.mark.parametrize("snapshot", ["initial", pytest.param("never", marks=pytest.mark.long)])
def test_killed_before_it_is_published_an_outbox_that_is_added_is_read(outbox, tmp_path, snapshot):
    outbox.create()
    outbox.add(1)
    outbox.database.execute("create table t (id int primary key)")
    with outbox.database.running(outbox.database.capture("t", snapshot=snapshot)):
        pass
    capture = outbox.capture("t", snapshot=snapshot)
    outbox.killed(capture, tmp_path, AFTER, 1)
    assert outbox.path in Store(outbox.settings).position(capture.name).tables
    with outbox.database.running(capture):
        while not outbox.is_published(capture):
            time.sleep(0.05)
        outbox.add(2)
    assert outbox.events() == ([1, 2] if snapshot == "initial" else [2])


def test_another_type_of_its_key_sends_no_event_again(outbox):
    outbox.create()
    outbox.add(1)
    capture = outbox.capture()
    with outbox.database.running(capture):
        outbox.database.execute("alter table o alter column id type bigint")
        outbox.add(2)
    with outbox.database.running(capture):
        outbox.add(3)
    assert outbox.events() == [1, 2, 3]


def test_an_event_topic_that_was_made_again_is_noticed(outbox):
    outbox.create()
    outbox.add(1)
    capture = outbox.capture()
    with outbox.database.running(capture):
        pass
    broker = Broker(outbox.settings)
    broker.delete(outbox.topic)
    with outbox.database.running(capture):
        pass  # one that is gone is none that events are written to
    outbox.add(2)
    for _ in range(2):
        refused = pytest.raises(CaptureError, match=f"(?s)deleted and made again.*{HELP}")
        with refused, outbox.database.running(capture):
            pass
    assert outbox.events() == []


def test_an_event_topic_with_more_partitions_is_noticed(outbox, monkeypatch):
    monkeypatch.setattr(batch_writer, "_LOOK_AT_TOPICS", 0.5)
    outbox.create()
    broker = Broker(outbox.settings)
    broker.create(outbox.topic, 2, -1, {})
    outbox.add(1)
    capture = outbox.capture()
    with outbox.database.running(capture):
        pass

    def run(grow=False):
        with outbox.database.running(capture):
            if grow:
                broker.grow(outbox.topic, 3)
                time.sleep(3)

    for grow in (True, False):
        with pytest.raises(CaptureError, match="has 3 partitions, it had 2"):
            run(grow)


def test_a_large_event_is_written(outbox):
    outbox.create()
    capture = outbox.capture()
    with outbox.database.running(capture):
        outbox.database.execute(
            "insert into o select 1, %s, 'k', 'new', to_jsonb(string_agg(md5(i::text), '')) "
            "from generate_series(1, 100000) i",
            [outbox.topic],
        )
    assert [len(each) for each in outbox.events()] == [3_200_000]
