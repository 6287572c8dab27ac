"""The READMEs of applications: their links lead somewhere, and their commands are of their own demos."""

import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import penstock

ROOT = Path(penstock.__path__[0])
READMES = sorted((ROOT / "apps").glob("*/README.md"))
LINK = re.compile(r"\]\(([^)#:]+?)(?:#[^)]*)?\)")
COMMAND = re.compile(r"^\$ penstock demo (\w+)", re.MULTILINE)


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_links_and_commands_of_a_readme_are_right(page):
    text, name = page.read_text(), page.parent.name
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []
    assert {*COMMAND.findall(text)} == {name}
    assert name in {entry.name for entry in entry_points(group="penstock.demos")}
    assert "```mermaid" in text
