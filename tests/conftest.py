"""One broker and one database for all tests that need them."""

import os
import sys

import pytest
from pyspark.sql import SparkSession

from penstock.events import new_id
from penstock.local import running


@pytest.fixture(scope="session")
def settings():
    """Settings of a platform that runs as long as the tests do."""
    with running() as found:
        yield found


@pytest.fixture
def unique():
    """A name that no other test has."""
    return new_id().replace("-", "")[-12:]


@pytest.fixture(scope="session")
def spark():
    """One Spark session for all tests."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    session.stop()
