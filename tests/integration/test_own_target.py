"""The target that the docs write, SQLite, passes the suite of sinks as the page has it."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-target.md"
TARGET, _, SUITE = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
story: dict[str, object] = {"__name__": "story"}
exec(TARGET + SUITE, story)


class Here:
    @pytest.fixture(autouse=True)
    def here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)


class TestSqlite(Here, story["TestSqlite"]):
    pass


class TestSqliteLanes(Here, story["TestSqliteLanes"]):
    pass


class TestSqliteUpserts(Here, story["TestSqliteUpserts"]):
    pass
