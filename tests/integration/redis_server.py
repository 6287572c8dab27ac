"""A Redis server for tests: one for all of a process, or one of a test's own that may be killed."""

import os
import shutil
from contextlib import closing
from dataclasses import replace

import pytest

from penstock.local import running
from penstock.settings import Settings
from penstock.targets.redis.client import connect


def require_redis():
    """Redis is a program of the system's: without it tests are left out, but never unnoticed."""
    if shutil.which("redis-server") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("redis-server is not installed: run `make servers`")
        pytest.skip("redis-server is not installed")


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
