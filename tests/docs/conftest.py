"""The examples of pages need a Redis, too, where there is one."""

import shutil

import pytest
from tests.integration.redis_server import require_redis

from penstock.local import SERVICES, running


@pytest.fixture(scope="session")
def settings():
    """Settings of a platform with Redis that runs as long as the tests do."""
    redis = ("redis",) if shutil.which("redis-server") else ()
    with running(services=(*SERVICES, *redis)) as found:
        yield found


@pytest.fixture(autouse=True)
def without_redis(request):
    """Leave out the page that needs it where there is none."""
    if "targets.md" in request.node.name:
        require_redis()
