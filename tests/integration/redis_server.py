"""A Redis server for tests: one for all of a process, or one of a test's own that may be killed."""

from contextlib import closing
from dataclasses import replace

import pytest
from tests.lacking import required

from penstock.local import running
from penstock.settings import Settings
from penstock.targets.redis.client import connect


def require_redis():
    """Leave a test out where there is no Redis."""
    required("redis-server")


@pytest.fixture(scope="session")
def redis_settings():
    """Settings of a Redis that runs as long as the tests do."""
    require_redis()
    with running(services=("redis",)) as found:
        yield Settings(connections=found.connections)


@pytest.fixture
def redis(redis_settings):
    """A client of it."""
    with closing(connect(redis_settings.url("redis"))) as client:
        yield client


def with_redis(settings, redis_settings):
    """Settings of the platform, and of Redis."""
    return replace(settings, connections={**settings.connections, **redis_settings.connections})
