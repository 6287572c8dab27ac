"""Ten thousand rows deleted by mistake, and brought back in every copy: the page, command by command."""

import pytest
from tests.integration.redis_server import require_redis
from tests.walked_page import walked


@pytest.mark.long
@pytest.mark.timeout(900)
def test_rows_are_brought_back_as_the_page_says(tmp_path):
    require_redis()
    with walked("how-to/bring-back-deleted-rows.md", tmp_path) as page:
        counted = [(output, shown) for command, output, shown in page.printed if command == "python count.py"]
    assert len(counted) == 4
    for output, shown in counted:
        assert output == shown
