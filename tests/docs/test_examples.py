"""Every Python example in the docs and the README runs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "docs", ROOT / "docs" / "how-to", ROOT / "docs" / "targets")
WALKED = {"tutorial.md"}  # followed as a whole, by test_tutorial.py
PAGES = sorted([ROOT / "README.md", *(page for folder in FOLDERS for page in folder.glob("*.md"))])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


SLOW = (
    "archive.md",
    "bring-your-own-session.md",
    "flows.md",
    "joins.md",
    "keyed.md",
    "lake.md",
    "local.md",
    "questions.md",
    "queues.md",
    "read-a-captured-table.md",
    "redis.md",
    "search.md",
    "sourcing.md",
    "sql.md",
    "test-your-flows.md",
    "webhooks.md",
    "windows.md",
    "write-a-target.md",
)  # ten seconds to a minute each: in `make check` and `make verify`


def examples():
    return [
        pytest.param(
            page, marks=[pytest.mark.long] if page.name in SLOW else [], id=page.relative_to(ROOT).as_posix()
        )
        for page in PAGES
        if page.name not in WALKED and BLOCK.search(page.read_text())
    ]


@pytest.mark.parametrize("page", examples())
def test_the_examples_of_a_page_run_in_order(page, settings, tmp_path, monkeypatch):
    """A page is one story: its blocks share their names, and the settings point at real services."""
    monkeypatch.chdir(tmp_path)
    for name, value in replace(settings, data=tmp_path / "data").environment().items():
        monkeypatch.setenv(name, value)
    story: dict[str, object] = {"__name__": "story"}
    text = page.read_text()
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 1
        code = compile("\n" * line + block[1], str(page), "exec")
        exec(code, story)


def test_links_between_pages_are_not_broken():
    for page in [*PAGES, *(ROOT / "docs" / "decisions").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
