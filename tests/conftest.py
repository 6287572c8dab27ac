"""One broker and one database for all tests that need them."""

import pytest

from penstock.events import new_id
from penstock.local import running
from penstock.process import session
from tests import quick


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
    made = session(name="tests", partitions=6, shuffle=2, config=quick.SPARK)
    yield made
    made.stop()
