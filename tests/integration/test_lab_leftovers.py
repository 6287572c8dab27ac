"""A run that nobody could tidy up is removed by the next lab: what it had, and nothing of anybody else's."""

import json
import time

import psycopg
import pytest

from penstock.capture.replication import Replication
from penstock.lab.experiment import Experiment
from penstock.lab.leftovers import sweep
from penstock.lab.removal import remove_slot
from penstock.lab.run import Run
from penstock.log import Broker

EXPERIMENT = Experiment("one", "One", "?", (), (), "", "log.md", print)


@pytest.fixture
def connection(settings):
    with psycopg.connect(settings.dsn().value, autocommit=True) as made:
        yield made


@pytest.fixture
def held_slot(settings, connection):
    """A slot that somebody reads, and its publication."""
    name = f"lab_held_{time.time_ns()}"
    connection.execute(f"CREATE PUBLICATION {name}")
    reader = Replication(settings.dsn(), name)
    reader.start(name, name, reader.create(name).begins)
    yield name
    reader._connection.close()


def slots(connection, name):
    return connection.execute(
        "SELECT slot_name FROM pg_replication_slots WHERE slot_name = %s"
        " UNION ALL SELECT pubname FROM pg_publication WHERE pubname = %s",
        [name, name],
    ).fetchall()


def schemas(connection, name):
    return connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [name]).fetchall()


def test_a_slot_is_dropped_although_somebody_reads_it(settings, connection, held_slot):
    assert len(slots(connection, held_slot)) == 2
    remove_slot(settings, held_slot, held_slot)
    assert slots(connection, held_slot) == []
    remove_slot(settings, held_slot, held_slot)  # what is not there is no error


def abandon(run):
    """Let it be the run of a lab that has ended."""
    noted = json.loads(run.manifest.path.read_text())
    noted["lab"] |= {"since_boot": noted["lab"]["since_boot"] - 1, "started": 0.0}
    run.manifest.path.write_text(json.dumps(noted))


def test_a_lab_that_was_killed_leaves_nothing(settings, connection, held_slot):
    broker, run, other = (
        Broker(settings),
        Run(EXPERIMENT, settings, {}),
        Run(EXPERIMENT, settings, {}),
    )
    topics = [run.name("a"), f"_penstock.{run.namespace}.ledger.a.b"]
    for each in (run, other):
        each.claim()
        connection.execute(f"CREATE SCHEMA {each.schema()}")
        broker.create(each.name("a"), 1, -1, {})
    broker.create(topics[1], 1, -1, {})
    run.slot(held_slot, held_slot)
    folder = run.folder()
    abandon(run)
    said = []
    sweep(settings, said.append)
    assert said == [f"run {run.id} of an earlier lab: what it had left is removed"]
    assert not set(topics) & set(broker.topics())
    assert slots(connection, held_slot) == schemas(connection, f"lab_{run.id}") == []
    assert not folder.exists()
    assert broker.exists(other.name("a"))
    assert schemas(connection, f"lab_{other.id}")
    other.close()
    assert not broker.exists(other.name("a"))
    assert not schemas(connection, f"lab_{other.id}")
    assert not other.manifest.path.exists()
