"""The page about the gateway, read from top to bottom: every command runs, and prints what the page shows."""

import json

import pytest
from tests.walked_page import walked


@pytest.mark.long  # Spark is started
@pytest.mark.timeout(400)
def test_every_command_of_the_page_about_the_gateway_runs(tmp_path):
    with walked("gateway.md", tmp_path) as page:
        pass
    for command, output, shown in page.printed:
        assert shown in output, command
    assert [each["event"]["id"] for each in json.loads(page.output("limit=1"))["events"]] == ["p1"]
    deliveries = [output for command, output, _ in page.printed if command == "bash partner.sh"]
    assert len(deliveries) == 2
    assert deliveries[0] == deliveries[1]
    assert len(json.loads(deliveries[0])["events"]) == 1
