"""The page about the shop, read from top to bottom: every command runs, every statement holds."""

from pathlib import Path

import pytest
from tests.integration.redis_server import require_redis
from tests.walked_page import walked

from penstock.apps import shop


@pytest.mark.long  # Spark is started seven times
@pytest.mark.timeout(600)
def test_every_command_of_the_page_runs(tmp_path):
    require_redis()
    with walked(str(Path(shop.__file__).with_name("README.md")), tmp_path) as page:
        pass
    assert '"kind":"placed"' in page.output("tail shop.order-events").replace(" ", "")
    assert "lamp" in page.output("penstock search")
    assert "nothing is missing, nothing unexpected" in page.output("penstock verify")
