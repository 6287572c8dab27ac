"""The page of the doctor has a row for each finding that there is."""

import re
from pathlib import Path

from penstock.ops.doctor.checks import check_ids

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"


def test_the_table_of_findings_is_that_of_the_checks():
    rows = re.findall(r"^\| `([a-z]+\.[a-z-]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(check_ids())
