"""One broker, one database and one Spark session for all tests of a process that need them."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from penstock.events import new_id
from penstock.local import running
from penstock.process import session
from penstock.settings import Secret, Settings
from tests import quick
from tests.capture.mariadb import MariaDatabase
from tests.capture.mongodb import MongoDatabase
from tests.capture.running import Database
from tests.mariadb_server import MariaDb, require_mariadb
from tests.mongo.server import Mongo

LONGEST = (
    "test_chaos.py",
    "test_window_flows.py",
    "test_docs.py",
    "test_changed_classes.py",
    "test_trouble.py",
    "test_recovery.py",
    "test_malformed.py",
    "test_no_false_lateness.py",
    "test_planted_bugs.py",
    "test_captured.py",
    "test_capture_docs.py",
    "test_campaign.py",
    "test_fraud.py",
    "test_rebuild.py",
    "test_archive_flows.py",
    "test_archive.py",
    "test_sink_lake.py",
    "test_sink_webhook.py",
    "test_sink_redis.py",
    "test_capture_mariadb.py",
    "test_replica.py",
    "test_audit.py",
    "test_capture_contract.py",
    "test_flows.py",
    "test_joins_killed.py",
    "test_nexmark.py",
    "test_modes.py",
    "test_windows.py",
    "test_harness.py",
    "test_verify.py",
    "test_side_outputs.py",
    "test_log_storm.py",
    "test_sink_postgres.py",
    "test_log_postgres.py",
    "test_local_platform.py",
)


def pytest_configure(config):
    """Folders of tests share one name space: of two files of one name, one would not be collected."""
    names = Counter(each.name for each in Path(__file__).parent.rglob("test_*.py"))
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise pytest.UsageError(f"test files of one name: {', '.join(twice)}; rename all but one of each")


def pytest_collection_modifyitems(items):
    """Files that take a minute or more come first: neither process is left alone with one at the end."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


os.environ["KAFKA_JVM_PERFORMANCE_OPTS"] = quick.JAVA


@pytest.fixture(autouse=True)
def signals():
    """Commands that run in the process of a test set handlers, which the next one must not have."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def settings():
    """Settings of a platform that runs as long as the tests do."""
    with running() as found:
        yield found


@pytest.fixture
def unique():
    """A name that no other test has."""
    return new_id().replace("-", "")[-12:]


@pytest.fixture
def database(settings, unique):
    """A schema of a test's own in the database, and what captures of it have written."""
    made = Database(settings, f"s{unique}")
    yield made
    made.close()


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory):
    """A MariaDB server for all tests of a process."""
    require_mariadb()
    server = MariaDb(tmp_path_factory.mktemp("mariadb"))
    server.install()
    yield server
    server.stop()


@pytest.fixture
def maria(settings, mariadb, unique):
    """A database of a test's own in MariaDB, and what captures of it have written."""
    made = MariaDatabase(settings, f"m{unique}", mariadb)
    yield made
    made.close()


@pytest.fixture(scope="session")
def mongodb(tmp_path_factory):
    """A stand-in for MongoDB for all tests of a process."""
    server = Mongo(tmp_path_factory.mktemp("mongo"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def mongo(settings, mongodb, unique):
    """A database of a test's own in MongoDB's stand-in, and what captures of it have written."""
    made = MongoDatabase(settings, f"d{unique}", mongodb)
    yield made
    made.close()


@pytest.fixture(scope="session")
def spark():
    """One Spark session for all tests."""
    secret = Settings(spark={"spark.tests.password": quick.CANARY, "spark.tests.dsn": Secret(quick.CANARY)})
    made = session(secret, name="tests", partitions=6, shuffle=2, config=quick.SPARK)
    yield made
    made.stop()
