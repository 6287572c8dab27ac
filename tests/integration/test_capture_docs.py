"""The page about capture, read from top to bottom: every command runs as it is written."""

import pytest
from tests.walked_page import walked


@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_command_of_the_page_runs_as_written(tmp_path):
    with walked("capture.md", tmp_path) as page:
        assert page.background[0].wait(30) == 0, "a capture that is removed ends"
    assert page.output("topics tail").count("ada") >= 2
    assert "class Order(Event)" in page.output("cat shop_tables.py")
    assert "running" in page.output("penstock capture status shop")
