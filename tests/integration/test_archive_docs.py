"""The page about archives, read from top to bottom: every command runs as it is written."""

import pytest
from tests.walked_page import walked


@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_command_of_the_page_about_archives_runs_as_written(tmp_path):
    with walked("archive.md", tmp_path) as page:
        moved, shown = next(
            (output, shown) for command, output, shown in page.printed if "archive run" in command
        )
    assert moved == shown
    assert len(page.output("topics tail").splitlines()) == 1000
    assert "waiting" in page.output("archive list")
    assert page.output("archive check").splitlines()[-1] == "whole"
