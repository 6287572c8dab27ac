"""Snapshots of a view: with what came after them they are the whole, and stale ones are not used."""

import os
import random
import time
from dataclasses import replace

import pytest
from tests.integration.archived import make_archive, move
from tests.integration.test_sourcing_views import folded_here, history, shown

from penstock.apps.bank.views import balances
from penstock.log import Broker, Producer, apply
from penstock.pipeline.snapshots import SnapshotStore
from penstock.process import read
from penstock.sourcing import topic_of
from penstock.sourcing.totals import count
from penstock.sourcing.view_snapshots import ViewSnapshots


@pytest.fixture
def topic(settings, unique):
    made = topic_of(f"v{unique}", "account", partitions=3)
    apply([made], Broker(settings))
    return made


def send(settings, topic, records):
    with Producer(settings) as producer:
        producer.send_all(topic, records)


def newest(snapshots, spark, settings):
    ends, id = snapshots._present(settings)
    return SnapshotStore(spark, str(snapshots.folder)).newest(snapshots.view.tag, id, ends)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_snapshot_and_its_tail_are_the_whole(settings, spark, topic, tmp_path):
    records, snapshots = history(9, events=200), ViewSnapshots(balances, topic, tmp_path)

    def check():
        whole = sorted(balances(read(spark, topic, settings)).collect())
        assert sorted(snapshots.current(spark, settings).collect()) == whole

    send(settings, topic, records[:100])
    check()  # there is none yet
    assert sum(snapshots.take(spark, settings).values()) == 100
    check()  # nothing came after it
    send(settings, topic, records[100:150])
    check()
    (first,) = (each.name for each in tmp_path.iterdir())
    for draft, age in (("old", 2 * 86_400), ("new", 0)):  # as a kill leaves them
        (tmp_path / draft).mkdir()
        os.utime(tmp_path / draft, (time.time() - age,) * 2)
    assert sum(snapshots.take(spark, settings).values()) == 150
    send(settings, topic, records[150:])
    check()
    snapshots.take(spark, settings)
    names = {each.name for each in tmp_path.iterdir()}
    assert len(names) == 3
    assert names & {first, "old", "new"} == {"new"}


@pytest.mark.long
@pytest.mark.timeout(180)
def test_the_past_is_the_same_when_its_events_are_archived(settings, spark, topic, tmp_path):
    """Brute force over the records beside the view, over an archive, both, and Kafka alone."""
    records, chance = history(12, events=150), random.Random(12)
    snapshots = ViewSnapshots(balances, topic, tmp_path / "snapshots")
    send(settings, topic, records[:100])
    snapshots.take(spark, settings)
    make_archive(settings, topic.name, tmp_path / "archive")
    move(settings, topic.name)
    assert Broker(settings).offsets(topic.name)[0][0] > 0  # Kafka has lost the beginning
    send(settings, topic, records[100:])
    rows = read(spark, topic, settings).cache()
    for at in (*(chance.choice(records).at for _ in range(3)), records[-1].at):
        until = [each for each in records if each.at <= at]
        assert shown(balances.at(rows, at)) == folded_here(until)
    assert shown(snapshots.current(spark, settings)) == folded_here(records)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_snapshot_of_another_view_or_topic_is_not_used(settings, spark, topic, tmp_path):
    send(settings, topic, history(10, events=50))
    snapshots = ViewSnapshots(balances, topic, tmp_path)
    snapshots.take(spark, settings)
    assert newest(snapshots, spark, settings) is not None
    wider = replace(balances, columns={**balances.columns, "changes": count()})
    other = replace(snapshots, view=wider)
    assert newest(other, spark, settings) is None
    assert sum(row["changes"] for row in other.current(spark, settings).collect()) == 50
    Broker(settings).delete(topic.name)
    apply([topic], Broker(settings))
    send(settings, topic, history(11, events=20))
    assert newest(snapshots, spark, settings) is None
    whole = sorted(balances(read(spark, topic, settings)).collect())
    assert sorted(snapshots.current(spark, settings).collect()) == whole
