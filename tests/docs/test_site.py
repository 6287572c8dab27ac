"""The built site: complete in itself, with every public name, and searched where it is opened as a file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.docs.public import packages
from tests.browser import chromium
from tests.lacking import lacking

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def site() -> Path:
    """Build it as `make docs` does: broken links are errors."""
    python = Path(sys.prefix) / "docs" / "bin" / "python"
    if not python.exists():
        lacking("what makes the docs is not installed: run `make docs`")
    done = subprocess.run(
        [python, "-m", "scripts.docs"], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "build" / "site"


def test_every_public_name_is_in_the_reference(site: Path):
    for package in packages():
        text = (site / "reference" / f"{package.name}.html").read_text()
        missing = [name for name in package.names if f'id="{package.name}.{name}"' not in text]
        assert missing == []


def test_opened_as_a_file_it_is_searched_and_asks_nobody(site: Path):
    asked, errors = [], []
    with chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"file://{site}/index.html")
        page.click("input.md-search__input")
        page.keyboard.type("watermark")
        page.wait_for_selector(".md-search-result__item")
        assert page.locator(".md-search-result__item").count() > 3
        page.goto(f"file://{site}/applications/ads.html")
        page.wait_for_selector(".mermaid svg, div.mermaid", state="attached")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert errors == []
