"""The page about replicas, read from top to bottom: every command runs as it is written."""

import pytest
from tests.walked_page import walked


@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_command_of_the_page_about_replicas_runs_as_written(tmp_path):
    with walked("replica.md", tmp_path) as page:
        repaired = page.output("audit copy --repair")
    assert "running" in page.output("replica status copy")
    assert "equal; compared" in page.output("replica audit copy")
    assert "missing: public.orders 2" in repaired
    assert "different: public.orders 1 in price" in repaired
    assert repaired.splitlines()[-1].startswith("equal")
