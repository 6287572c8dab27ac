"""The permissions that docs/settings.md lists, as the tests grant them: no more and no fewer."""

import re
from pathlib import Path

from tests.integration.secured import Grant

_PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
_ROW = re.compile(
    r"^\| (?P<client>[^|]+) \| (?P<kind>[^|]+) \| `(?P<name>[^|]+)` \| (?P<operations>[a-z_ ]+) \|$"
)


def permissions(client: str, **names: str) -> list[Grant]:
    """The rows of a client, its names filled in."""
    rows = [_ROW.fullmatch(line) for line in _PAGE.read_text().splitlines()]
    grants = [(row[2], _filled(row[3], names), row[4]) for row in rows if row and row[1].strip("`") == client]
    assert grants, f"the page lists nothing for {client}"
    return grants


def _filled(name: str, names: dict[str, str]) -> str:
    return re.sub("<([a-z]+)>", lambda found: names[found[1]], name)
